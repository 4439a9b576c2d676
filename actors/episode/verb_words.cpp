// What a prompt says of a task's verb.

#include "actors/episode/prompt_parts.hpp"

namespace kernelmill {

namespace {

const char* language_name(const std::string& language) {
  if (language == "cpp") return "C++";
  if (language == "hip") return "HIP";
  if (language == "triton") return "Triton";
  return language == "torch" ? "operators of PyTorch" : "CUDA C++";
}

std::string by_words(double by) {
  if (by <= 1) return {};
  auto text = std::to_string(by);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return ", by a factor of " + text + " or more";
}

std::string of_reformulation(const task& x) {
  std::string out =
      "\nThe starter is right. Compute the same in another way: an answer that computes as the "
      "starter does is rejected, however fast it is. New names, another order of statements, "
      "comments and unused code do not make another way.\n";
  if (!x.strategy.empty()) out += "Beside the starter, this must change:\n";
  for (const auto& change : x.strategy) out += "- " + change.text() + by_words(change.by) + "\n";
  return out;
}

} // namespace

std::string verb_words(const task& x) {
  if (x.verb == "debug")
    return "\nThe starter is broken: it fails. Find out why, and repair it. Speed counts once it "
           "is right.\n";
  if (x.verb == "reformulate") return of_reformulation(x);
  if (x.verb == "port")
    return std::string{"\nThe starter is in "} + language_name(x.port.from) +
           ". Write what does the same in " + language_name(x.port.to) + ".\n";
  if (x.verb == "synthesize")
    return "\nThere is no code to begin with: write it from these words.\n";
  return {};
}

std::string diagnosis_words(const task& x) {
  std::string out;
  if (!x.diagnoses.empty()) out += "\nLabels for the diagnosis, of which one is right:\n";
  for (const auto& label : x.diagnoses) out += "- " + label + "\n";
  std::string counters;
  for (const auto& change : x.evidence)
    if (!change.hidden) counters += "- " + change.counter + "\n";
  if (counters.empty()) return out;
  return out +
         "\nSay of each of these counters whether it falls or rises from the starter to a function "
         "without that cause:\n" +
         counters;
}

std::string diagnosis_format(const task& x) {
  if (x.verb != "diagnose") return {};
  std::string out = "<DIAGNOSIS>one label of the task's list</DIAGNOSIS>\n";
  for (const auto& change : x.evidence)
    if (!change.hidden)
      return out + "<EVIDENCE>\neach counter of the task's list and falls or rises, one a line\n"
                   "</EVIDENCE>\n";
  return out;
}

} // namespace kernelmill
