#pragma once

// INTERNAL to launch/config: how a row of the table of keys is written.

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "launch/config/keys.hpp"

namespace kernelmill {

/// The rows of compile.*, evaluation.* and profile.*.
void add_tool_keys(std::vector<config_key>& k);

/// The rows of search.*.
void add_search_keys(std::vector<config_key>& k);

/// The rows of reward.*.
void add_reward_keys(std::vector<config_key>& k);

/// The rows of hooks.*, trackers.* and otlp.*.
void add_notification_keys(std::vector<config_key>& k);

/// A text that is the name of an environment variable, or the address of a server; of neither is a
/// wrong value shown.
config_key variable_name(config_key key);
config_key url(config_key key);

namespace key_builders {

template <class T>
constexpr value_kind kind_of() {
  if constexpr (std::is_same_v<T, bool>)
    return value_kind::boolean;
  else if constexpr (std::is_integral_v<T>)
    return value_kind::integer;
  else if constexpr (std::is_same_v<T, double>)
    return value_kind::number;
  else if constexpr (std::is_same_v<T, std::optional<double>>)
    return value_kind::optional_number;
  else if constexpr (std::is_same_v<T, std::string>)
    return value_kind::text;
  else
    return value_kind::text_list;
}

template <class T>
nlohmann::json read_member(const T& x) {
  return x;
}
inline nlohmann::json read_member(const std::optional<double>& x) {
  return x ? nlohmann::json(*x) : nlohmann::json(nullptr);
}

template <class T>
void write_member(T& x, const nlohmann::json& value) {
  x = value.get<T>();
}
inline void write_member(std::optional<double>& x, const nlohmann::json& value) {
  x = value.is_null() ? std::nullopt : std::optional<double>{value.get<double>()};
}

/// Binds a key to a member: `member` maps run_config& to a reference.
template <class F>
config_key make_key(std::string name, F member, std::string doc) {
  using value = std::remove_cvref_t<decltype(member(std::declval<run_config&>()))>;
  config_key key;
  key.name = std::move(name);
  key.doc = std::move(doc);
  key.kind = kind_of<value>();
  key.get = [member](const run_config& c) {
    return read_member(member(const_cast<run_config&>(c)));
  };
  key.set = [member](run_config& c, const nlohmann::json& v) { write_member(member(c), v); };
  return key;
}

inline config_key within(config_key key, double low, double high) {
  key.low = low;
  key.high = high;
  return key;
}

inline config_key above(config_key key, double low, double high) {
  key = within(std::move(key), low, high);
  key.open_low = true;
  return key;
}

inline config_key one_of(config_key key, std::vector<std::string> choices) {
  key.choices = std::move(choices);
  return key;
}

inline config_key file(config_key key) {
  key.path = path_kind::file;
  key.of_machine = true;
  return key;
}

inline config_key directory(config_key key) {
  key.path = path_kind::directory;
  key.of_machine = true;
  return key;
}

inline config_key matching(config_key key, std::string pattern,
                           bool (*matches)(const std::string&)) {
  key.pattern = std::move(pattern);
  key.matches = matches;
  return key;
}

inline constexpr double week_ms = 7 * 86400e3;

} // namespace key_builders

#define AT(member)                                                                                 \
  [](run_config & c) -> auto& {                                                                    \
    return c.member;                                                                               \
  }
#define KEY(member, doc) make_key(#member, AT(member), doc)

} // namespace kernelmill
