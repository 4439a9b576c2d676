// Keys of task.json that say in what form an answer comes, and by what rule its suite judges it.

#include <algorithm>
#include <cmath>

#include "gpu/task/task_files.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {

namespace {

using nlohmann::json;

constexpr size_t most_function_name = 64;

// Words of Python, that no function can have as its name.
const std::vector<std::string>& python_words() {
  static const std::vector<std::string> words{
      "False", "None",     "True",  "and",    "as",   "assert", "async",  "await", "break",
      "class", "continue", "def",   "del",    "elif", "else",   "except", "for",   "finally",
      "from",  "global",   "if",    "import", "in",   "is",     "lambda", "not",   "nonlocal",
      "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};
  return words;
}

bool is_function_name(const std::string& x) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !x.empty() && x.size() <= most_function_name && letter(x[0]) &&
         std::all_of(x.begin(), x.end(), [&](char c) { return letter(c) || digit(c); }) &&
         std::find(python_words().begin(), python_words().end(), x) == python_words().end();
}

class keys_of {
public:
  keys_of(const json& value, const std::string& file, std::string place)
      : value_(value), file_(file), place_(std::move(place)) {
    // nop
  }

  tl::unexpected<error> bad(const std::string& what, std::string hint = {}) const {
    return configuration_error("bad_task", "failed to read " + file_ + ": " + place_ + what,
                               hint.empty() ? "docs/reference/tasks.md has an example"
                                            : std::move(hint));
  }

  expected<void> allow(const std::vector<std::string>& known) const {
    if (!value_.is_object()) return bad(" must be an object");
    for (const auto& [key, unused] : value_.items())
      if (std::find(known.begin(), known.end(), key) == known.end())
        return bad(" has the unknown key \"" + key + "\"", suggestion(key, known));
    return {};
  }

  // `least` is no number that is allowed where `is_open`.
  expected<void> number(const char* name, double& into, double least, double most,
                        bool is_open) const {
    auto found = value_.find(name);
    if (found == value_.end()) return {};
    auto x = found->is_number() ? found->get<double>() : NAN;
    if (!(is_open ? x > least : x >= least) || !(x <= most))
      return bad(std::string{"."} + name + " must be a number " +
                 (is_open ? "above " : "of at least ") + json(least).dump() + " and at most " +
                 json(most).dump());
    into = x;
    return {};
  }

private:
  const json& value_;
  const std::string& file_;
  std::string place_;
};

constexpr double most_tolerance = 1e30;

} // namespace

std::string torch_entry::text() const {
  return function.empty() ? function : function + (as_tuple ? ":tuple" : ":arguments");
}

const std::vector<std::string>& torch_modes() {
  static const std::vector<std::string> known{"honest", "suite", "kernelbench"};
  return known;
}

expected<torch_entry> read_entry(const json& value, const std::string& file) {
  keys_of from{value, file, "entry"};
  KM_TRY(from.allow({"function", "takes"}));
  torch_entry x;
  if (auto name = value.find("function"); name != value.end() && name->is_string())
    x.function = name->get<std::string>();
  if (!is_function_name(x.function))
    return from.bad(".function must be the name of a function in Python, of 1 to 64 characters");
  if (x.function == "ModelNew" || x.function == "Model")
    return from.bad(".function is \"" + x.function + "\", which is a class");
  auto takes = value.value("takes", json("arguments"));
  if (takes != "arguments" && takes != "tuple")
    return from.bad(".takes must be \"arguments\" or \"tuple\"");
  x.as_tuple = takes == "tuple";
  return x;
}

expected<torch_tolerance> read_tolerance(const json& value, const std::string& file,
                                         const std::string& key) {
  keys_of from{value, file, key};
  KM_TRY(from.allow({"absolute", "relative", "matched", "largest"}));
  torch_tolerance x;
  for (const char* needed : {"absolute", "relative"})
    if (!value.contains(needed)) return from.bad(std::string{"."} + needed + " is missing");
  KM_TRY(from.number("absolute", x.absolute, 0, most_tolerance, false));
  KM_TRY(from.number("relative", x.relative, 0, most_tolerance, false));
  KM_TRY(from.number("matched", x.matched, 0, 1, true));
  double largest = 0;
  KM_TRY(from.number("largest", largest, 0, most_tolerance, true));
  if (value.contains("largest")) x.largest = largest;
  return x;
}

} // namespace kernelmill
