#include "gpu/torch/torch_evaluation.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>

#include <fcntl.h>
#include <fmt/format.h>

#include "gpu/referee/candidate_faults.hpp"
#include "gpu/referee/clock.hpp"
#include "gpu/referee/device/device.hpp"
#include "gpu/referee/not_timed.hpp"
#include "gpu/referee/result_words.hpp"
#include "gpu/referee/second_look.hpp"
#include "gpu/referee/stolen_time.hpp"
#include "gpu/referee/task_check.hpp"
#include "gpu/task/task.hpp"
#include "gpu/torch/impossible_time.hpp"
#include "gpu/torch/torch_batches.hpp"
#include "messages/base/json_fields.hpp"
#include "messages/base/json_value.hpp"
#include "messages/fault.hpp"

namespace kernelmill {

namespace {

using nlohmann::json;

constexpr uint32_t default_deadline_ms = 180'000;
// Of the deadline, what is kept to find out whose fault it was that time ran out; and how long
// after that the torch referee has answered, which keeps the deadline itself. Whoever waits for us
// waits 15 s longer than the deadline.
constexpr double most_reserve = 10; // seconds
constexpr double reserve_share = 0.1;
constexpr int grace_ms = 23'000;

// 0 where it is no number that can be a count.
uint64_t count_of(const json& x, const char* name) {
  auto value = number_in(x, name);
  return value > 0 && value < 1e15 ? static_cast<uint64_t>(value) : 0;
}

// JSON has no infinity; null stands for it.
double error_of(const json& x, const char* name) {
  auto found = x.find(name);
  return found != x.end() && found->is_null() ? std::numeric_limits<double>::infinity()
                                              : number_in(x, name);
}

error fault_from(const json& x) {
  static const std::pair<const char*, fault_class> classes[] = {
      {"candidate", fault_class::candidate}, {"configuration", fault_class::configuration}};
  auto cls = fault_class::infrastructure;
  for (const auto& [name, value] : classes)
    if (text_in(x, "class") == name) cls = value;
  return {cls, text_in(x, "category"), text_in(x, "message"), text_in(x, "hint")};
}

std::string to_hex(capnp::Data::Reader bytes) {
  std::string result;
  for (auto x : bytes) result += fmt::format("{:02x}", x);
  return result;
}

severity severity_of(const std::string& word) {
  if (word == "critical") return severity::critical;
  return word == "info" ? severity::info : severity::warning;
}

/// One evaluation; the trials stand beside the record because their words are the torch referee's.
class torch_evaluation {
public:
  torch_evaluation(torch_parts parts, wire::EvaluateRequest::Reader request, double deadline)
      : parts_(parts), request_(request), deadline_(deadline) {
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
                       "failed to evaluate: somebody else has killed what judges with Python: " +
                           record_.fault.message,
                       "the work is tried again with new processes; see the system's log"};
    end();
  }

  bool timed() const {
    return request_.getTiming().getEnabled() && !request_.getProfile() &&
           !request_.getVisibleOnly();
  }

  const evaluation_record& record() const { return record_; }
  void replace_record(evaluation_record x) { record_ = std::move(x); }

  Message<wire::EvaluateResult> result(double seconds) const {
    return build<wire::EvaluateResult>([&](wire::EvaluateResult::Builder out) {
      write_record(record_, inputs_, out);
      write_trials(out);
      out.setDevice(parts_.gpu != nullptr ? parts_.gpu->description()
                                          : parts_.hardware.description());
      if (parts_.gpu != nullptr) out.setDeviceUuid(parts_.gpu->uuid());
      out.setSeconds(seconds);
    });
  }

private:
  // Collects what an answer holds; false when the evaluation is over.
  bool take(const expected<json>& answer) {
    if (!answer) {
      record_.fault = answer.error();
      return false;
    }
    const auto& x = *answer;
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
    auto loaded = load_task_folder(request_.getTaskDir());
    if (!loaded) return take(tl::unexpected<error>{loaded.error()});
    const auto& spec = *loaded;
    if (std::string digest = request_.getTaskDigest(); !digest.empty() && digest != spec->digest)
      return take(configuration_error("task_changed",
                                      "failed to use task " + spec->id +
                                          ": its files have changed since the run began",
                                      "start a new run, or restore the task's files"));
    descriptor artifact{::open(request_.getLibraryPath().cStr(), O_RDONLY | O_CLOEXEC)};
    if (!artifact)
      return take(infrastructure_error("library_lost",
                                       std::string{"failed to open "} +
                                           request_.getLibraryPath().cStr() + ": " +
                                           std::strerror(errno),
                                       "build the candidate again"));
    json request{{"op", "begin"},
                 {"directory", spec->directory},
                 {"digest", spec->digest},
                 {"precision", spec->torch.precision},
                 {"mutates", spec->torch.mutates},
                 {"level", spec->torch.level},
                 {"mode", request_.getMode().cStr()},
                 {"language", request_.getLanguage().cStr()},
                 {"float32", request_.getFloat32().cStr()},
                 {"timed", timed()},
                 {"visible_only", request_.getVisibleOnly()},
                 {"clock", request_.getTiming().getClock().cStr()},
                 {"seed", to_hex(request_.getSeed())},
                 {"seconds", deadline_ - now_seconds()}};
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
    auto opened = ask(request);
    if (!take(opened)) return false;
    batches_.emplace(
        [this](json asked) -> std::optional<json> {
          auto answer = ask(std::move(asked));
          if (!take(answer)) return std::nullopt;
          return std::move(*answer);
        },
        deadline_, parts_.gpu != nullptr);
    auto key = fmt::format("{} {} {} {} {}", text_in(request, "directory"),
                           text_in(request, "digest"), text_in(request, "mode"),
                           number_in(*opened, "baseline"), text_in(request, "clock"));
    bool ok = batches_->calibrate(*opened, key, parts_.lane.calibration());
    record_.spans.push_back({"calibration", now_seconds() - started});
    return ok;
  }

  void measure() {
    double started = now_seconds();
    batches_->measure(patterns_, request_.getTiming().getHalfWidth(), record_);
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
    record_.spans.push_back({"timing", now_seconds() - started});
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
    bool share = record_.correct && parts_.gpu != nullptr && !language.empty() &&
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

  void write_trials(wire::EvaluateResult::Builder out) const {
    auto cases = out.initCases(static_cast<unsigned>(trials_.size()));
    for (unsigned i = 0; i < cases.size(); ++i) {
      const auto& x = trials_[i];
      cases[i].setName(text_in(x, "name"));
      cases[i].setShape(inputs_);
      cases[i].setHidden(flag_in(x, "hidden", false));
      cases[i].setDistribution(text_in(x, "distribution"));
      cases[i].setMaxError(error_of(x, "max_error"));
      cases[i].setBound(error_of(x, "bound"));
      cases[i].setPass(flag_in(x, "pass", false));
      cases[i].setBadCount(count_of(x, "bad"));
      cases[i].setFirstBad(text_in(x, "first_bad"));
    }
  }

  torch_parts parts_;
  wire::EvaluateRequest::Reader request_;
  double deadline_ = 0;
  bool has_seed_ = false;
  evaluation_record record_;
  std::vector<json> trials_;
  std::string inputs_;
  must_move must_move_;
  std::optional<torch_batches> batches_; // of a timed evaluation
  std::vector<std::string> patterns_;
};

} // namespace

Message<wire::EvaluateResult> evaluate_torch(torch_parts parts,
                                             wire::EvaluateRequest::Reader request) {
  double started = now_seconds();
  auto given = request.getDeadlineMs() > 0 ? request.getDeadlineMs() : default_deadline_ms;
  given -= std::min(given, request.getSanitizeMs()); // which is spent behind the evaluation
  double deadline = started + given * 1e-3 - std::min(most_reserve, reserve_share * given * 1e-3);
  std::optional<torch_evaluation> latest;
  stolen_time stolen;
  auto record = with_second_look(
      [&] {
        latest.emplace(parts, request, deadline);
        latest->run();
        return latest->record();
      },
      [&] { return deadline - now_seconds(); });
  if (latest->timed()) settle_untimed(record, request.getTiming().getWidest());
  stolen.note(record);
  latest->replace_record(std::move(record)); // of the latest in any case
  return latest->result(now_seconds() - started);
}

Message<wire::CheckResult> check_torch(torch_parts parts, const std::string& directory) {
  double started = now_seconds();
  auto spec = load_task_folder(directory);
  expected<json> answer = spec ? parts.lane.ask({{"op", "check"},
                                                 {"directory", (*spec)->directory},
                                                 {"digest", (*spec)->digest},
                                                 {"precision", (*spec)->torch.precision},
                                                 {"mutates", (*spec)->torch.mutates}},
                                                static_cast<int>(default_deadline_ms))
                               : tl::unexpected<error>{spec.error()};
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
