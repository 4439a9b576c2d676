#pragma once

// The one table of configuration keys. Loading, `config show`, the JSON Schema and the reference
// page are all made from it.

#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "launch/config/run_config.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {

enum class value_kind : unsigned char {
  boolean,
  integer,
  number,
  optional_number,
  text,
  text_list
};

enum class path_kind : unsigned char { none, file, directory };

struct config_key {
  std::string name; ///< "policy.sampling.top_p"
  value_kind kind;
  std::string doc; ///< one sentence
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool open_low = false;            ///< `low` itself is refused
  std::vector<std::string> choices; ///< of a text, or of each entry of a list; empty: any
  path_kind path = path_kind::none; ///< made absolute against the file that says it
  std::string pattern;              ///< ECMAScript, for the schema and for messages
  std::function<bool(const std::string&)> matches; ///< the same test in code; empty: none
  bool may_change = false; ///< at resume: it says how, not what; no part of the digest
  bool sensitive = false;  ///< a wrong value may be a secret: messages never show it
  /// It names a file, a program, a secret or an address of the machine that runs it: a client
  /// that asks for a run over HTTP must not set it.
  bool of_machine = false;

  std::function<nlohmann::json(const run_config&)> get;
  std::function<void(run_config&, const nlohmann::json&)> set; ///< of a value that was checked

  nlohmann::json default_value() const { return get(run_config{}); }
  std::string section() const { return name.substr(0, name.find('.')); }
};

/// In the order of the reference page.
const std::vector<config_key>& config_keys();

const config_key* find_config_key(const std::string& name);

/// Every key and every section, for suggestions.
const std::vector<std::string>& config_key_names();

/// Whether `name` is an object that holds keys: "policy", "policy.sampling".
bool is_config_section(const std::string& name);

/// One sentence for the reference page.
std::string config_section_doc(const std::string& section);

/// "KERNELMILL_POLICY__BASE_URL".
std::string environment_name(const config_key& key);

/// Says in words what a key takes: "integer from 1 to 64".
std::string describe_values(const config_key& key);

/// Returns what is wrong with `value` for `key`, or an empty string.
std::string check_value(const config_key& key, const nlohmann::json& value);

/// Every key with its value, nested, in the table's order: what goes to a run's config.json.
nlohmann::ordered_json to_json(const run_config& config);

} // namespace kernelmill
