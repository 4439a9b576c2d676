#include "launch/config/layers.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "launch/config/keys.hpp"
#include "messages/base/suggest.hpp"

namespace kernelmill {

namespace {

void complain(raw_layers& layers, std::string category, std::string message, std::string hint) {
  layers.problems.push_back(
      {fault_class::configuration, std::move(category), std::move(message), std::move(hint)});
}

void unknown_key(raw_layers& layers, const std::string& origin, const std::string& key) {
  auto meant = closest(key, config_key_names());
  complain(layers, "config_unknown_key", "failed to read " + origin + ": unknown key '" + key + "'",
           meant.empty() ? "`kernelmill config schema` lists the keys"
                         : "did you mean '" + meant + "'?");
}

std::string origin_of(const json_text& file, const std::string& key) {
  auto at = file.positions.find(key);
  return at == file.positions.end() ? file.name : file.name + ":" + std::to_string(at->second.line);
}

void add_object(raw_layers& layers, const json_text& file, const nlohmann::json& object,
                const std::string& prefix, const std::string& directory) {
  for (const auto& [name, value] : object.items()) {
    auto key = prefix.empty() ? name : prefix + "." + name;
    auto origin = origin_of(file, key);
    if (key == "$schema") continue;
    if (find_config_key(key)) {
      layers.values.insert_or_assign(key, raw_value{value, origin, directory});
    } else if (!is_config_section(key)) {
      unknown_key(layers, origin, key);
    } else if (!value.is_object()) {
      complain(layers, "config_wrong_type",
               "failed to read " + origin + ": '" + key + "' is a section, not a value",
               "write it as an object: \"" + name + "\": {...}");
    } else {
      add_object(layers, file, value, key, directory);
    }
  }
}

/// JSON when it is JSON, else the text itself. A key that takes text gets text even when it looks
/// like a number, so that run.name=7 needs no quotes.
nlohmann::json override_value(const config_key& key, const std::string& text) {
  auto value = nlohmann::json::parse(text, nullptr, false);
  if (value.is_discarded()) return text;
  if (key.kind == value_kind::text && !value.is_string()) return text;
  return value;
}

// The contents of a file: of a list a value a line, without blank lines and those that begin with
// #.
expected<nlohmann::json> value_of_file(const config_key& key, const std::string& path) {
  std::ifstream in{path, std::ios::binary};
  std::stringstream bytes;
  if (!in || !(bytes << in.rdbuf()))
    return configuration_error(
        "missing_file",
        "failed to read '" + key.name + "' from " + path + ": it cannot be read, or is empty",
        "a value that begins with @ itself stands in quotes: '" + key.name + "=\"@...\"'");
  auto text = bytes.str();
  if (key.kind != value_kind::text_list) {
    while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
    return override_value(key, text);
  }
  auto list = nlohmann::json::array();
  std::string line;
  while (std::getline(bytes, line)) {
    line.erase(line.find_last_not_of(" \t\r") + 1);
    line.erase(0, line.find_first_not_of(" \t"));
    if (!line.empty() && line.front() != '#') list.push_back(line);
  }
  return list;
}

// What `+=` adds to.
nlohmann::json list_before(const raw_layers& layers, const config_key& key) {
  auto at = layers.values.find(key.name);
  auto result = at == layers.values.end() ? key.default_value() : at->second.value;
  return result.is_array() ? result : nlohmann::json::array();
}

std::string environment_section(const std::string& name) {
  std::string key;
  for (size_t i = std::string_view{"KERNELMILL_"}.size(); i < name.size(); ++i) {
    if (name.compare(i, 2, "__") == 0) {
      key += '.';
      ++i;
    } else {
      key += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
    }
  }
  return key;
}

} // namespace

nlohmann::json as_list(std::string text) {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  auto result = nlohmann::json::array();
  for (size_t begin = 0; begin <= text.size();) {
    auto end = std::min(text.find(',', begin), text.size());
    auto word = text.substr(begin, end - begin);
    auto first = word.find_first_not_of(" \"'");
    if (first != std::string::npos)
      result.push_back(word.substr(first, word.find_last_not_of(" \"'") - first + 1));
    begin = end + 1;
  }
  return result;
}

void add_file_layer(raw_layers& layers, const json_text& file) {
  if (!file.value.is_object()) {
    complain(layers, "config_wrong_type",
             "failed to read " + file.name + ": a configuration is a JSON object, not a " +
                 file.value.type_name(),
             "see configs/quickstart.json for one");
    return;
  }
  std::error_code code;
  auto directory = std::filesystem::absolute(file.name, code).parent_path().string();
  add_object(layers, file, file.value, {}, directory);
}

void add_environment_layer(raw_layers& layers, const config_sources& sources) {
  for (const auto& [name, text] : sources.environment) {
    if (!name.starts_with("KERNELMILL_")) continue;
    const auto& keys = config_keys();
    auto key = std::find_if(keys.begin(), keys.end(), [&wanted = name](const config_key& x) {
      return environment_name(x) == wanted;
    });
    if (key != keys.end())
      layers.values.insert_or_assign(
          key->name,
          raw_value{override_value(*key, text), "environment " + name, sources.directory});
    else if (name.find("__") != std::string::npos)
      unknown_key(layers, "environment variable " + name, environment_section(name));
  }
}

void add_override(raw_layers& layers, const std::string& text, const std::string& directory) {
  bool remove = text.starts_with("~");
  auto begin = remove || text.starts_with("+") ? 1u : 0u;
  auto equals = text.find('=');
  auto name = text.substr(begin, equals == std::string::npos ? equals : equals - begin);
  bool adds = !remove && name.ends_with('+');
  if (adds) name.pop_back();
  const auto* key = find_config_key(name);
  if (!key && !(remove && is_config_section(name))) {
    if (is_config_section(name))
      complain(layers, "config_wrong_type",
               "failed to read the command line: '" + name + "' is a section, not a value",
               "name one of its keys: " + name + ".KEY=VALUE");
    else
      unknown_key(layers, "the command line", name);
    return;
  }
  if (remove) {
    std::erase_if(layers.values, [&](const auto& x) {
      return x.first == name || x.first.starts_with(name + ".");
    });
    return;
  }
  auto said = text.substr(equals + 1);
  auto value = override_value(*key, said);
  if (said.starts_with('@')) {
    auto path = std::filesystem::path{directory} / said.substr(1);
    auto read = value_of_file(*key, path.string());
    if (!read) {
      layers.problems.push_back(read.error());
      return;
    }
    value = std::move(*read);
  }
  if (adds) {
    if (key->kind != value_kind::text_list)
      return complain(layers, "config_wrong_type",
                      "failed to read the command line: '" + name +
                          "' is no list, so nothing can "
                          "be added to it",
                      "give it a value: " + name + "=VALUE");
    auto list = list_before(layers, *key);
    for (auto& x : value.is_array() ? value : as_list(said)) list.push_back(x);
    value = std::move(list);
  }
  layers.values.insert_or_assign(name, raw_value{value, "the command line", directory});
}

} // namespace kernelmill
