#include "gpu/referee/device/device_rows.hpp"

#include <numeric>

#include <unistd.h>

#include "gpu/referee/clock.hpp"
#include "gpu/referee/device/slots.hpp"
#include "gpu/referee/scheduling.hpp"

namespace kernelmill {

namespace {

constexpr uint64_t first_timed_row = 1'000'000; // contents of correctness cases have lower numbers
constexpr unsigned sample_words = 512;          // of each output and set
constexpr double gate_patience = 0.02;          // seconds; a launch takes microseconds

// For a core, of who makes a row and of who waits for that.
double waited_by_both(const row_maker& who) {
  return waited_seconds(who.process.pid()) + waited_seconds(::getpid());
}

} // namespace

device_rows::device_rows(prepared_task& prepared, device_arena& arena, const secret_seed& seed,
                         std::string name, std::function<uint64_t()> draw)
    : prepared_(prepared), arena_(arena), gpu_(arena.gpu()), spec_(prepared.spec()), seed_(seed),
      name_(std::move(name)), draw_(std::move(draw)),
      kinds_(prepared.quiet ? prepared.quiet->kinds : kinds_of_contents(spec_)),
      samples_(gpu_.cuda(), size_t{4} * sample_words * arena.timed_sets() * spec_.arguments.size()),
      order_there_(gpu_.cuda(), size_t{4} * (arena.timed_sets() + 1)),
      row_number_(first_timed_row) {
  use(arena.timed_sets());
}

void device_rows::use(unsigned sets) {
  sets_ = sets;
  arena_.select(spec_.timed, sets_ + 1);
  gpu_.synchronize();
}

void device_rows::note_spans(std::vector<span>& into) const {
  into.push_back({"timing_fill", filling_});
  into.push_back({"timing_rows", calling_});
  into.push_back({"timing_audit", auditing_});
}

std::optional<row_times> device_rows::make(const row_maker& who, const row_order& x) {
  double entered = now_seconds();
  row_times result;
  result.calls = called_ = x.calls;
  kind_ = x.kind;
  in_place_ = who.program != nullptr;
  ++row_number_;
  draw_order();
  if (!call_alone(who, x)) return std::nullopt;
  bool gated = x.clock == paid_clock::device;
  if (gated && !close_gate(who, x)) return std::nullopt;
  double waited = waited_by_both(who);
  result.contents = put_contents(x.kind);
  double there = now_seconds();
  filling_ += there - entered;
  bool ok = gated ? who.process.release(x.limit_ms).has_value() : run_calls(who, x);
  result.done = now_seconds() - there;
  if (!gated) result.launched = launched_ - there;
  if (!ok) return std::nullopt;
  if (gated && in_place_) result.by_events = who.program->event_seconds();
  sample("take_sample", true);
  gpu_.synchronize();
  result.gap = now_seconds() - there - result.done;
  result.waited = waited_by_both(who) - waited;
  calling_ += now_seconds() - there;
  return result;
}

// Brings the process and what it has loaded to where a row finds it. Its contents are of the task's
// own kind, so that it tells nothing of the row's.
bool device_rows::call_alone(const row_maker& who, const row_order& x) {
  for_each_filled(0, [&](size_t i, const content_how& how, const content_key& key) {
    gpu_.fill(arena_.sets_of(i, sets_, 1), spec_.arguments[i].type, how, key);
  });
  arena_.poison_outputs(sets_, 1);
  gpu_.synchronize();
  return who.process.run(candidate_command::call, values(sets_), x.limit_ms).has_value();
}

// Hands over all calls, which wait for the gate. Nothing here waits for them: who does is helped by
// candidate_process.
bool device_rows::close_gate(const row_maker& who, const row_order& x) {
  gate_forced_ = false;
  if (who.program != nullptr) return who.program->queue(row_values(), x.limit_ms);
  if (!who.process.close_gate(gate_patience, x.limit_ms) || !launch_calls(who, x)) return false;
  gate_forced_ = who.process.gate_was_forced();
  return true;
}

// A process is told of each set only when the call before it has returned.
bool device_rows::launch_calls(const row_maker& who, const row_order& x) {
  auto command = x.apart ? candidate_command::apart : candidate_command::launch;
  for (unsigned k = 0; k < called_; ++k) {
    if (!who.process.run(command, values(order_[k]), x.limit_ms)) return false;
    if (k == 0) launched_ = now_seconds();
  }
  return true;
}

bool device_rows::run_calls(const row_maker& who, const row_order& x) {
  return launch_calls(who, x) &&
         who.process.run(candidate_command::finish, {}, x.limit_ms).has_value();
}

// All of it is queued at once, behind work of ours that is over: so the GPU is ours, and somebody
// else's work makes this longer. Outputs come last: what was written there on a first sight of the
// contents is gone.
double device_rows::put_contents(size_t kind) {
  gpu_.unpin_cache();
  gpu_.check("hand over an order",
             gpu_.cuda().copy_to_device(order_there_.address(), order_.data(), 4 * order_.size()));
  gpu_.synchronize();
  double started = now_seconds();
  for_each_filled(kind, [&](size_t i, const content_how& how, const content_key& key) {
    gpu_.fill(arena_.sets_of(i, 0, sets_), spec_.arguments[i].type, how, key);
  });
  arena_.poison_outputs(0, sets_);
  gpu_.push_out_cache(arena_.left_to_write(gpu_.cache_bytes(), sets_));
  gpu_.synchronize();
  return now_seconds() - started;
}

double device_rows::fill_seconds(size_t kind) {
  ++row_number_;
  draw_order();
  return put_contents(kind);
}

// Visits every input with how its contents of one kind are made.
template <class Visit>
void device_rows::for_each_filled(size_t kind, Visit visit) {
  for (size_t i = 0; i < spec_.arguments.size(); ++i) {
    const auto& arg = spec_.arguments[i];
    if (arg.role == argument_role::scalar || !is_filled(arg)) continue;
    visit(i, content_of(spec_, i, kinds_[kind]), derive_key(seed_, name_, row_number_, arg.name));
  }
}

void device_rows::draw_order() {
  order_.resize(sets_);
  std::iota(order_.begin(), order_.end(), 0u);
  for (size_t i = sets_; i > 1; --i) std::swap(order_[i - 1], order_[draw_() % i]);
  sample_seed_ = static_cast<uint32_t>(draw_());
}

std::vector<int64_t> device_rows::values(unsigned set) const {
  std::vector<int64_t> result;
  for (size_t i = 0; i < spec_.arguments.size(); ++i) {
    const auto& arg = spec_.arguments[i];
    result.push_back(arg.role == argument_role::scalar
                         ? spec_.timed.scalars.at(arg.name)
                         : static_cast<int64_t>(arena_.offset(i, set)));
  }
  return result;
}

std::vector<std::vector<int64_t>> device_rows::row_values() const {
  std::vector<std::vector<int64_t>> result;
  for (unsigned k = 0; k < called_; ++k) result.push_back(values(order_[k]));
  return result;
}

void device_rows::sample(const char* kernel, bool taking) {
  size_t next = 0;
  for (size_t i = 0; i < spec_.arguments.size(); ++i) {
    if (!is_output(spec_.arguments[i])) continue;
    auto x = arena_.sets_of(i, 0, sets_);
    auto into = samples_.address() + size_t{4} * sample_words * called_ * next++;
    if (taking)
      gpu_.launch(kernel, called_, sample_words, x.first, x.count, x.stride, order_there_.address(),
                  sample_seed_, into, sample_words);
    else
      gpu_.launch(kernel, called_, sample_words, x.first, x.count, x.stride, order_there_.address(),
                  sample_seed_, into, sample_words, gpu_.audit_address());
  }
}

// Device code runs no more when its outputs are looked at, so nobody changes its inputs then.
device_truth::reads device_rows::source() const noexcept {
  return in_place_ ? device_truth::reads::set : device_truth::reads::own_copy;
}

// The reference reads a copy of its own where a candidate's process may still change the other.
void device_rows::give_reference(unsigned set) {
  if (in_place_) return;
  for_each_filled(kind_of(set), [&](size_t i, const content_how& how, const content_key& key) {
    auto x = arena_.sets_of(i, set, 1);
    x.first = prepared_.truth()->input(i);
    gpu_.fill(x, spec_.arguments[i].type, how, key);
  });
}

void device_rows::check_truth(unsigned set, double share_of_bounds) {
  give_reference(set);
  prepared_.truth()->check(spec_.timed, arena_, set, source(), share_of_bounds);
}

device_audit device_rows::audit(double share_of_bounds) {
  double started = now_seconds();
  gpu_.begin_audit();
  sample("check_sample", false);
  arena_.check_guards();
  auto verify = [&](size_t kind, unsigned first, unsigned count) {
    for_each_filled(kind, [&](size_t i, const content_how& how, const content_key& key) {
      gpu_.verify(arena_.sets_of(i, first, count), spec_.arguments[i].type, how, key);
    });
  };
  verify(kind_, 0, sets_);
  verify(0, sets_, 1);
  for (unsigned k = 0; k < called_; ++k) check_truth(order_[k], share_of_bounds);
  check_truth(sets_, 1); // of the task's own kind
  for (unsigned k = called_; k < sets_; ++k) count_unasked(order_[k]);
  auto found = gpu_.end_audit();
  auditing_ += now_seconds() - started;
  return found;
}

void device_rows::count_unasked(unsigned set) {
  for (size_t i = 0; i < spec_.arguments.size(); ++i) {
    const auto& arg = spec_.arguments[i];
    if (!is_output(arg)) continue;
    uint64_t n = arena_.count(i);
    gpu_.launch("count_written", 1, n, arena_.address(i, set), n,
                arg.type == dtype::f32 ? poison_f32 : poison_i32, gpu_.audit_address());
  }
}

std::string device_rows::describe(const device_audit& found) {
  auto set = static_cast<unsigned>(found.bad_set);
  give_reference(set);
  auto text = prepared_.truth()->describe(spec_.timed, arena_, found, source());
  auto kind = kind_of(set);
  return kind == 0 ? text : text + ", contents " + kinds_[kind].name;
}

} // namespace kernelmill
