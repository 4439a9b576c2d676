#pragma once

// An error as it stands in a message, and back.

#include "messages/common.capnp.h"
#include "messages/error.hpp"

namespace kernelmill {

// The classes have one numbering.
static_assert(static_cast<int>(wire::FaultClass::CANDIDATE) ==
                  static_cast<int>(fault_class::candidate) &&
              static_cast<int>(wire::FaultClass::INFRASTRUCTURE) ==
                  static_cast<int>(fault_class::infrastructure));

inline void set_fault(wire::Fault::Builder out, const error& x) {
  out.setClass(static_cast<wire::FaultClass>(x.cls));
  out.setCategory(x.category);
  out.setMessage(x.message);
  out.setHint(x.hint);
}

inline error fault_of(wire::Fault::Reader x) {
  return {static_cast<fault_class>(x.getClass()), x.getCategory(), x.getMessage(), x.getHint()};
}

} // namespace kernelmill
