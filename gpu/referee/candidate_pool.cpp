#include "gpu/referee/candidate_pool.hpp"

namespace kernelmill {

namespace {

constexpr int start_deadline_ms = 10'000;

} // namespace

expected<candidate_process> candidate_pool::take() {
  // One that died while it waited says nothing about the next.
  while (!waiting_.empty()) {
    auto process = std::move(waiting_.front());
    waiting_.pop_front();
    if (process.settle(start_deadline_ms)) return process;
  }
  auto process = candidate_process::start(walls_, options_);
  if (!process) return process;
  if (auto ok = process->settle(start_deadline_ms); !ok) return tl::unexpected<error>{ok.error()};
  return process;
}

void candidate_pool::refill() {
  while (waiting_.size() < size_) {
    auto process = candidate_process::start(walls_, options_);
    if (!process) return; // take() will try again and report
    waiting_.push_back(std::move(*process));
  }
}

void candidate_pool::settle() {
  for (auto& process : waiting_) (void)process.settle(start_deadline_ms);
}

} // namespace kernelmill
