#include "gpu/referee/device/batches.hpp"

#include <algorithm>
#include <numeric>

#include <unistd.h>

#include "gpu/referee/clock.hpp"
#include "gpu/referee/device/slots.hpp"
#include "gpu/referee/scheduling.hpp"

namespace kernelmill {

namespace {

constexpr uint64_t first_timed = 1'000'000; // inputs of correctness cases have lower numbers
constexpr unsigned words_sampled = 512;     // of each output and call
constexpr double queue_patience = 0.02;     // seconds; a launch takes microseconds
constexpr unsigned queued_launches = 480;   // the driver's queue has some 1,000 places
constexpr double most_waited = 20e-6;       // seconds that the referee had no core

} // namespace

device_batches::device_batches(prepared_task& prepared, device_arena& arena,
                               candidate_process& process, program_slot* program,
                               const secret_seed& seed, std::vector<contents_kind> kinds,
                               std::function<uint64_t()> draw)
    : prepared_(prepared), arena_(arena), gpu_(arena.gpu()), process_(process), program_(program),
      spec_(prepared.spec()), seed_(seed), kinds_(std::move(kinds)), draw_(std::move(draw)),
      samples_(gpu_.cuda(),
               size_t{4} * words_sampled * arena.timed_sets() * spec_.arguments.size()),
      order_there_(gpu_.cuda(), size_t{4} * (arena.timed_sets() + 1)),
      most_calls_(program != nullptr ? program->most_queued() : queued_launches / 4) {
  gpu_.check("share a page with a process",
             gpu_.cuda().host_register(process_.shared(), page_bytes, cuda::host_mapped));
  gpu_.check("find a page on the GPU", gpu_.cuda().host_pointer(&page_, process_.shared(), 0));
  use(arena.timed_sets());
}

device_batches::~device_batches() {
  (void)gpu_.cuda().host_unregister(process_.shared());
}

void device_batches::use(unsigned sets) {
  sets_ = sets;
  arena_.select(spec_.timed, sets_ + 1); // one more, for calls that only warm up
  gpu_.synchronize();
}

void device_batches::note_spans(std::vector<span>& into) const {
  into.push_back({"timing_fill", preparing_});
  into.push_back({"timing_rows", calling_});
  into.push_back({"timing_audit", auditing_});
}

// Which sets are filled, with which patterns, and which of them are called in which order.
void device_batches::choose(const timing::batch_order& order) {
  bool single = order.form == timing::batch_form::single;
  apart_ = order.form == timing::batch_form::apart;
  filled_ = single ? 1 : sets_;
  first_ = single ? static_cast<unsigned>(draw_() % sets_) : 0;
  kind_of_.assign(sets_ + 1, 0);
  for (unsigned i = 0; i < filled_; ++i)
    kind_of_[first_ + i] = order.patterns[i * order.patterns.size() / filled_];
  order_.resize(filled_);
  std::iota(order_.begin(), order_.end(), first_);
  for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[draw_() % i]);
  if (single) return;
  // A candidate knows how many calls come only when they are over.
  unsigned least = std::max(sets_ * 3 / 4, 1u);
  unsigned calls = least + static_cast<unsigned>(draw_() % std::max(sets_ - least, 1u));
  order_.resize(std::min(calls, direct_ ? calls : most_calls_));
}

device_batches::outcome device_batches::make(const timing::batch_order& order, size_t number,
                                             int limit_ms, timing::batch_sample& into) {
  double entered = now_seconds();
  number_ = number;
  choose(order);
  into = {};
  into.calls = static_cast<unsigned>(order_.size());
  sample_seed_ = static_cast<uint32_t>(draw_());
  token_ = process_.next_batch();
  gpu_.unpin_cache();
  gpu_.check("hand over an order",
             gpu_.cuda().copy_to_device(order_there_.address(), order_.data(), 4 * order_.size()));
  if (direct_ ? !warm(limit_ms) : !queue(limit_ms)) return outcome::ended;
  if (!direct_ && process_.gate_was_forced()) {
    if (!process_.run(candidate_command::finish, {}, limit_ms)) return outcome::ended;
    most_calls_ = std::max(1u, into.calls * 3 / 4);
    return outcome::not_queued;
  }
  if (rests()) {
    process_.halt();
    (void)process_.stop();
  }
  gpu_.synchronize();
  double waited = waited_seconds(::getpid());
  double started = now_seconds();
  preparing_ += started - entered;
  fill();
  gpu_.open_gate(page_ + offsetof(control_page, batch) + offsetof(batch_words, open), token_);
  while (!gpu_.has_opened()) __builtin_ia32_pause();
  double released = now_seconds();
  into.fill = released - started;
  bool ok = true;
  if (direct_)
    ok = process_.begin_batch(0, 0, limit_ms) && launch(limit_ms) &&
         process_.end_batch(token_, limit_ms) &&
         process_.run(candidate_command::finish, {}, limit_ms).has_value();
  else
    ok = await_completion(limit_ms);
  sample("take_sample", true);
  gpu_.synchronize();
  into.out = now_seconds() - released;
  into.disturbed = waited_seconds(::getpid()) - waited > most_waited;
  if (rests()) process_.go_on();
  if (!direct_ && !process_.run(candidate_command::finish, {}, limit_ms)) return outcome::ended;
  into.inside = process_.seconds_inside();
  calling_ += now_seconds() - started;
  return ok ? outcome::made : outcome::ended;
}

double device_batches::fill_seconds(const timing::batch_order& order) {
  choose(order);
  gpu_.unpin_cache();
  gpu_.synchronize();
  double started = now_seconds();
  fill();
  gpu_.open_gate(page_ + offsetof(control_page, batch) + offsetof(batch_words, open),
                 process_.next_batch());
  while (!gpu_.has_opened()) __builtin_ia32_pause();
  return now_seconds() - started;
}

// Which process says that it is over is no matter: the clock goes on until outputs are seen.
bool device_batches::await_completion(int limit_ms) const {
  double until = now_seconds() + limit_ms * 1e-3;
  while (!process_.completed(token_)) {
    if (now_seconds() > until) return false;
    __builtin_ia32_pause();
  }
  return true;
}

bool device_batches::queue(int limit_ms) {
  return process_.begin_batch(token_, queue_patience, limit_ms) && launch(limit_ms) &&
         process_.end_batch(token_, limit_ms);
}

// The process is told of each set only when the call before it has returned.
bool device_batches::launch(int limit_ms) {
  auto command = apart_ ? candidate_command::apart : candidate_command::launch;
  for (unsigned set : order_)
    if (!process_.run(command, values(set), limit_ms)) return false;
  return true;
}

// Brings the process to where its first launch finds it, on inputs that never come again.
bool device_batches::warm(int limit_ms) {
  for_each_input(0, [&](size_t i, const content_how& how, const content_key& key) {
    gpu_.fill(arena_.sets_of(i, sets_, 1), spec_.arguments[i].type, how, key);
  });
  arena_.poison_outputs(sets_, 1);
  gpu_.synchronize();
  return process_.run(candidate_command::call, values(sets_), limit_ms).has_value();
}

// All of it is queued at once, behind work of ours that is over. Outputs come last: what was
// written there on a first sight of the inputs is gone.
void device_batches::fill() {
  for_each_stretch([&](unsigned first, unsigned count) {
    for_each_input(kind_of_[first], [&](size_t i, const content_how& how, const content_key& key) {
      gpu_.fill(arena_.sets_of(i, first, count), spec_.arguments[i].type, how, key);
    });
  });
  arena_.poison_outputs(first_, filled_);
  gpu_.push_out_cache(arena_.left_to_write(gpu_.cache_bytes(), filled_));
}

// Visits sets with the same pattern that lie one behind the other.
template <class Visit>
void device_batches::for_each_stretch(Visit visit) {
  for (unsigned i = first_; i < first_ + filled_;) {
    unsigned end = i + 1;
    while (end < first_ + filled_ && kind_of_[end] == kind_of_[i]) ++end;
    visit(i, end - i);
    i = end;
  }
}

template <class Visit>
void device_batches::for_each_input(size_t kind, Visit visit) {
  for (size_t i = 0; i < spec_.arguments.size(); ++i) {
    const auto& arg = spec_.arguments[i];
    if (arg.role == argument_role::scalar || !is_filled(arg)) continue;
    visit(i, content_of(spec_, i, kinds_[kind]),
          derive_key(seed_, "timed", first_timed + number_, arg.name));
  }
}

std::vector<int64_t> device_batches::values(unsigned set) const {
  std::vector<int64_t> result;
  for (size_t i = 0; i < spec_.arguments.size(); ++i) {
    const auto& arg = spec_.arguments[i];
    result.push_back(arg.role == argument_role::scalar
                         ? spec_.timed.scalars.at(arg.name)
                         : static_cast<int64_t>(arena_.offset(i, set)));
  }
  return result;
}

void device_batches::sample(const char* kernel, bool taking) {
  size_t next = 0;
  auto calls = static_cast<unsigned>(order_.size());
  for (size_t i = 0; i < spec_.arguments.size(); ++i) {
    if (!is_output(spec_.arguments[i])) continue;
    auto x = arena_.sets_of(i, 0, sets_);
    auto into = samples_.address() + size_t{4} * words_sampled * calls * next++;
    if (taking)
      gpu_.launch(kernel, calls, words_sampled, x.first, x.count, x.stride, order_there_.address(),
                  sample_seed_, into, words_sampled);
    else
      gpu_.launch(kernel, calls, words_sampled, x.first, x.count, x.stride, order_there_.address(),
                  sample_seed_, into, words_sampled, gpu_.audit_address());
  }
}

device_audit device_batches::audit(size_t wide) {
  double started = now_seconds();
  gpu_.begin_audit();
  sample("check_sample", false);
  arena_.check_guards();
  for_each_stretch([&](unsigned first, unsigned count) {
    for_each_input(kind_of_[first], [&](size_t i, const content_how& how, const content_key& key) {
      gpu_.verify(arena_.sets_of(i, first, count), spec_.arguments[i].type, how, key);
    });
  });
  auto source = program_ != nullptr ? device_truth::reads::set : device_truth::reads::own_copy;
  for (unsigned set : order_) {
    // The reference reads a copy of its own where a process may still change the other.
    if (program_ == nullptr)
      for_each_input(kind_of_[set], [&](size_t i, const content_how& how, const content_key& key) {
        auto x = arena_.sets_of(i, set, 1);
        x.first = prepared_.truth()->input(i);
        gpu_.fill(x, spec_.arguments[i].type, how, key);
      });
    prepared_.truth()->check(spec_.timed, arena_, set, source,
                             kind_of_[set] < wide ? 1 : wide_bound);
  }
  for (unsigned set = first_; set < first_ + filled_; ++set) {
    if (std::find(order_.begin(), order_.end(), set) != order_.end()) continue;
    for (size_t i = 0; i < spec_.arguments.size(); ++i) {
      const auto& arg = spec_.arguments[i];
      if (!is_output(arg)) continue;
      uint64_t n = arena_.count(i);
      gpu_.launch("count_written", 1, n, arena_.address(i, set), n,
                  arg.type == dtype::f32 ? poison_f32 : poison_i32, gpu_.audit_address());
    }
  }
  auto found = gpu_.end_audit();
  auditing_ += now_seconds() - started;
  return found;
}

std::string device_batches::describe(const device_audit& found) {
  auto set = static_cast<unsigned>(found.bad_set);
  size_t kind = kind_of_[set];
  for_each_input(kind, [&](size_t i, const content_how& how, const content_key& key) {
    auto x = arena_.sets_of(i, set, 1);
    x.first = prepared_.truth()->input(i);
    gpu_.fill(x, spec_.arguments[i].type, how, key);
  });
  auto text =
      prepared_.truth()->describe(spec_.timed, arena_, found, device_truth::reads::own_copy);
  return kind == 0 ? text : text + ", inputs " + kinds_[kind].name;
}

} // namespace kernelmill
