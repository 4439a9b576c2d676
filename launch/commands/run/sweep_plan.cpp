#include "launch/commands/run/sweep_plan.hpp"

#include <algorithm>
#include <cctype>
#include <set>

#include <fmt/format.h>

#include "launch/config/keys.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/suggest.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::commands {

namespace {

constexpr size_t most_runs_of_sweep = 1000;
constexpr size_t longest_name = 100; ///< of a run, which may have 128 characters

tl::unexpected<error> wrong(const std::string& key, const std::string& why,
                            const std::string& next) {
  return configuration_error("usage", "failed to read --sweep: '" + key + "' " + why, next);
}

std::vector<std::string> values_in(const std::string& text) {
  std::vector<std::string> result{{}};
  int depth = 0;
  char quote = 0;
  for (char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth <= 0) {
      result.emplace_back();
      continue;
    }
    result.back() += c;
  }
  return result;
}

expected<void> check_key(const std::string& name) {
  if (name == "run.name" || name == "run.dir")
    return wrong(name, "names and places runs, and each run of a sweep has its own",
                 "give it beside --sweep: it begins the names or holds the runs");
  if (const auto* key = find_config_key(name)) {
    if (!key->sensitive) return {};
    return wrong(name, "may hold a secret, and values of a sweep stand in names of runs",
                 "set it beside --sweep");
  }
  if (is_config_section(name))
    return wrong(name, "is a section, not a value", "name one of its keys: " + name + ".KEY=A,B");
  auto near = closest(name, config_key_names());
  return wrong(name, "is no key of a configuration",
               near.empty() ? "docs/reference/configuration.md lists all keys"
                            : "did you mean '" + near + "'?");
}

/// What stays of a value in a name of a run.
std::string word_of(const std::string& value) {
  std::string result;
  for (unsigned char c : value)
    result += std::isalnum(c) || c == '.' || c == '-' ? static_cast<char>(c) : '_';
  result.erase(0, std::min(result.find_first_not_of('_'), result.size()));
  result.erase(result.find_last_not_of('_') + 1);
  return result;
}

/// The last part of a key; the whole one where two keys share it.
std::vector<std::string> short_names(const std::vector<swept_key>& keys) {
  auto last = [](const std::string& name) { return name.substr(name.rfind('.') + 1); };
  std::vector<std::string> result;
  for (const auto& key : keys) {
    auto shared = std::count_if(keys.begin(), keys.end(),
                                [&](const swept_key& x) { return last(x.name) == last(key.name); });
    result.push_back(shared > 1 ? key.name : last(key.name));
  }
  return result;
}

std::string digest_of(const sweep_point& x) {
  std::string all;
  for (const auto& word : x.overrides()) all += word + "\n";
  return sha256_hex(all).substr(0, 8);
}

} // namespace

std::vector<std::string> sweep_point::overrides() const {
  std::vector<std::string> result;
  for (const auto& [key, value] : values) result.push_back(key + "=" + value);
  return result;
}

expected<std::vector<swept_key>> read_sweep(const std::vector<std::string>& words) {
  std::vector<swept_key> result;
  for (const auto& word : words) {
    auto equals = word.find('=');
    auto name = word.substr(0, equals);
    if (equals == std::string::npos || equals == 0 || equals + 1 == word.size())
      return wrong(name, "has no values",
                   "write it as --sweep " + (name.empty() ? std::string{"KEY"} : name) + "=A,B");
    KM_TRY(check_key(name));
    for (const auto& other : result)
      if (other.name == name)
        return wrong(name, "is given twice", "give all its values at once: " + name + "=A,B,C");
    swept_key key{name, values_in(word.substr(equals + 1))};
    std::set<std::string> seen;
    for (const auto& value : key.values)
      if (!seen.insert(value).second)
        return wrong(name, "has the value '" + value + "' twice", "name each value once");
    result.push_back(std::move(key));
  }
  return result;
}

expected<std::vector<sweep_point>> points_of(const std::vector<swept_key>& keys,
                                             const std::string& base) {
  size_t count = 1;
  for (const auto& key : keys) {
    count *= key.values.size();
    if (count > most_runs_of_sweep)
      return configuration_error("usage",
                                 fmt::format("failed to read --sweep: with '{}' it would have more "
                                             "than {} runs",
                                             key.name, most_runs_of_sweep),
                                 "sweep fewer keys or values at once");
  }
  auto names = short_names(keys);
  std::vector<sweep_point> result(count);
  std::set<std::string> taken;
  for (size_t i = 0; i < count; ++i) {
    auto& point = result[i];
    point.name = base;
    size_t block = count;
    for (size_t k = 0; k < keys.size(); ++k) {
      block /= keys[k].values.size();
      const auto& value = keys[k].values[i / block % keys[k].values.size()];
      point.values.emplace_back(keys[k].name, value);
      point.name += "-" + names[k] + "_" + word_of(value);
    }
    // Values that differ in what a name cannot have still have names of their own.
    if (point.name.size() > longest_name || !taken.insert(point.name).second)
      point.name = point.name.substr(0, longest_name) + "-" + digest_of(point);
  }
  return result;
}

} // namespace kernelmill::commands
