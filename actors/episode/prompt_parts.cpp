#include "actors/episode/prompt_parts.hpp"

#include "actors/episode/clean_text.hpp"

namespace kernelmill {

namespace {

// Several examples of a retriever must not push the task itself out of a small context.
constexpr size_t max_example_text = 10'000;

std::string_view view(capnp::Text::Reader x) {
  return {x.begin(), x.size()};
}

} // namespace

void append_fenced(std::string& out, std::string_view text, std::string_view language,
                   size_t limit) {
  size_t longest = 2, run = 0;
  for (char c : text) {
    run = c == '`' ? run + 1 : 0;
    if (run > longest) longest = run;
  }
  const std::string mark(longest + 1, '`');
  out.append(mark).append(language) += '\n';
  append_clean(out, text, limit);
  if (out.back() != '\n') out += '\n';
  out.append(mark) += '\n';
}

void append_example(std::string& out, wire::Example::Reader example, size_t limit) {
  out += "### ";
  append_clean(out, view(example.getTitle()), 200);
  out += '\n';
  if (example.getKind() == "kernel") {
    auto language = view(example.getLanguage());
    return append_fenced(out, view(example.getText()), language.empty() ? "cpp" : language, limit);
  }
  append_clean(out, view(example.getText()), limit);
  if (out.back() != '\n') out += '\n';
}

void append_examples(std::string& out, wire::RetrieveResult::Reader found) {
  if (found.getExamples().size() == 0) return;
  out += "\nNotes and kernels of other tasks that may help; they may also mislead:\n";
  for (auto example : found.getExamples()) {
    out += '\n';
    append_example(out, example, max_example_text);
  }
}

} // namespace kernelmill
