#include "gpu/torch/shape_evaluation.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include <fcntl.h>
#include <fmt/format.h>

#include "gpu/referee/candidate_faults.hpp"
#include "gpu/referee/clock.hpp"
#include "gpu/referee/device/device.hpp"
#include "gpu/referee/not_timed.hpp"
#include "gpu/referee/second_look.hpp"
#include "gpu/torch/impossible_time.hpp"
#include "gpu/torch/torch_batches.hpp"
#include "messages/base/json_fields.hpp"
#include "messages/base/json_value.hpp"
#include "messages/fault.hpp"

namespace kernelmill {

using nlohmann::json;

namespace {

// 0 where it is no number that can be a count.
uint64_t count_of(const json& x, const char* name) {
  auto value = number_in(x, name);
  return value > 0 && value < 1e15 ? static_cast<uint64_t>(value) : 0;
}

severity severity_of(const std::string& word) {
  if (word == "critical") return severity::critical;
  return word == "info" ? severity::info : severity::warning;
}

json constants_of(const torch_variant& x) {
  auto result = json::object();
  for (const auto& [name, value] : x.constants) result[name] = json::parse(value);
  return result;
}

constexpr size_t most_eager_calls = 4096;

// As it was opened.
struct opened_baseline {
  std::string used; // "eager" where torch.compile refuses the model
  std::string note;
  double eager_by_paid = 0; // a call of the problem's own model, by one of this
  double eager_seconds = 0; // that call, where this is another one
};

/// One evaluation at one shape; the trials stand beside the record because their words are the
/// torch referee's.
class shape_evaluation {
public:
  shape_evaluation(torch_parts parts, wire::EvaluateRequest::Reader request, const task& spec,
                   const shape_order& order)
      : parts_(parts), request_(request), spec_(spec), order_(order), deadline_(order.deadline) {
    // nop
  }

  void run() {
    auto kills = memory_kills::now();
    parts_.lane.forget_ends();
    if (begin() && timed() && !condemned()) measure();
    bool by_others = record_.fault.category == "python_failed" && kills.anywhere &&
                     parts_.lane.was_ended_by_others() &&
                     memory_kills::now().anywhere == kills.anywhere;
    if (by_others)
      record_.fault = {fault_class::infrastructure, "referee_killed",
                       "failed to evaluate: another program has killed what judges with Python: " +
                           record_.fault.message,
                       "the work is tried again with new processes; see the system's log"};
    end();
  }

  bool timed() const { return order_.at.timed; }

  const evaluation_record& record() const { return record_; }

  /// With the record that several looks make.
  shape_result result(evaluation_record x) const {
    return {order_.at, std::move(x), inputs_, trials_};
  }

private:
  // Collects what an answer holds; false when the evaluation is over.
  bool take(const expected<json>& answer) {
    if (!answer) {
      record_.fault = answer.error();
      return false;
    }
    const auto& x = *answer;
    share_off_ = std::max(share_off_, std::clamp(number_in(x, "share_off"), 0.0, 1.0));
    for (const auto& trial : x.value("trials", json::array()))
      if (trial.is_object()) trials_.push_back(trial);
    for (const auto& found : x.value("findings", json::array()))
      record_.findings.push_back({text_in(found, "rule"), severity_of(text_in(found, "severity")),
                                  text_in(found, "evidence")});
    for (const auto& part : x.value("spans", json::array()))
      if (part.is_array() && part.size() == 2 && part[0].is_string() && part[1].is_number())
        record_.spans.push_back({part[0].get<std::string>(), part[1].get<double>()});
    if (auto text = text_in(x, "inputs"); !text.empty()) inputs_ = text;
    if (auto fault = x.find("fault"); fault != x.end() && fault->is_object())
      if (record_.fault.cls == fault_class::none) record_.fault = fault_from(*fault);
    return record_.fault.cls == fault_class::none;
  }

  // Whose verdict is certain is not timed any longer.
  bool condemned() const {
    return std::any_of(record_.findings.begin(), record_.findings.end(),
                       [](const finding& x) { return x.level == severity::critical; });
  }

  int patience() const {
    return static_cast<int>(std::max(0.0, deadline_ - now_seconds()) * 1e3) + grace_ms;
  }

  expected<json> ask(json request, const std::vector<int>& descriptors = {}) {
    return parts_.lane.ask(request, patience(), descriptors);
  }

  bool begin() {
    descriptor artifact{::open(request_.getLibraryPath().cStr(), O_RDONLY | O_CLOEXEC)};
    if (!artifact)
      return take(infrastructure_error("library_lost",
                                       std::string{"failed to open "} +
                                           request_.getLibraryPath().cStr() + ": " +
                                           std::strerror(errno),
                                       "build the candidate again"));
    json request = problem_of(spec_);
    request.update({{"op", "begin"},
                    {"level", spec_.torch.level},
                    {"mode", request_.getMode().cStr()},
                    {"tolerance", tolerance_at(spec_, order_.at)},
                    {"language", request_.getLanguage().cStr()},
                    {"float32", request_.getFloat32().cStr()},
                    {"timed", timed()},
                    {"visible_only", request_.getVisibleOnly()},
                    {"determinism_runs", parts_.determinism_runs},
                    {"clock", request_.getTiming().getClock().cStr()},
                    {"seed", order_.seed},
                    {"replays", request_.getSeed().size() > 0},
                    {"seconds", deadline_ - now_seconds()}});
    if (order_.at.variant != nullptr) request["constants"] = constants_of(*order_.at.variant);
    if (timed() && !open(request)) return false;
    request["seconds"] = deadline_ - now_seconds();
    auto answer = ask(request, {artifact.get()});
    bool well = take(answer);
    if (answer) {
      keep_seed(text_in(*answer, "seed"));
      must_move_ = {number_in(*answer, "floor_bytes"), number_in(*answer, "weight_bytes"),
                    number_in(*answer, "read_rate")};
      record_.case_count = static_cast<uint32_t>(count_of(*answer, "planned"));
      for (const auto& name : answer->value("patterns", json::array()))
        if (name.is_string()) patterns_.push_back(name.get<std::string>());
      record_.correct = record_.found_right = well && flag_in(*answer, "correct", false);
    }
    if (well && !record_.correct) record_.fault = wrong_result();
    record_.deterministic =
        std::none_of(record_.findings.begin(), record_.findings.end(),
                     [](const finding& x) { return x.rule == "not_deterministic"; });
    return record_.correct;
  }

  // What is to be known of the baseline before a candidate is there.
  bool open(json request) {
    double started = now_seconds();
    request["op"] = "open";
    std::string kind = request_.getBaseline().cStr();
    bool is_own = kind.empty() || kind == "eager";
    double eager = 0;
    if (!is_own && !estimate_eager(request, eager)) return false;
    request["baseline"] = kind;
    request["baseline_digest"] = request_.getBaselineSha256().cStr();
    if (!calibrate(request, baseline_)) return false;
    if (!is_own && baseline_.used != "eager") {
      baseline_.eager_by_paid = eager / batches_->baseline_call();
      baseline_.eager_seconds = eager;
    }
    record_.spans.push_back({"calibration", now_seconds() - started});
    return true;
  }

  // The problem's own model without a candidate: that speedup is told, too, and not paid, so it is
  // an estimate. Made once for a problem and a clock.
  bool estimate_eager(const json& request, double& seconds) {
    auto& known = parts_.lane.eager_calls();
    auto key = key_of(request);
    if (auto found = known.find(key); found != known.end()) {
      seconds = found->second;
      return true;
    }
    opened_baseline own;
    if (!calibrate(request, own)) return false;
    if (known.size() >= most_eager_calls) known.clear();
    seconds = known[key] = batches_->baseline_call();
    return true;
  }

  static std::string key_of(const json& request) {
    return fmt::format(
        "{} {} {} {} {} {} {}", text_in(request, "directory"), text_in(request, "digest"),
        text_in(request, "precision"), text_in(request, "mode"), text_in(request, "float32"),
        text_in(request, "clock"), request.value("constants", json::object()).dump());
  }

  bool calibrate(const json& request, opened_baseline& into) {
    descriptor product;
    if (const auto& path = parts_.named_baseline;
        !path.empty() && !text_in(request, "baseline").empty()) {
      product = descriptor{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
      if (!product)
        return take(infrastructure_error("library_lost",
                                         "failed to open " + path + ": " + std::strerror(errno)));
    }
    auto opened = ask(request, product ? std::vector<int>{product.get()} : std::vector<int>{});
    if (!take(opened)) return false;
    into.used = text_in(*opened, "used");
    into.note = text_in(*opened, "note");
    batches_.emplace(
        [this](json asked) -> std::optional<json> {
          auto answer = ask(std::move(asked));
          if (!take(answer)) return std::nullopt;
          return std::move(*answer);
        },
        deadline_, parts_.gpu != nullptr);
    auto key = fmt::format("{} {}", key_of(request), number_in(*opened, "baseline"));
    return batches_->calibrate(*opened, key, parts_.lane.calibration());
  }

  void measure() {
    double started = now_seconds();
    batches_->measure(patterns_, order_.half_width, record_);
    note_baseline();
    record_.correct = record_.correct && record_.fault.cls != fault_class::candidate;
    if (!record_.timing.measured) return;
    auto& timing = record_.timing;
    both_seconds seconds{timing.candidate_seconds, timing.reference_seconds};
    bool by_call = parts_.gpu == nullptr || request_.getTiming().getClock() != "device";
    (by_call ? timing.by_call : timing.by_device) = seconds;
    if (parts_.gpu != nullptr) {
      note_conditions(*parts_.gpu, record_);
      find_impossible_time(timing.candidate_seconds * (1 + timing.speedup.relative_half_width()),
                           must_move_, *parts_.gpu, record_);
    }
    charge();
    record_.spans.push_back({"timing", now_seconds() - started});
  }

  // What a suite lets be off may have been left out, and a policy's kernel as the baseline may have
  // chosen to be slow: neither is paid.
  void charge() {
    auto& timing = record_.timing;
    if (share_off_ > 0 && share_off_ < 1) {
      timing.candidate_seconds /= 1 - share_off_;
      scale(timing.speedup, 1 - share_off_);
      add_note(fmt::format("{:.2g} % of an output are off, as the suite allows, and not paid",
                           100 * share_off_));
    }
    double own = baseline_.eager_seconds;
    if (baseline_.used == "best" && own > 0 && own < timing.reference_seconds) {
      scale(timing.speedup, own / timing.reference_seconds);
      timing.reference_seconds = timing.eager_seconds = own;
      add_note("the best kernel is slower here than the problem's own model, which is paid by");
    }
  }

  static void scale(speedup_interval& x, double by) {
    x = {x.estimate * by, x.low * by, x.high * by};
  }

  void add_note(const std::string& text) {
    auto& note = record_.timing.note;
    note += (note.empty() ? "" : "; ") + text;
  }

  void note_baseline() {
    auto& timing = record_.timing;
    if (request_.getBaseline().size() == 0) return;
    timing.baseline_name = baseline_.used;
    std::string asked = request_.getBaselineNote().cStr();
    timing.baseline_note =
        asked + (asked.empty() || baseline_.note.empty() ? "" : "; ") + baseline_.note;
    timing.eager_seconds = timing.reference_seconds * baseline_.eager_by_paid;
  }

  void keep_seed(const std::string& hex) {
    has_seed_ = !hex.empty() && hex.find_first_not_of("0123456789abcdef") == hex.npos;
    if (!has_seed_) return;
    for (size_t i = 0; i < record_.seed.size() && 2 * i + 1 < hex.size(); ++i)
      record_.seed[i] = static_cast<uint8_t>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  }

  error wrong_result() const {
    for (const auto& x : trials_) {
      if (flag_in(x, "pass", true)) continue;
      auto count = fmt::format("{:.0f} elements wrong", number_in(x, "bad"));
      if (flag_in(x, "hidden", false))
        return {fault_class::candidate, "wrong_result",
                "a hidden trial is wrong: other contents of the same shapes, " + count,
                "compute the function for every value of its inputs"};
      return {fault_class::candidate,
              "wrong_result",
              text_in(x, "name") + " is wrong: " + text_in(x, "first_bad") + "; " + count,
              {}};
    }
    return {fault_class::candidate, "wrong_result", "an output is wrong", {}};
  }

  // Whose kernels ran matters only of what is right.
  void end() {
    std::string language = request_.getLanguage().cStr();
    bool own = order_.at.variant == nullptr || timed();
    bool share = own && record_.correct && parts_.gpu != nullptr && !language.empty() &&
                 language != "any" && language != "torch";
    auto fault = record_.fault;
    auto answer = ask({{"op", "end"}, {"share", share}});
    take(answer);
    if (!answer) {
      record_.sealed = true; // for all that is known
      if (fault.cls != fault_class::none) record_.fault = fault;
      return;
    }
    record_.output = text_in(*answer, "output");
    record_.sealed = flag_in(*answer, "sealed", true);
    if (answer->contains("kernel_share"))
      record_.counters.push_back({"kernel_share", number_in(*answer, "kernel_share"), "share"});
  }

  torch_parts parts_;
  wire::EvaluateRequest::Reader request_;
  const task& spec_;
  shape_order order_;
  double deadline_ = 0;
  bool has_seed_ = false;
  opened_baseline baseline_; // that is paid
  evaluation_record record_;
  std::vector<json> trials_;
  std::string inputs_;
  must_move must_move_;
  std::optional<torch_batches> batches_; // of a timed evaluation
  std::vector<std::string> patterns_;
  double share_off_ = 0; // of an output, by the suite's rule
};

} // namespace

json problem_of(const task& spec) {
  return {{"directory", spec.directory},
          {"digest", spec.digest},
          {"precision", spec.torch.precision},
          {"mutates", spec.torch.mutates},
          {"entry", spec.torch.entry.text()}};
}

json tolerance_at(const task& spec, const judged_shape& at) {
  bool own = at.variant != nullptr && at.variant->tolerance;
  const auto& x = own ? at.variant->tolerance : spec.torch.tolerance;
  if (!x) return nullptr;
  return {{"absolute", x->absolute},
          {"relative", x->relative},
          {"matched", x->matched},
          {"largest", x->largest ? json(*x->largest) : json(nullptr)}};
}

json variants_of(const std::vector<judged_shape>& shapes) {
  auto result = json::array();
  for (const auto& x : shapes)
    if (x.variant != nullptr)
      result.push_back({{"name", x.variant->name}, {"constants", constants_of(*x.variant)}});
  return result;
}

error fault_from(const json& x) {
  static const std::pair<const char*, fault_class> classes[] = {
      {"candidate", fault_class::candidate}, {"configuration", fault_class::configuration}};
  auto cls = fault_class::infrastructure;
  for (const auto& [name, value] : classes)
    if (text_in(x, "class") == name) cls = value;
  return {cls, text_in(x, "category"), text_in(x, "message"), text_in(x, "hint")};
}

shape_result evaluate_shape(torch_parts parts, wire::EvaluateRequest::Reader request,
                            const task& spec, const shape_order& order) {
  std::optional<shape_evaluation> latest;
  auto record = with_second_look(
      [&] {
        latest.emplace(parts, request, spec, order);
        latest->run();
        return latest->record();
      },
      [&] { return order.deadline - now_seconds(); });
  if (order.at.timed) settle_untimed(record, request.getTiming().getWidest());
  return latest->result(std::move(record)); // of the latest in any case
}

} // namespace kernelmill
