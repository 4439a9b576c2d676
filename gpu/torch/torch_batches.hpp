#pragma once

// INTERNAL to gpu/torch: the timing of a module by batches. The torch referee makes them; which
// come, and what they say, is decided here and in gpu/timing.

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "gpu/referee/evaluation.hpp"
#include "gpu/timing/controller.hpp"
#include "gpu/torch/torch_lane.hpp"

namespace kernelmill {

/// Thread safety: none.
class torch_batches final : public timing::batch_maker {
public:
  /// One exchange with the torch referee; nothing where the evaluation is over, with its reason
  /// kept elsewhere.
  using asking = std::function<std::optional<nlohmann::json>(nlohmann::json)>;

  torch_batches(asking ask, double deadline, bool on_gpu);

  /// Learns what `opened`, the answer to "open", lacks in `kept`. False when that failed.
  bool calibrate(const nlohmann::json& opened, const std::string& key, torch_calibration& kept);

  /// Seconds of a call of the baseline, as calibrate() has learned it.
  double baseline_call() const noexcept { return known_.before.call; }

  /// Times the candidate, which is right. `patterns`: kinds of contents, the problem's own first.
  void measure(std::vector<std::string> patterns, double half_width, evaluation_record& into);

  /// Whether the time of the evaluation ended a batch.
  bool spent() const noexcept { return spent_; }

  bool make(timing::batch_side side, const timing::batch_order& order, size_t number,
            timing::batch_sample& into) override;
  bool expired() const override;

private:
  bool read(const std::optional<nlohmann::json>& answer, timing::batch_sample& into);
  bool warm_up();

  asking ask_;
  double deadline_;
  bool on_gpu_;
  double batch_seconds_;
  uint64_t state_ = 0;
  std::vector<std::string> patterns_;
  timing::known_baseline known_;
  timing::calibration before_; // of batches as long as the candidate's
  unsigned most_ = 1;          // calls of a batch
  unsigned calls_ = 1;
  double call_ = 0; // seconds, of the faster side
  bool direct_ = false;
  bool waited_ = false;  // the latest batch, for a core
  baseline_record seen_; // its batches, and how far behind it the candidate was when it warmed up
  bool spent_ = false;
};

} // namespace kernelmill
