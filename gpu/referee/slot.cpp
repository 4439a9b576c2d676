#include "gpu/referee/slot.hpp"

#include <algorithm>
#include <cstring>

#include <unistd.h>

#include "gpu/referee/clock.hpp"
#include "gpu/referee/scheduling.hpp"

namespace kernelmill {

namespace {

constexpr size_t empty_calls = 16;
constexpr int empty_call_deadline_ms = 2'000;

size_t size_of(const taken_output& x, dtype type) {
  return 4 * (type == dtype::f32 ? x.f32.size() : x.i32.size());
}

} // namespace

std::byte* bytes_of(taken_output& x, dtype type) {
  return type == dtype::f32 ? reinterpret_cast<std::byte*>(x.f32.data())
                            : reinterpret_cast<std::byte*>(x.i32.data());
}

const std::byte* bytes_of(const taken_output& x, dtype type) {
  return type == dtype::f32 ? reinterpret_cast<const std::byte*>(x.f32.data())
                            : reinterpret_cast<const std::byte*>(x.i32.data());
}

slot::slot(candidate_process process, const task& x)
    : process_(std::move(process)), task_(&x), taken_(x.arguments.size()) {
  // nop
}

expected<void> slot::attach(const std::vector<shared_memory>& parameters, int library,
                            const std::string& function) {
  std::vector<std::string> names;
  for (const auto& arg : task_->arguments) names.push_back(arg.name);
  process_.name_parameters(std::move(names));
  return process_.attach(library, function, parameters);
}

std::optional<double> slot::measure_overhead(const workload* work) {
  if (rests_) use_cores(core_choice::beside);
  std::vector<double> times;
  while (times.size() < empty_calls) {
    auto seconds = empty_call(work);
    if (!seconds) return std::nullopt;
    times.push_back(*seconds);
  }
  if (rests_) use_cores(core_choice::any);
  run_anywhere();
  std::sort(times.begin(), times.end());
  return times[empty_calls / 4];
}

std::optional<double> slot::empty_call(const workload* work) {
  if (work != nullptr) deliver(*work, true);
  auto seconds = process_.run(candidate_command::nothing, {}, empty_call_deadline_ms);
  if (!rests_ || !seconds) return seconds;
  process_.stop(); // what it has left to do would be in the time of who is called next
  cpu_mark_ = process_.cpu_seconds();
  return seconds;
}

void slot::use_cores(core_choice which) {
  bool was = cores_ == core_choice::beside, will_be = which == core_choice::beside;
  if (will_be && !was) own_cores_ = cores_of(process_.pid());
  if (was && !will_be) let_roam(process_.pid(), own_cores_);
  cores_ = which;
}

std::optional<error> slot::load(int deadline_ms) {
  if (!process_.run(candidate_command::load, {}, deadline_ms)) return process_.ending()->fault;
  cpu_mark_ = process_.cpu_seconds();
  return process_.load_fault();
}

std::optional<std::string> slot::deliver(const workload& work, bool cold) {
  if (rests_ && !process_.stopped()) {
    process_.stop();
    cpu_mark_ = process_.cpu_seconds();
  }
  auto changed = changed_since();
  if (cold && cores_ == core_choice::beside) keep_beside(process_.pid());
  if (cold && cores_ == core_choice::any) run_beside(process_.pid());
  called_ = false;
  place(work, cold);
  return changed;
}

std::optional<call_measure> slot::call(const workload& work, int deadline_ms, uint64_t order) {
  std::vector<int64_t> values;
  for (size_t i = 0; i < task_->arguments.size(); ++i) {
    const auto& arg = task_->arguments[i];
    values.push_back(arg.role == argument_role::scalar ? work.selected().scalars.at(arg.name)
                                                       : static_cast<int64_t>(offset(i)));
  }
  double before = process_.cpu_seconds();
  double theirs = waited_seconds(process_.pid());
  double ours = waited_seconds(::getpid());
  auto seconds = process_.run(candidate_command::call, values, deadline_ms);
  if (!seconds) return std::nullopt;
  double after = process_.cpu_seconds();
  double done = now_seconds();
  if (rests_) process_.halt();
  for (size_t i = 0; i < taken_.size(); ++i) {
    const auto& arg = task_->arguments[i];
    if (!is_output(arg)) continue;
    size_t count = work.bytes(i) / 4;
    arg.type == dtype::f32 ? taken_[i].f32.resize(count) : taken_[i].i32.resize(count);
    copy_out(i, taken_[i], order);
  }
  called_ = true;
  call_measure result;
  result.seconds = *seconds;
  result.cpu_seconds = after - before;
  result.idle_cpu = before - cpu_mark_;
  // Of both: the one may be kept from starting, the other from seeing that it is done; but who goes
  // on takes the core from who let it, which is no wait for somebody else.
  result.waited = waited_seconds(process_.pid()) - theirs +
                  std::max(0.0, waited_seconds(::getpid()) - ours - result.cpu_seconds);
  cpu_mark_ = after;
  if (rests_) rest(result, done);
  return result;
}

void slot::rest(call_measure& into, double done) {
  into.still = process_.stop() == standing::still;
  double now = process_.cpu_seconds();
  into.late_cpu = std::min(now - cpu_mark_, now_seconds() - done);
  into.threads = threads_of(process_.pid());
  cpu_mark_ = now;
}

std::optional<std::string> slot::changed_since() const {
  if (!called_) return std::nullopt;
  for (size_t i = 0; i < taken_.size(); ++i) {
    const auto& arg = task_->arguments[i];
    if (!is_output(arg)) continue;
    auto now = taken_[i]; // of the same size
    copy_out(i, now, 0);
    const auto* a = bytes_of(taken_[i], arg.type);
    const auto* b = bytes_of(now, arg.type);
    size_t bytes = size_of(now, arg.type);
    if (std::memcmp(a, b, bytes) == 0) continue;
    size_t changed = 0;
    for (size_t k = 0; k < bytes; k += 4) changed += std::memcmp(a + k, b + k, 4) != 0;
    return std::to_string(changed) + " elements of " + arg.name +
           " changed after the call was done";
  }
  return std::nullopt;
}

} // namespace kernelmill
