#pragma once

// The shapes of a suite's problem as variants of a task.

#include <string>
#include <utility>
#include <vector>

#include "messages/base/json_value.hpp"

namespace kernelmill {

inline constexpr size_t most_suite_shapes = 64; // with the own one
inline constexpr size_t usual_suite_shapes = 8; // what an evaluation's deadline allows

/// Some of many, evenly spread, with the first.
template <class T>
std::vector<T> spread(std::vector<T> all, size_t most) {
  if (all.size() <= most) return all;
  std::vector<T> result;
  for (size_t i = 0; i < most; ++i) result.push_back(std::move(all[i * all.size() / most]));
  return result;
}

/// Constants of problem.py that make another shape.
using suite_constants = std::vector<std::pair<std::string, nlohmann::json>>;

class suite_shapes {
public:
  void add(std::string name, const suite_constants& set, bool timed = false,
           nlohmann::ordered_json tolerance = {}) {
    nlohmann::ordered_json one = {{"name", std::move(name)},
                                  {"set", nlohmann::ordered_json::object()}};
    for (const auto& [key, value] : set) one["set"][key] = value;
    if (timed) one["timed"] = true;
    if (!tolerance.is_null()) one["tolerance"] = std::move(tolerance);
    list_.push_back(std::move(one));
  }

  /// Into a task's document: nothing, where there is none.
  void write(nlohmann::ordered_json& document) const {
    if (!list_.empty()) document["variants"] = list_;
  }

private:
  nlohmann::ordered_json list_ = nlohmann::ordered_json::array();
};

} // namespace kernelmill
