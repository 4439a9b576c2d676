#include "actors/episode/unprofiled.hpp"

namespace kernelmill {

std::string_view unprofiled_reason(std::string_view backend, bool torch) {
  if (torch) return "a module in Python is not profiled: the counters would be the framework's too";
  if (backend != "cpu") return "hardware counters of a GPU are not read in runs yet";
  return {};
}

} // namespace kernelmill
