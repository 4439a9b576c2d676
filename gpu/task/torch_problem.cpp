// What can be said of a problem in Python without running it.

#include <string_view>

#include "gpu/task/task.hpp"

namespace kernelmill {

namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Whether a line at the module's level begins with `what` as a whole word: "def get_inputs",
// "class Model", "get_inputs" of an assignment.
bool begins_a_line(std::string_view code, std::string_view what) {
  for (size_t at = code.find(what); at != code.npos; at = code.find(what, at + 1)) {
    auto behind = at + what.size();
    if ((at == 0 || code[at - 1] == '\n') && (behind == code.size() || !is_word(code[behind])))
      return true;
  }
  return false;
}

} // namespace

const std::vector<std::string>& torch_precisions() {
  static const std::vector<std::string> known{"fp32", "fp16", "bf16", "own"};
  return known;
}

std::string precision_of_problem(const std::string& code) {
  for (const char* word : {"float16", "half", "float8", "float64", "double", "default_dtype"})
    if (code.find(word) != code.npos) return "own";
  return "fp32";
}

std::string missing_of_problem(const std::string& code) {
  if (!begins_a_line(code, "class Model") && !begins_a_line(code, "Model"))
    return "it defines no class Model";
  for (const std::string name : {"get_inputs", "get_init_inputs"})
    if (!begins_a_line(code, "def " + name) && !begins_a_line(code, name))
      return "it defines no " + name;
  return {};
}

} // namespace kernelmill
