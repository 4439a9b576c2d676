#include "gpu/torch/torch_evaluation.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "gpu/referee/clock.hpp"
#include "gpu/referee/device/device.hpp"
#include "gpu/referee/result_words.hpp"
#include "gpu/referee/stolen_time.hpp"
#include "gpu/referee/task_check.hpp"
#include "gpu/torch/shape_evaluation.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {

namespace {

using nlohmann::json;

constexpr uint32_t default_deadline_ms = 180'000;
// Of the deadline, what is kept to find out whose fault it was that time ran out.
constexpr double most_reserve = 10; // seconds
constexpr double reserve_share = 0.1;

std::string hex_of(capnp::Data::Reader bytes) {
  return to_hex(bytes.begin(), bytes.size());
}

/// An evaluation at all shapes of a task, one after the other while the candidate is right.
class torch_evaluations {
public:
  torch_evaluations(torch_parts parts, wire::EvaluateRequest::Reader request, double deadline)
      : parts_(parts), request_(request), deadline_(deadline) {
    // nop
  }

  void run() {
    auto loaded = load();
    if (!loaded) return fail(loaded.error());
    spec_ = *loaded;
    if (request_.getMode() == "suite" && !spec_->torch.tolerance)
      return fail(
          {fault_class::configuration, "config_inconsistent",
           "failed to judge task " + spec_->id + " by its suite's rule: it has no tolerance",
           "set evaluation.torch_mode to honest"});
    auto shapes = wanted_shapes(*spec_);
    size_t most = request_.getShapes() > 0 ? request_.getShapes() + size_t{1} : shapes.size();
    bool draws = most < shapes.size();
    planned_ = std::min(most, shapes.size());
    if (planned_ > 1 && !draws)
      if (auto fault = prepare(*spec_, shapes)) return fail(std::move(*fault));
    auto timed = std::count_if(shapes.begin(), shapes.end(), [](auto& x) { return x.timed; });
    timed = std::min(timed, static_cast<ptrdiff_t>(planned_));
    // The mean of several is known better than each.
    auto wide = std::sqrt(static_cast<double>(std::max<ptrdiff_t>(timed, 1)));
    for (size_t i = 0; i < planned_; ++i) {
      shape_order order{shapes[i], request_.getTiming().getHalfWidth() * wide, 0,
                        seed_of(shapes[i])};
      order.deadline =
          now_seconds() + (deadline_ - now_seconds()) / static_cast<double>(planned_ - i);
      results_.push_back(evaluate_shape(parts_, request_, *spec_, order));
      if (!results_.back().is_right()) break;
      if (i > 0 || !draws) continue;
      draw_shapes(shapes);
      if (auto fault = prepare(*spec_, shapes)) return fail(std::move(*fault));
    }
  }

  Message<wire::EvaluateResult> result(const stolen_time& stolen, double seconds) const {
    auto record = together(results_, planned_);
    stolen.note(record);
    return build<wire::EvaluateResult>([&](wire::EvaluateResult::Builder out) {
      write_record(record, timed_at(results_), out);
      write_trials(results_, out);
      out.setDevice(parts_.gpu != nullptr ? parts_.gpu->description()
                                          : parts_.hardware.description());
      if (parts_.gpu != nullptr) out.setDeviceUuid(parts_.gpu->uuid());
      out.setSeconds(seconds);
    });
  }

private:
  void fail(error fault) {
    results_.emplace_back();
    results_.back().record.fault = std::move(fault);
  }

  expected<task_ptr> load() const {
    auto loaded = load_task_folder(request_.getTaskDir());
    KM_TRY(loaded);
    if (std::string digest = request_.getTaskDigest();
        !digest.empty() && digest != (*loaded)->digest)
      return configuration_error("task_changed",
                                 "failed to use task " + (*loaded)->id +
                                     ": its files have changed since the run began",
                                 "start a new run, or restore the task's files");
    return loaded;
  }

  // The benchmark has one shape. A profile is of that, too.
  std::vector<judged_shape> wanted_shapes(const task& spec) const {
    bool timed = request_.getTiming().getEnabled() && !request_.getProfile();
    auto result = shapes_of(spec.torch, timed && !request_.getVisibleOnly());
    if (request_.getVisibleOnly())
      std::erase_if(result, [](const judged_shape& x) { return x.is_hidden(); });
    if (request_.getMode() == "kernelbench" || request_.getProfile()) result.resize(1);
    return result;
  }

  // Keeps the problem's own and some others, in their order: which, the evaluation's seed says,
  // and so no candidate can know it.
  void draw_shapes(std::vector<judged_shape>& shapes) const {
    std::vector<std::pair<std::string, size_t>> others;
    for (size_t i = 1; i < shapes.size(); ++i)
      others.emplace_back(sha256_hex("drawn:" + seed_of(shapes[i])), i);
    std::sort(others.begin(), others.end());
    std::vector<size_t> kept;
    for (size_t i = 0; i + 1 < planned_; ++i) kept.push_back(others[i].second);
    std::sort(kept.begin(), kept.end());
    std::vector<judged_shape> result{shapes.front()};
    for (auto i : kept) result.push_back(shapes[i]);
    shapes = std::move(result);
  }

  // Whether the problem can judge at all of these.
  std::optional<error> prepare(const task& spec, const std::vector<judged_shape>& shapes) {
    auto request = problem_of(spec);
    request.update({{"op", "prepare"},
                    {"mode", request_.getMode().cStr()},
                    {"float32", request_.getFloat32().cStr()},
                    {"variants", variants_of(shapes)}});
    auto patience = std::max(0.0, deadline_ - now_seconds()) * 1e3 + grace_ms;
    auto answer = parts_.lane.ask(request, static_cast<int>(patience));
    if (!answer) return answer.error();
    auto fault = answer->find("fault");
    if (fault == answer->end() || !fault->is_object()) return std::nullopt;
    return fault_from(*fault);
  }

  // Of another shape: what the evaluation's seed makes of its name.
  std::string seed_of(const judged_shape& at) const {
    if (at.variant == nullptr) return hex_of(request_.getSeed());
    const auto& own = results_.front().record.seed;
    return sha256_hex(to_hex(own.data(), own.size()) + ":" + at.variant->name);
  }

  torch_parts parts_;
  wire::EvaluateRequest::Reader request_;
  double deadline_ = 0;
  task_ptr spec_; // whose variants the results point to
  size_t planned_ = 1;
  std::vector<shape_result> results_;
};

} // namespace

Message<wire::EvaluateResult> evaluate_torch(torch_parts parts,
                                             wire::EvaluateRequest::Reader request) {
  double started = now_seconds();
  auto given = request.getDeadlineMs() > 0 ? request.getDeadlineMs() : default_deadline_ms;
  given -= std::min(given, request.getSanitizeMs()); // which is spent behind the evaluation
  double deadline = started + given * 1e-3 - std::min(most_reserve, reserve_share * given * 1e-3);
  stolen_time stolen;
  torch_evaluations all{parts, request, deadline};
  all.run();
  return all.result(stolen, now_seconds() - started);
}

Message<wire::CheckResult> check_torch(torch_parts parts, const std::string& directory) {
  double started = now_seconds();
  auto spec = load_task_folder(directory);
  auto ask = [&](const task& x) {
    auto request = problem_of(x);
    request["op"] = "check";
    request["variants"] = variants_of(shapes_of(x.torch, false));
    return parts.lane.ask(request, static_cast<int>(default_deadline_ms));
  };
  expected<json> answer = spec ? ask(**spec) : tl::unexpected<error>{spec.error()};
  check_record record;
  if (!answer)
    record.problems.push_back(render(answer.error()));
  else
    for (auto [name, into] :
         {std::pair{"problems", &record.problems}, std::pair{"notes", &record.notes}})
      for (const auto& x : answer->value(name, json::array()))
        if (x.is_string()) into->push_back(x.get<std::string>());
  return check_result(record, now_seconds() - started);
}

} // namespace kernelmill
