#pragma once

// The shapes of a suite's problem as variants of a task: problem.py has them in a list CASES, and
// the constant AXIS_case says which one is drawn.

#include <string>
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

struct suite_case {
  std::string name;             ///< of its variant; the own shape needs none
  nlohmann::ordered_json value; ///< what problem.py makes inputs of
  bool timed = false;
};

/// `CASES = [...]` and `AXIS_case = 0`, as Python.
std::string text_of_cases(const std::vector<suite_case>& cases);

/// All but the first as `variants` of a task's document; nothing where there are none.
void add_variants(nlohmann::ordered_json& document, const std::vector<suite_case>& cases);

/// A value of JSON as a literal of Python.
std::string python_value(const nlohmann::ordered_json& x);

} // namespace kernelmill
