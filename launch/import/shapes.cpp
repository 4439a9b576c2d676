#include "launch/import/shapes.hpp"

#include "launch/import/import_words.hpp"

namespace kernelmill {

using nlohmann::ordered_json;

std::string python_value(const ordered_json& x) {
  if (x.is_null()) return "None";
  if (x.is_boolean()) return x.get<bool>() ? "True" : "False";
  if (x.is_string()) return python_literal(x.get<std::string>());
  if (!x.is_structured()) return x.dump();
  std::string result;
  for (const auto& [key, value] : x.items()) {
    if (!result.empty()) result += ", ";
    if (x.is_object()) result += python_literal(key) + ": ";
    result += python_value(value);
  }
  return x.is_object() ? "{" + result + "}" : "[" + result + "]";
}

std::string text_of_cases(const std::vector<suite_case>& cases) {
  std::string result = "CASES = [\n";
  for (const auto& x : cases) result += "    " + python_value(x.value) + ",\n";
  return result + "]\nAXIS_case = 0\n";
}

void add_variants(ordered_json& document, const std::vector<suite_case>& cases) {
  if (cases.size() < 2) return;
  auto& list = document["variants"] = ordered_json::array();
  for (size_t i = 1; i < cases.size(); ++i) {
    ordered_json one = {{"name", cases[i].name}, {"set", {{"AXIS_case", i}}}};
    if (cases[i].timed) one["timed"] = true;
    list.push_back(std::move(one));
  }
}

} // namespace kernelmill
