#include <algorithm>

#include <fmt/format.h>

#include "storage/export/dataset.hpp"

namespace kernelmill::exports {

namespace {

template <class Set>
std::string joined(const Set& xs) {
  std::string result;
  for (const auto& x : xs) result += (result.empty() ? "" : ", ") + x;
  return result;
}

void add_part(std::string& to, const permit& x, const std::vector<std::string>& tasks) {
  to += fmt::format("\n{}\n  licence: {}\n", x.source.empty() ? "unknown source" : x.source,
                    x.licence.empty() ? "unknown" : x.licence);
  if (!x.url.empty()) to += fmt::format("  see: {}\n", x.url);
  if (!x.confirmed) to += "  not confirmed: read it there before you rely on it\n";
  if (!x.terms.empty()) to += fmt::format("  terms that were accepted: {}\n", x.terms);
  to += fmt::format("  may be passed on: {}\n", x.shared ? "yes" : "no");
  if (!tasks.empty()) to += fmt::format("  tasks: {}\n", joined(tasks));
}

} // namespace

std::string licences_text(const request& what, const report& done) {
  std::string result =
      "What this export is made of, and under which licences. Kernelmill grants none of its own "
      "on it.\n";
  for (const auto& [source, may] : done.sources) {
    std::vector<std::string> tasks;
    for (const auto& [task, x] : done.tasks)
      if (x.may.source == source) tasks.push_back(task);
    add_part(result, may, tasks);
  }
  result += "\nAnswers by models\n";
  result += fmt::format("  models: {}\n", done.models.empty() ? "none" : joined(done.models));
  for (const auto& [run, licence] : done.model_licences)
    result += fmt::format("  licence, as the configuration of {} says: {}\n", run, licence);
  if (!what.accepted_terms.empty())
    result += fmt::format("\nTerms accepted for this export: {}\n", joined(what.accepted_terms));
  return result;
}

} // namespace kernelmill::exports
