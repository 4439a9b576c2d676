#include "actors/episode/prompt_parts.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "actors/episode/clean_text.hpp"
#include "actors/episode/fence.hpp"

namespace kernelmill {

namespace {

std::string_view view(capnp::Text::Reader x) {
  return {x.begin(), x.size()};
}

bool is_kernel(wire::Example::Reader x) {
  return x.getKind() == "kernel";
}

// Of the row of a corpus: a second line could be one that opens a fence.
std::string one_line(std::string_view text, size_t limit = 200) {
  std::string result;
  append_clean(result, text, limit);
  std::replace_if(
      result.begin(), result.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return result;
}

// What fits, and whether it is all. A character has at most four bytes.
struct shown_part {
  std::string text;
  bool is_all = true;
};

shown_part first_lines(std::string_view text, size_t characters) {
  shown_part result;
  append_clean(result.text, text, 4 * characters + 16);
  auto& out = result.text;
  size_t end = 0, count = 0;
  for (; end < out.size(); ++end)
    if ((static_cast<unsigned char>(out[end]) & 0xc0) != 0x80 && count++ == characters) break;
  if (end == out.size()) return result;
  auto line = out.rfind('\n', end);
  out.resize(line == std::string::npos || line == 0 ? end : line);
  result.is_all = false;
  return result;
}

// `text` is clean.
void append_between_marks(std::string& out, std::string_view text, std::string_view language) {
  size_t longest = 2, run = 0;
  for (char c : text) {
    run = c == '`' ? run + 1 : 0;
    if (run > longest) longest = run;
  }
  const std::string mark(longest + 1, '`');
  out.append(mark).append(language) += '\n';
  out += text;
  if (out.back() != '\n') out += '\n';
  out.append(mark) += '\n';
}

void append_code(std::string& out, std::string_view text, std::string_view language,
                 size_t characters) {
  auto part = first_lines(text, characters);
  append_between_marks(out, part.text, language);
  if (!part.is_all) out.append(cut_note) += '\n';
}

// Without a fence that is left open: what follows would be code, too.
void append_card(std::string& out, std::string_view text, size_t characters) {
  auto part = first_lines(text, characters);
  auto& card = part.text;
  auto found = next_fence(card, 0);
  while (found && found->closed) found = next_fence(card, found->end);
  if (found) {
    auto code = static_cast<size_t>(found->code.data() - card.data());
    auto before = code < 2 ? std::string::npos : card.rfind('\n', code - 2);
    card.resize(before == std::string::npos ? 0 : before + 1);
    part.is_all = false;
  }
  out += card;
  if (out.back() != '\n') out += '\n';
  if (!part.is_all) out.append(cut_note) += '\n';
}

std::string kernel_language(wire::Example::Reader x) {
  auto language = view(x.getLanguage());
  if (language.empty()) return "cpp";
  return is_code_language(language) ? language_of(language) : std::string{};
}

const char* reference_language(std::string_view code) {
  bool is_python = code.find("def ") != code.npos || code.find("import ") != code.npos;
  return is_python ? "python" : "cpp";
}

// A speedup that a corpus tells without a device is its own word.
std::string provenance(wire::Example::Reader x) {
  auto device = one_line(view(x.getDevice())), date = one_line(view(x.getDate()));
  auto origin = one_line(view(x.getOrigin())), source = one_line(view(x.getRightsSource()));
  std::string out = "Speedup: not measured here.";
  if (x.getSpeedup() > 0 && (origin.empty() || !device.empty())) {
    out = fmt::format("Speedup: {:.2f} or more", x.getSpeedup());
    if (!device.empty()) out += " on " + device;
    out += (date.empty() ? "" : ", " + date) + ".";
  }
  out += " Origin: " + (origin.empty() ? "a run" : origin);
  if (!source.empty()) out += ", under the licence of " + source;
  return out + ".\n";
}

} // namespace

void append_fenced(std::string& out, std::string_view text, std::string_view language,
                   size_t limit) {
  std::string clean;
  append_clean(clean, text, limit);
  append_between_marks(out, clean, language);
}

void append_example(std::string& out, wire::Example::Reader example, size_t limit,
                    size_t reference_limit) {
  out += "### " + one_line(view(example.getTitle())) + "\n";
  if (!is_kernel(example)) return append_card(out, view(example.getText()), limit);
  out += provenance(example);
  if (auto code = view(example.getReference()); !code.empty()) {
    out += "What is computed:\n";
    append_code(out, code, reference_language(code), reference_limit);
    out += "The kernel:\n";
  }
  append_code(out, view(example.getText()), kernel_language(example), limit);
}

void append_examples(std::string& out, wire::RetrieveResult::Reader found) {
  auto append = [&](bool kernels, std::string_view introduction) {
    for (auto example : found.getExamples()) {
      if (is_kernel(example) != kernels) continue;
      out.append(introduction) += '\n';
      introduction = {};
      append_example(out, example, example_characters, example_characters);
    }
  };
  append(true, "\n## Similar problems, and kernels for them\n"
               "They are other problems than yours. Take ideas from them: a copy earns nothing.\n");
  append(false, "\n## Notes\nThey may help; they may also mislead.\n");
}

} // namespace kernelmill
