#include "actors/episode/unprofiled.hpp"

namespace kernelmill {

std::string_view unprofiled_reason(std::string_view backend, bool torch) {
  if (torch)
    return "modules in Python and programs are not profiled: the counters would be those of the "
           "framework or the tests, too";
  if (backend != "cpu") return "hardware counters of a GPU are not read in runs yet";
  return {};
}

} // namespace kernelmill
