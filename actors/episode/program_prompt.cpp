// The prompt of a task of the contract `program`: files that the task's own commands build and
// test, and what is asked of the answer.

#include <algorithm>

#include "actors/episode/prompt_parts.hpp"
#include "messages/base/text.hpp"

namespace kernelmill {

namespace {

constexpr size_t max_context_text = 64 << 10; // of a file

const char* language_of_file(std::string_view path) {
  if (path.ends_with(".py")) return "python";
  return path.ends_with(".cu") || path.ends_with(".cuh") ? "cuda" : "cpp";
}

std::string needs_of(const program_task& x) {
  std::string result;
  if (!x.needs.toolkit.empty()) result += "CUDA " + x.needs.toolkit + " or later";
  if (!x.needs.compute_capability.empty())
    result += (result.empty() ? "" : ", ") + std::string{"a GPU of compute capability "} +
              x.needs.compute_capability + " or later";
  return result;
}

std::string references_of(const program_task& x) {
  std::string result;
  if (!x.references.all.empty()) result += "It must use " + joined(x.references.all) + ".\n";
  if (!x.references.any.empty()) result += "It must use one of " + joined(x.references.any) + ".\n";
  return result;
}

} // namespace

std::string program_role(const task& x) {
  if (x.program.answer_file.ends_with(".py"))
    return "You write fast and correct Python programs that use an NVIDIA GPU.\n\n";
  return x.terms.backend == "cuda"
             ? "You write fast and correct CUDA C++ programs for an NVIDIA GPU.\n\n"
             : "You write fast and correct C++ programs for the processor of this machine.\n\n";
}

std::string program_format(const task& x) {
  const auto& p = x.program;
  std::string out{format_head};
  out.append("<KERNEL>\n```").append(language_of_file(p.answer_file));
  out += "\nthe whole text of " + p.answer_file +
         "\n```\n</KERNEL>\n"
         "Only what stands between <KERNEL> and </KERNEL>, behind </think>, is read as code.\n";
  auto writable = writable_files(p);
  if (writable.size() > 1)
    out += "Or write several files, each behind a line of its own that names it, as\n// file: " +
           p.answer_file + "\nYou may write " + joined(writable) + ", and no other file.\n";
  return out += '\n';
}

std::string program_judging(const task& x) {
  const auto& p = x.program;
  std::string out = "How it is judged:\n";
  if (!trimmed(p.build).empty())
    out += "- It is built in the folder of the task's files, beside tests that you do not see, "
           "by:\n  " +
           p.build + "\n";
  out += "- It is tested by `" + p.test +
         "`. The tests have a main; yours has none. Return from "
         "your functions: a process that ends in another way than the baseline's has failed.\n"
         "- Libraries are what they are: an answer that defines a function of theirs is "
         "rejected.\n"
         "- It runs in a sandbox: no network, no files of others. What it prints is not shown.\n";
  if (!p.benchmark.empty())
    out += "- It is timed by `" + p.benchmark +
           "`, in turns with a baseline. What counts is the "
           "lower end of the speedup's confidence interval, and no more than a clock outside of "
           "the process confirms.\n";
  return out;
}

std::string program_task_prompt(const task& x, wire::RetrieveResult::Reader examples) {
  const auto& p = x.program;
  std::string out = "[task: " + x.id + "]\n" + x.prompt;
  if (out.back() != '\n') out += '\n';
  out += "\nThe file to write: " + p.answer_file + "\n" + references_of(p);
  if (auto needs = needs_of(p); !needs.empty()) out += "The machine has " + needs + ".\n";
  for (const auto& file : p.context) {
    out += "\n" + file.path + ":\n";
    append_fenced(out, file.text, language_of_file(file.path), max_context_text);
  }
  append_examples(out, examples);
  return out;
}

} // namespace kernelmill
