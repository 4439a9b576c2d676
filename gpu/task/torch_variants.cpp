// The other shapes of a problem in Python: constants of its module that are replaced.

#include <algorithm>
#include <string_view>

#include "gpu/task/task_files.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {

namespace {

using nlohmann::json;

constexpr size_t most_variants = 64;
constexpr size_t most_constants = 16;
constexpr size_t most_values = 16;
constexpr size_t most_name = 40;

bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Which may stand in prompts, tables and labels.
bool is_variant_name(const std::string& x) {
  auto fits = [](char c) { return is_word_character(c) || c == '-' || c == '.'; };
  return !x.empty() && x.size() <= most_name && x != "base" &&
         std::all_of(x.begin(), x.end(), fits);
}

bool is_python_name(const std::string& x) {
  return !x.empty() && x.size() <= most_name && !(x[0] >= '0' && x[0] <= '9') &&
         std::all_of(x.begin(), x.end(), is_word_character);
}

bool is_plain(const json& x) {
  return x.is_number() || x.is_boolean() || (x.is_string() && x.get<std::string>().size() <= 64);
}

bool is_constant(const json& x) {
  return is_plain(x) || (x.is_array() && !x.empty() && x.size() <= most_values &&
                         std::all_of(x.begin(), x.end(), is_plain));
}

std::string python_text(const json& x) {
  if (x.is_boolean()) return x.get<bool>() ? "True" : "False";
  if (!x.is_array()) return x.dump();
  std::string result;
  for (const auto& one : x) result += (result.empty() ? "(" : ", ") + python_text(one);
  return result + ")";
}

// Of all that keeps a variant from being one, the first; `into` holds those before it.
std::string read_variant(const json& from, std::vector<torch_variant>& into) {
  static const std::vector<std::string> known{"name", "set", "hidden", "timed", "tolerance"};
  if (!from.is_object()) return " must be an object";
  for (const auto& [key, unused] : from.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      return " has the unknown key \"" + key + "\"; " + suggestion(key, known);
  torch_variant x;
  if (auto name = from.find("name"); name != from.end() && name->is_string())
    x.name = name->get<std::string>();
  if (!is_variant_name(x.name))
    return ".name must be a text of 1 to 40 letters, digits and _ . -, and not \"base\"";
  for (auto [key, flag] : {std::pair{"hidden", &x.hidden}, std::pair{"timed", &x.timed}})
    if (auto found = from.find(key); found != from.end()) {
      if (!found->is_boolean()) return std::string{"."} + key + " must be true or false";
      *flag = found->get<bool>();
    }
  auto set = from.find("set");
  if (set == from.end() || !set->is_object() || set->empty() || set->size() > most_constants)
    return ".set must be an object of 1 to 16 constants of problem.py, with their values";
  for (const auto& [name, value] : set->items()) {
    if (!is_python_name(name)) return ".set names \"" + name + "\", which is no name in Python";
    if (!is_constant(value))
      return ".set." + name +
             " must be a number, a text, true, false, or a list of 1 to 16 of them";
    x.constants.emplace_back(name, value.dump());
  }
  for (const auto& other : into) {
    if (other.name == x.name) return ".name is used twice: " + x.name;
    if (other.constants == x.constants) return ".set is that of " + other.name;
  }
  into.push_back(std::move(x));
  return {};
}

// Whether a line at the module's level binds a name: "dim = 4", "h, w = 4, 8", "dim: int = 4". Only
// the text is looked at; what the module makes of it, Python says later.
bool binds(std::string_view line, std::string_view name) {
  auto end = line.find('=');
  if (end == line.npos || line.empty() || !(is_word_character(line[0]) || line[0] == '('))
    return false;
  auto targets = line.substr(0, end);
  for (size_t at = targets.find(name); at != targets.npos; at = targets.find(name, at + 1)) {
    auto behind = at + name.size();
    if ((at == 0 || !is_word_character(targets[at - 1])) &&
        (behind == targets.size() || !is_word_character(targets[behind])))
      return true;
  }
  return false;
}

bool binds_in_a_line(std::string_view code, std::string_view name) {
  while (!code.empty()) {
    auto line = code.substr(0, code.find('\n'));
    if (binds(line, name)) return true;
    code.remove_prefix(std::min(code.size(), line.size() + 1));
  }
  return false;
}

} // namespace

std::string torch_variant::text() const {
  std::string result;
  for (const auto& [name, value] : constants)
    result += (result.empty() ? "" : ", ") + name + " = " + python_text(json::parse(value));
  return result;
}

expected<void> read_variants(const json& list, const std::string& file,
                             std::vector<torch_variant>& into) {
  auto fail = [&](const std::string& what) {
    return configuration_error("bad_task", "failed to read " + file + ": variants" + what,
                               "docs/reference/tasks.md has an example");
  };
  if (!list.is_array() || list.empty() || list.size() > most_variants)
    return fail(" must be a list of 1 to 64 variants");
  for (size_t i = 0; i < list.size(); ++i) {
    auto place = "[" + std::to_string(i) + "]";
    if (auto trouble = read_variant(list[i], into); !trouble.empty()) return fail(place + trouble);
    if (!list[i].contains("tolerance")) continue;
    auto tolerance = read_tolerance(list[i]["tolerance"], file, "variants" + place + ".tolerance");
    KM_TRY(tolerance);
    into.back().tolerance = *tolerance;
  }
  return {};
}

std::string missing_constant(const torch_problem& x) {
  for (const auto& variant : x.variants)
    for (const auto& [name, unused] : variant.constants)
      if (!binds_in_a_line(x.code, name)) return name;
  return {};
}

std::string visible_constants(const torch_problem& x) {
  auto result = json::array();
  for (const auto& variant : x.variants) {
    if (variant.hidden) continue;
    auto& constants = result.emplace_back(json::object());
    for (const auto& [name, value] : variant.constants) constants[name] = json::parse(value);
  }
  return result.empty() ? std::string{} : result.dump();
}

} // namespace kernelmill
