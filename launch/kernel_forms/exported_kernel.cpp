#include "launch/kernel_forms/exported_kernel.hpp"

#include <cctype>

#include <fmt/format.h>

namespace kernelmill::kernel_forms {

namespace {

/// Texts of tasks and policy servers stand in comments, strings and tables of several languages.
std::string plain_line(std::string text) {
  for (auto& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\' || c == '`' || c == '*' ||
        c == '|')
      c = ' ';
  return text;
}

bool is_word_byte(char c) {
  return c == '_' || std::isalnum(static_cast<unsigned char>(c));
}

bool has_word(const std::string& text, const std::string& word) {
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    bool begins = at == 0 || !is_word_byte(text[at - 1]);
    auto end = at + word.size();
    if (begins && (end == text.size() || !is_word_byte(text[end]))) return true;
  }
  return false;
}

} // namespace

std::string exported_kernel::title() const {
  return plain_line(what->title);
}

std::string exported_kernel::model() const {
  return plain_line(about.model);
}

std::string exported_kernel::name() const {
  auto result = what->id.substr(what->id.rfind('/') + 1);
  for (auto& c : result) {
    auto byte = static_cast<unsigned char>(c);
    c = std::isalnum(byte) ? static_cast<char>(std::tolower(byte)) : '_';
  }
  if (result.empty() || std::isdigit(static_cast<unsigned char>(result.front())))
    result = "kernel_" + result;
  // A kernel may have a function of that name beside its `solve`.
  return has_word(source, result) ? result + "_kernel" : result;
}

std::string c_declaration(const exported_kernel& x) {
  return "void " + x.name() + "(" + x.what->parameters() + ")";
}

std::string measured_text(const exported_kernel& x) {
  const auto& k = x.about;
  std::string result =
      fmt::format("## Measured\n"
                  "| | |\n|---|---|\n"
                  "| speedup, lower bound (95 %) | {:.3f} |\n"
                  "| speedup, estimate [interval] | {:.3f} [{:.3f}, {:.3f}] |\n"
                  "| baseline | {} |\n"
                  "| timed calls | {} |\n"
                  "| time of a call | {:.6g} ms; baseline {:.6g} ms |\n"
                  "| shape | {} |\n"
                  "| device | {} |\n"
                  "| driver | {} |\n"
                  "| compiler | {} |\n\n"
                  "`verdict.json` has the whole verdict with the clocks of the device. The figures "
                  "hold for this "
                  "shape under these\nconditions; measure again under your own.\n\n",
                  k.speedup.low, k.speedup.estimate, k.speedup.low, k.speedup.high, k.baseline,
                  k.samples, k.candidate_ms, k.reference_ms, k.shape, k.device,
                  k.driver.empty() ? "-" : k.driver, k.toolchain);
  result +=
      fmt::format("## Origin and licence\n"
                  "Written by the model `{}` in turn {} of run `{}`, and verified by "
                  "Kernelmill {}. The task `{}` is under {}{}.\n`provenance.json` has the "
                  "digests.\n\nIts code was written by a model, and Kernelmill ran it in a sandbox "
                  "alone: read it before you run it elsewhere.\n",
                  x.model(), k.turn, k.run, k.program.empty() ? "(unknown)" : k.program, k.task,
                  x.licence.empty() ? "an unknown licence" : x.licence,
                  x.licence_url.empty() ? "" : " (" + x.licence_url + ")");
  if (!x.terms.empty())
    result += "Its use is bound to the terms `" + x.terms + "`, which were accepted.\n";
  return result;
}

} // namespace kernelmill::kernel_forms
