#include "gpu/referee/candidate_pool.hpp"

#include <chrono>

namespace kernelmill {

namespace {

constexpr int start_deadline_ms = 10'000;
constexpr int gpu_start_deadline_ms = 60'000; // a driver that wakes up may take its time

} // namespace

candidate_pool::candidate_pool(sandbox& walls, candidate_options options, size_t size)
    : walls_(walls), options_(std::move(options)), size_(size) {
  if (on_gpu()) worker_ = std::thread{[this] { work(); }};
}

candidate_pool::~candidate_pool() {
  {
    std::lock_guard guard{mutex_};
    ending_ = true;
  }
  changed_.notify_all();
  if (worker_.joinable()) worker_.join();
}

expected<candidate_process> candidate_pool::take() {
  int deadline = on_gpu() ? gpu_start_deadline_ms : start_deadline_ms;
  auto next = [&]() -> std::optional<candidate_process> {
    std::lock_guard guard{mutex_};
    if (waiting_.empty()) return std::nullopt;
    std::optional<candidate_process> result{std::move(waiting_.front())};
    waiting_.pop_front();
    changed_.notify_all();
    return result;
  };
  // One that died while it waited says nothing about the next.
  while (auto process = next())
    if (process->settle(deadline) && process->alive()) return std::move(*process);
  auto process = candidate_process::start(walls_, options_);
  if (!process) return process;
  KM_TRY(process->settle(deadline));
  return process;
}

void candidate_pool::refill() {
  if (on_gpu()) return;
  while (waiting_.size() < size_) {
    auto process = candidate_process::start(walls_, options_);
    if (!process) return; // take() will try again and report
    waiting_.push_back(std::move(*process));
  }
}

void candidate_pool::settle() {
  if (on_gpu()) {
    std::unique_lock lock{mutex_};
    held_ = true;
    changed_.wait(lock, [&] { return !busy_; });
  }
  for (auto& process : waiting_)
    (void)process.settle(on_gpu() ? gpu_start_deadline_ms : start_deadline_ms);
}

void candidate_pool::release() {
  std::lock_guard guard{mutex_};
  held_ = false;
  changed_.notify_all();
}

std::shared_future<void> candidate_pool::retire(std::unique_ptr<slot> x) {
  std::promise<void> gone;
  auto result = gone.get_future().share();
  if (!on_gpu()) {
    x.reset();
    gone.set_value();
    return result;
  }
  x->process().kill();
  latest_ = result;
  std::lock_guard guard{mutex_};
  retired_.push_back({std::move(x), std::move(gone)});
  changed_.notify_all();
  return result;
}

bool candidate_pool::await_retired() const {
  return !latest_.valid() ||
         latest_.wait_for(std::chrono::seconds{10}) == std::future_status::ready;
}

void candidate_pool::work() {
  std::unique_lock lock{mutex_};
  for (;;) {
    filling_ = waiting_.size() < size_ && (filling_ || waiting_.empty());
    bool may = !held_ || ending_;
    busy_ = may && (!retired_.empty() || (filling_ && !ending_));
    if (!busy_) {
      if (ending_) return;
      changed_.notify_all();
      changed_.wait(lock);
    } else if (!retired_.empty()) {
      auto x = std::move(retired_.front());
      retired_.pop_front();
      lock.unlock();
      x.process.reset();
      x.gone.set_value();
      lock.lock();
    } else {
      lock.unlock();
      auto process = candidate_process::start(walls_, options_);
      lock.lock();
      if (process)
        waiting_.push_back(std::move(*process));
      else // take() will try again and report
        size_ = waiting_.size();
    }
  }
}

} // namespace kernelmill
