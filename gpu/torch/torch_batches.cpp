#include "gpu/torch/torch_batches.hpp"

#include <algorithm>
#include <cstring>

#include "gpu/referee/batch_record.hpp"
#include "gpu/referee/clock.hpp"
#include "gpu/referee/measured_run.hpp"
#include "gpu/task/distribution.hpp"
#include "gpu/timing/thresholds.hpp"
#include "messages/base/json_fields.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {

using nlohmann::json;

torch_batches::torch_batches(asking ask, double deadline, bool on_gpu)
    : ask_(std::move(ask)), deadline_(deadline), on_gpu_(on_gpu),
      batch_seconds_(on_gpu ? timing::batch_seconds : timing::module_batch_seconds), patterns_{
                                                                                         "own"} {
  auto seed = draw_seed();
  std::memcpy(&state_, seed.data(), sizeof state_);
}

bool torch_batches::expired() const {
  return spent_ || now_seconds() > deadline_ - 1;
}

bool torch_batches::read(const std::optional<json>& answer, timing::batch_sample& into) {
  if (!answer) return false;
  spent_ = spent_ || flag_in(*answer, "spent", false);
  if (spent_) return false;
  into.calls = static_cast<unsigned>(std::clamp(number_in(*answer, "calls"), 1.0, 1e6));
  into.fill = number_in(*answer, "fill");
  into.out = number_in(*answer, "out");
  into.inside = number_in(*answer, "inside");
  into.disturbed = flag_in(*answer, "disturbed", false);
  waited_ = flag_in(*answer, "has_waited", false);
  direct_ = flag_in(*answer, "direct", false);
  return true;
}

bool torch_batches::make(timing::batch_side side, const timing::batch_order& order, size_t number,
                         timing::batch_sample& into) {
  std::vector<std::string> patterns;
  for (size_t i : order.patterns) patterns.push_back(patterns_[i]);
  bool single = order.form == timing::batch_form::single;
  bool is_baseline = side == timing::batch_side::baseline;
  bool made = read(ask_({{"op", "batch"},
                         {"side", is_baseline ? "baseline" : "candidate"},
                         {"patterns", patterns},
                         {"calls", single ? 1 : calls_},
                         {"apart", order.form == timing::batch_form::apart},
                         {"number", number}}),
                   into);
  if (made && is_baseline) {
    ++seen_.calls;
    seen_.disturbed += waited_ ? 1 : 0;
  }
  return made;
}

bool torch_batches::calibrate(const json& opened, const std::string& key, torch_calibration& kept) {
  most_ = static_cast<unsigned>(std::clamp(number_in(opened, "sets"), 1.0, 1e6));
  if (kept.key == key && now_seconds() - kept.when < timing::calibration_holds) {
    known_ = kept.known;
    return true;
  }
  size_t number = 0;
  auto make_one = [&](const timing::batch_order& order, unsigned calls, timing::batch_sample& x) {
    calls_ = calls;
    return make(timing::batch_side::baseline, order, ++number, x);
  };
  auto found = timing::learn_baseline(make_one, batch_seconds_, most_);
  if (!found) return false;
  known_ = *found;
  kept = {key, now_seconds(), known_};
  return true;
}

// A candidate that is faster than the baseline has more calls in a batch.
bool torch_batches::warm_up() {
  timing::batch_sample x;
  seen_ = {};
  if (!read(ask_({{"op", "warm"}, {"calls", known_.calls}}), x)) return false;
  double mine = known_.before.besides.calls(x) / std::max(x.calls, 1u);
  seen_.behind = mine / known_.before.call;
  call_ = std::min(mine, known_.before.call);
  calls_ = timing::calls_of(call_, batch_seconds_,
                            std::min(most_, std::max(1u, known_.calls) * timing::most_longer));
  before_ = known_.before;
  // A candidate that stands still slows no baseline, and a CPU is now faster, now slower.
  if (!on_gpu_) {
    before_.call = before_.call_alone = 0;
    before_.noise = timing::module_noise;
  }
  for (double& seconds : before_.fills) seconds *= static_cast<double>(calls_) / known_.calls;
  return true;
}

void torch_batches::measure(std::vector<std::string> patterns, double half_width,
                            evaluation_record& into) {
  patterns_ = std::move(patterns);
  auto& timing = into.timing;
  timing.clock = "outside, batches less the baseline's overhead";
  auto end = timing::timing_end::over;
  timing::timing_wish wish;
  if (warm_up()) {
    wish.patterns = patterns_.size();
    wish.half_width = half_width;
    wish.together = std::min<size_t>(timing::patterns_a_batch, most_);
    wish.one_by_one = calls_ == 1;
    wish.own_streams = on_gpu_;
    if (!on_gpu_) {
      wish.nominal = timing::module_nominal;
      wish.rounds = timing::host_rounds;
      wish.most_more = timing::most_more_host_seconds;
    }
    wish.call = call_;
    wish.draw = [this] { return next_draw(state_); };
  }
  timing::controller control{*this, wish, before_};
  if (call_ > 0) end = control.run();
  if (spent_ || end == timing::timing_end::short_of_time) {
    write_too_few(control, timing);
  } else if (end == timing::timing_end::decided) {
    if (direct_ && on_gpu_) timing.note = "its calls are timed with their launches";
    write_batches(control, before_, patterns_, into);
    seen_.behind = timing.baseline.behind > 0 ? timing.baseline.behind : seen_.behind;
  }
  // What the candidate waited for speaks against no machine.
  timing.baseline.calls = seen_.calls;
  timing.baseline.disturbed = seen_.disturbed;
  timing.baseline.behind = seen_.behind;
}

} // namespace kernelmill
