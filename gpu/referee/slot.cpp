#include "gpu/referee/slot.hpp"

#include <cstring>

#include <unistd.h>

#include "gpu/referee/clock.hpp"
#include "gpu/referee/scheduling.hpp"
#include "gpu/referee/timing_statistics.hpp"

namespace kernelmill {

namespace {

constexpr int empty_calls = 7;
constexpr int empty_call_deadline_ms = 2'000;

std::byte* bytes_of(taken_output& x, dtype type) {
  return type == dtype::f32 ? reinterpret_cast<std::byte*>(x.f32.data())
                            : reinterpret_cast<std::byte*>(x.i32.data());
}

const std::byte* bytes_of(const taken_output& x, dtype type) {
  return type == dtype::f32 ? reinterpret_cast<const std::byte*>(x.f32.data())
                            : reinterpret_cast<const std::byte*>(x.i32.data());
}

} // namespace

expected<slot> slot::create(candidate_process process, const task& x, int library) {
  slot result{std::move(process), x};
  std::vector<const shared_buffer*> shared;
  std::vector<bool> writable;
  std::vector<std::string> names;
  for (size_t i = 0; i < x.arguments.size(); ++i) {
    const auto& arg = x.arguments[i];
    names.push_back(arg.name);
    writable.push_back(is_output(arg));
    result.buffers_.emplace_back();
    if (arg.role == argument_role::scalar) continue;
    auto buffer = shared_buffer::create(capacity_of(x, i), is_output(arg));
    if (!buffer) return tl::unexpected<error>{buffer.error()};
    result.buffers_.back() = std::move(*buffer);
  }
  for (const auto& buffer : result.buffers_) shared.push_back(buffer ? &*buffer : nullptr);
  result.taken_.resize(x.arguments.size());
  result.process_.name_parameters(std::move(names));
  if (auto ok = result.process_.attach(library, x.function, shared, writable); !ok)
    return tl::unexpected<error>{ok.error()};
  return result;
}

std::optional<double> slot::measure_overhead() {
  std::vector<double> times;
  for (int i = 0; i < empty_calls; ++i) {
    auto seconds = process_.run(candidate_command::nothing, {}, empty_call_deadline_ms);
    if (!seconds) return std::nullopt;
    times.push_back(*seconds);
  }
  return median(times);
}

std::optional<error> slot::load(int deadline_ms) {
  if (!process_.run(candidate_command::load, {}, deadline_ms)) return process_.ending()->fault;
  cpu_mark_ = process_.cpu_seconds();
  time_mark_ = now_seconds();
  return process_.load_fault();
}

std::optional<std::string> slot::deliver(const workload& work, bool cold) {
  auto changed = changed_since();
  if (cold) run_beside(process_.pid());
  called_ = false;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (!buffers_[i]) continue;
    auto& buffer = *buffers_[i];
    const auto& arg = task_->arguments[i];
    const auto& t = work.tensor(i);
    if (buffer.bytes() != work.bytes(i)) buffer.place(work.bytes(i));
    if (is_filled(arg))
      std::memcpy(buffer.payload(),
                  arg.type == dtype::f32 ? static_cast<const void*>(t.f32.data()) : t.i32.data(),
                  buffer.bytes());
    else
      buffer.poison(arg.type == dtype::f32 ? poison_f32 : poison_i32);
  }
  if (cold)
    for (const auto& buffer : buffers_)
      if (buffer) buffer->flush();
  return changed;
}

std::optional<call_measure> slot::call(const workload& work, int deadline_ms, uint64_t order) {
  std::vector<int64_t> values;
  for (size_t i = 0; i < buffers_.size(); ++i)
    values.push_back(buffers_[i] ? static_cast<int64_t>(buffers_[i]->offset())
                                 : work.selected().scalars.at(task_->arguments[i].name));
  double before = process_.cpu_seconds();
  // Of both: the one may be kept from starting, the other from seeing that it is done.
  auto waiting = [&] { return waited_seconds(process_.pid()) + waited_seconds(::getpid()); };
  double waited = waiting();
  double idle_seconds = now_seconds() - time_mark_;
  auto seconds = process_.run(candidate_command::call, values, deadline_ms);
  if (!seconds) return std::nullopt;
  double after = process_.cpu_seconds();
  take(order);
  call_measure result{*seconds, after - before, before - cpu_mark_, idle_seconds,
                      waiting() - waited};
  cpu_mark_ = after;
  time_mark_ = now_seconds();
  return result;
}

void slot::take(uint64_t order) {
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const auto& arg = task_->arguments[i];
    if (!buffers_[i] || !is_output(arg)) continue;
    size_t count = buffers_[i]->bytes() / 4;
    if (arg.type == dtype::f32)
      taken_[i].f32.resize(count);
    else
      taken_[i].i32.resize(count);
    buffers_[i]->take(bytes_of(taken_[i], arg.type), order);
  }
  called_ = true;
}

std::optional<std::string> slot::damage() const {
  for (size_t i = 0; i < buffers_.size(); ++i)
    if (buffers_[i] && is_output(task_->arguments[i]))
      if (auto where = buffers_[i]->damage())
        return task_->arguments[i].name + " was written " + *where;
  return std::nullopt;
}

std::optional<std::string> slot::changed_since() const {
  if (!called_) return std::nullopt;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const auto& arg = task_->arguments[i];
    if (!buffers_[i] || !is_output(arg)) continue;
    const auto* taken = bytes_of(taken_[i], arg.type);
    const auto* now = buffers_[i]->payload();
    if (std::memcmp(taken, now, buffers_[i]->bytes()) == 0) continue;
    size_t changed = 0;
    for (size_t k = 0; k < buffers_[i]->bytes(); k += 4)
      changed += std::memcmp(taken + k, now + k, 4) != 0;
    return std::to_string(changed) + " elements of " + arg.name +
           " changed after the call was done";
  }
  return std::nullopt;
}

} // namespace kernelmill
