#pragma once

// Messages made of an error, or of another message.

#include "messages/fault.hpp"
#include "messages/message.hpp"

namespace kernelmill {

/// A result that holds nothing but the fault.
template <class Result>
Message<Result> fault_result(const error& why) {
  return build<Result>([&](typename Result::Builder x) { set_fault(x.initFault(), why); });
}

/// A copy that `change` has changed.
template <class T, class F>
Message<T> changed(const Message<T>& x, F change) {
  auto view = x.open();
  capnp::MallocMessageBuilder builder;
  builder.setRoot(*view);
  change(builder.getRoot<T>());
  return Message<T>{builder};
}

} // namespace kernelmill
