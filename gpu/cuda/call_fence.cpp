#include "gpu/cuda/call_fence.hpp"

namespace kernelmill::cuda {

result call_fence::set() {
  if (!make()) return last_;
  if (has_context_orders_) {
    auto refused = order_context();
    // Any other refusal may be of a candidate's making, and is no reason to ask for less.
    if (refused != not_supported) return refused;
    has_context_orders_ = false;
  }
  // An order to the default stream comes between those to all streams that wait for it.
  return cuda_.event_record(event_, nullptr);
}

bool call_fence::make() {
  if (event_ != nullptr) return true;
  last_ = cuda_.primary_retain(&context_, 0);
  if (last_ == 0) last_ = cuda_.event_create(&event_, event_without_time);
  return last_ == 0;
}

result call_fence::order_context() {
  if (cuda_.context_record == nullptr || cuda_.context_wait == nullptr) return not_supported;
  auto recorded = cuda_.context_record(context_, event_);
  return recorded == 0 ? cuda_.context_wait(context_, event_) : recorded;
}

} // namespace kernelmill::cuda
