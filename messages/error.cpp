#include "messages/error.hpp"

namespace kernelmill {

std::string_view to_string(fault_class x) noexcept {
  switch (x) {
    case fault_class::none: return "none";
    case fault_class::candidate: return "candidate";
    case fault_class::policy: return "policy";
    case fault_class::configuration: return "configuration";
    case fault_class::infrastructure: return "infrastructure";
  }
  return "none";
}

std::string render(const error& x) {
  return x.hint.empty() ? x.message : x.message + " (" + x.hint + ")";
}

} // namespace kernelmill
