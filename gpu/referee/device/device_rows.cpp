#include "gpu/referee/device/device_rows.hpp"

#include <numeric>

#include "gpu/referee/device/slots.hpp"

namespace kernelmill {

namespace {

constexpr uint64_t first_timed_call = 1'000'000; // contents of correctness cases have lower numbers
constexpr unsigned sample_words = 512;           // of each output and set

} // namespace

device_rows::device_rows(judged_run& run)
    : run_(run), arena_(*run.prepared.arena()), gpu_(arena_.gpu()), spec_(run.prepared.spec()),
      sets_(arena_.timed_sets()),
      samples_(gpu_.cuda(), 4 * sample_words * sets_ * spec_.arguments.size()),
      row_number_(first_timed_call) {
  arena_.select(spec_.timed, sets_);
}

void device_rows::note_spans(std::vector<span>& into) const {
  into.push_back({"timing_fill", filling_});
  into.push_back({"timing_rows", calling_});
  into.push_back({"timing_audit", auditing_});
}

// Fresh contents for every set; also for the baseline, which is ours and needs none: with what
// the row before had left it was measured 1 % slower than the same kernel of a candidate.
void device_rows::renew() {
  ++row_number_;
  for (unsigned set = 0; set < sets_; ++set) fill(set, contents::delivered);
  arena_.poison_outputs();
}

std::optional<row_times> device_rows::make(candidate_process& who, unsigned count) {
  row_times result;
  called_ = count + 1;
  double entered = now_seconds();
  renew();
  result.flush = gpu_.flush();
  double prepared = now_seconds();
  filling_ += prepared - entered;
  draw_order();
  std::vector<std::vector<int64_t>> calls;
  for (unsigned i = 0; i < called_; ++i) calls.push_back(values(order_[i]));
  bool ok = who.run(candidate_command::call, calls[0], run_.call_limit()).has_value();
  bool queued = run_.program != nullptr && &who == &run_.candidate.process();
  if (ok && queued) ok = run_.program->queue({calls.begin() + 1, calls.end()}, run_.call_limit());
  double started = now_seconds();
  ok = ok && (queued ? who.run(candidate_command::release, {}, run_.call_limit()).has_value()
                     : run_calls(who, calls));
  result.done = now_seconds() - started;
  if (!ok) return std::nullopt;
  if (queued) result.by_events = run_.program->event_seconds();
  sample("take_sample");
  gpu_.synchronize();
  result.gap = now_seconds() - started - result.done;
  calling_ += now_seconds() - prepared;
  return result;
}

// A library is told of each set only when the call before it has returned.
bool device_rows::run_calls(candidate_process& who,
                            const std::vector<std::vector<int64_t>>& calls) {
  for (unsigned i = 1; i < called_; ++i)
    if (!who.run(candidate_command::launch, calls[i], run_.call_limit())) return false;
  return who.run(candidate_command::finish, {}, run_.call_limit()).has_value();
}

// Writes the contents of a set where they belong, or counts what differs from them.
void device_rows::fill(unsigned set, contents what) {
  for (size_t i = 0; i < spec_.arguments.size(); ++i) {
    const auto& arg = spec_.arguments[i];
    if (arg.role == argument_role::scalar || !is_filled(arg)) continue;
    auto key = derive_key(run_.record.seed, "timed", row_number_ * sets_ + set, arg.name);
    bool verify = what == contents::verified;
    auto at =
        what == contents::reference ? run_.prepared.truth()->input(i) : arena_.address(i, set);
    uint64_t n = arena_.count(i);
    if (arg.type == dtype::f32) {
      // The loader takes no task whose timed shape a GPU cannot fill.
      auto how = find_device_fill(fill_of(arg, spec_.timed), arg.type).value_or(device_fill{});
      verify ? gpu_.verify(at, n, how, key) : gpu_.fill(at, n, how, key);
    } else {
      auto low = arg.fill_range[0].evaluate(spec_.timed.scalars).value_or(0);
      auto high = arg.fill_range[1].evaluate(spec_.timed.scalars).value_or(1);
      verify ? gpu_.verify(at, n, low, high, key) : gpu_.fill(at, n, low, high, key);
    }
  }
}

void device_rows::draw_order() {
  order_.resize(sets_);
  std::iota(order_.begin(), order_.end(), 0u);
  for (size_t i = sets_; i > 1; --i) std::swap(order_[i - 1], order_[run_.next_order() % i]);
  sample_seed_ = static_cast<uint32_t>(run_.next_order());
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

void device_rows::sample(const char* kernel) {
  size_t next = 0;
  bool taking = std::string_view{kernel} == "take_sample";
  for (unsigned k = 0; k < called_; ++k)
    for (size_t i = 0; i < spec_.arguments.size(); ++i) {
      if (!is_output(spec_.arguments[i])) continue;
      auto at = arena_.address(i, order_[k]);
      uint64_t n = arena_.count(i);
      auto into = samples_.address() + 4 * sample_words * next++;
      auto seed = sample_seed_ + k;
      if (taking)
        gpu_.launch(kernel, sample_words, at, n, seed, into, sample_words);
      else
        gpu_.launch(kernel, sample_words, at, n, seed, into, sample_words, gpu_.audit_address());
    }
}

// Device code runs no more when its outputs are looked at, so nobody changes its inputs then.
bool device_rows::in_place() const {
  return run_.program != nullptr;
}

device_truth::reads device_rows::source() const {
  return in_place() ? device_truth::reads::set : device_truth::reads::own_copy;
}

// The first call has no time that anybody could shorten, so its result is not compared.
device_audit device_rows::audit() {
  double started = now_seconds();
  gpu_.begin_audit();
  sample("check_sample");
  arena_.check_guards();
  for (unsigned k = 0; k < called_; ++k) fill(order_[k], contents::verified);
  for (unsigned k = 1; k < called_; ++k) {
    if (!in_place()) fill(order_[k], contents::reference);
    run_.prepared.truth()->check(spec_.timed, arena_, order_[k], source());
  }
  for (unsigned k = called_; k < sets_; ++k) count_unasked(order_[k]);
  auto found = gpu_.end_audit();
  auditing_ += now_seconds() - started;
  return found;
}

void device_rows::count_unasked(unsigned set) {
  for (size_t i = 0; i < spec_.arguments.size(); ++i) {
    const auto& arg = spec_.arguments[i];
    uint64_t n = arena_.count(i);
    if (is_output(arg))
      gpu_.launch("count_written", n, arena_.address(i, set), n,
                  arg.type == dtype::f32 ? poison_f32 : poison_i32, gpu_.audit_address());
  }
}

std::string device_rows::describe(const device_audit& found) {
  if (!in_place()) fill(static_cast<unsigned>(found.bad_set), contents::reference);
  return run_.prepared.truth()->describe(spec_.timed, arena_, found, source());
}

} // namespace kernelmill
