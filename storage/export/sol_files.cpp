#include "storage/export/sol_files.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>
#include <optional>

#include "messages/base/clock.hpp"
#include "messages/base/digest.hpp"

namespace kernelmill::exports {

namespace {

using sol_json = nlohmann::ordered_json;

std::string sol_text(capnp::Text::Reader x) {
  return {x.begin(), x.size()};
}

/// JSON has no word for them; readers of this family take these.
sol_json sol_number(double x) {
  if (std::isnan(x)) return "NaN";
  if (std::isinf(x)) return x > 0 ? "Infinity" : "-Infinity";
  return x;
}

std::string iso_time(double seconds) {
  return utc_text(static_cast<std::time_t>(std::isfinite(seconds) ? std::max(seconds, 0.0) : 0));
}

struct source_form {
  const char* language;
  const char* path;
  std::string function;
};

source_form form_of_source(wire::TurnRecord::Reader turn) {
  auto facts = turn.getFacts();
  if (facts.getContract() == "torch")
    return {facts.getParsed().getLanguage() == "triton" ? "triton" : "python", "candidate.py",
            "ModelNew"};
  bool gpu = facts.getBackend() != "cpu";
  auto kernels = facts.getBuild().getKernels();
  std::string function = "solve";
  // Device code has no host function: its first kernel names it.
  if (facts.getContract() == "device")
    function = kernels.size() > 0 ? sol_text(kernels[0].getName()) : "kernel";
  auto end = function.find_first_of("(<:");
  return {gpu ? "cuda" : "cpp", gpu ? "kernel.cu" : "kernel.cpp", function.substr(0, end)};
}

/// "rows=64 cols=256" as axes; what is no whole number is none.
sol_json axes_of(const std::string& shape) {
  auto result = sol_json::object();
  for (size_t at = 0; at < shape.size();) {
    auto end = std::min(shape.find(' ', at), shape.size());
    auto equals = shape.find('=', at);
    uint64_t value = 0;
    if (equals < end) {
      auto [stop, code] = std::from_chars(shape.data() + equals + 1, shape.data() + end, value);
      if (code == std::errc{} && stop == shape.data() + end)
        result[shape.substr(at, equals - at)] = value;
    }
    at = end + 1;
  }
  return result;
}

/// The timed shape; without a time that of the case that failed, or of the first.
std::string shape_of(wire::EvaluateResult::Reader x) {
  if (x.getTiming().getMeasured()) return sol_text(x.getTiming().getShape());
  for (auto c : x.getCases())
    if (!c.getPass()) return sol_text(c.getShape());
  return x.getCases().size() > 0 ? sol_text(x.getCases()[0].getShape()) : std::string{};
}

std::string workload_uuid(const std::string& task, const std::string& shape) {
  auto hex = sha256_hex(task + "\n" + shape);
  return hex.substr(0, 8) + "-" + hex.substr(8, 4) + "-8" + hex.substr(13, 3) + "-8" +
         hex.substr(17, 3) + "-" + hex.substr(20, 12);
}

const char* status_of_turn(wire::TurnRecord::Reader turn, std::string& why) {
  auto verdict = turn.getVerdict();
  auto category = sol_text(verdict.getCategory());
  if (verdict.getOutcome() == wire::Outcome::INFRASTRUCTURE) why = "infrastructure_turns";
  if (verdict.getOutcome() == wire::Outcome::OPEN) why = "open_turns";
  if (why.empty() && turn.getCandidateSha256().size() == 0) why = "turns_without_kernel";
  if (category == "integrity") why = "not_honest";
  if (!why.empty()) return nullptr;
  if (!turn.getFacts().getBuild().getCompiled()) return "COMPILE_ERROR";
  if (turn.getFacts().getEvaluation().getCorrect()) {
    if (verdict.getOutcome() == wire::Outcome::ACCEPTED &&
        turn.getFacts().getEvaluation().getTiming().getMeasured())
      return "PASSED";
    why =
        verdict.getOutcome() == wire::Outcome::ACCEPTED ? "not_timed_turns" : "not_accepted_turns";
    return nullptr;
  }
  if (category == "wrong_result") return "INCORRECT_NUMERICAL";
  return category.find("timeout") != category.npos ? "TIMEOUT" : "RUNTIME_ERROR";
}

sol_json correctness_of(wire::EvaluateResult::Reader x) {
  double worst = 0, share = 0;
  for (auto c : x.getCases()) {
    worst = std::isnan(c.getMaxError()) ? c.getMaxError() : std::max(worst, c.getMaxError());
    if (c.getBound() > 0) share = std::max(share, c.getMaxError() / c.getBound());
  }
  return {{"max_relative_error", "NaN"},
          {"max_absolute_error", sol_number(worst)},
          {"extra",
           {{"max_error_over_bound", sol_number(share)},
            {"max_relative_error", "not measured: each element has a bound of its own"}}}};
}

std::string sol_definition(const std::string& task) {
  auto result = task;
  for (auto& c : result)
    if (c == '/' || c == ' ') c = '_';
  return result;
}

std::string sol_name(wire::TurnRecord::Reader turn) {
  auto e = turn.getEpisode();
  return sol_text(e.getRun()) + "_g" + std::to_string(e.getGroup()) + "_e" +
         std::to_string(e.getMember()) + "_t" + std::to_string(turn.getTurn());
}

/// REQUIRES: the turn has a candidate, which is `code`
sol_json sol_solution(wire::TurnRecord::Reader turn, const std::string& code) {
  auto form = form_of_source(turn);
  auto model = sol_text(turn.getCompletion().getModel());
  auto device = sol_text(turn.getFacts().getEvaluation().getDevice());
  if (device.empty()) device = sol_text(turn.getFacts().getBackend());
  bool torch = turn.getFacts().getContract() == "torch";
  return {{"name", sol_name(turn)},
          {"definition", sol_definition(sol_text(turn.getEpisode().getTask()))},
          {"author", model.empty() ? "unknown" : model},
          {"spec",
           {{"language", form.language},
            {"target_hardware", {device.empty() ? "cpu" : device}},
            {"entry_point", std::string{form.path} + "::" + form.function},
            {"dependencies", sol_json::array()},
            {"destination_passing_style", !torch},
            {"binding", nullptr}}},
          {"sources", sol_json::array({{{"path", form.path}, {"content", code}}})},
          {"description", "contract " + sol_text(turn.getFacts().getContract()) + ", candidate " +
                              sol_text(turn.getCandidateSha256())}};
}

/// Nothing of a turn that says nothing of a kernel; `why` is then the reason.
std::optional<sol_json> sol_trace(wire::TurnRecord::Reader turn, const std::string& program,
                                  std::string& why) {
  const auto* status = status_of_turn(turn, why);
  if (!status) return std::nullopt;
  auto evaluation = turn.getFacts().getEvaluation();
  auto task = sol_text(turn.getEpisode().getTask());
  auto shape = shape_of(evaluation);
  auto device = sol_text(evaluation.getDevice());
  auto word = std::string{status};
  auto t = evaluation.getTiming();
  sol_json result = {
      {"status", word},
      {"environment",
       {{"hardware",
         device.empty() ? sol_text(turn.getFacts().getBackend()) + " (not run)" : device},
        {"libs",
         {{"kernelmill", program},
          {"compiler", sol_text(turn.getFacts().getBuild().getToolchain())}}}}},
      {"timestamp", iso_time(turn.getCommittedAt())},
      {"log", sol_text(turn.getVerdict().getFault().getMessage())}};
  if (word == "PASSED" || word == "INCORRECT_NUMERICAL")
    result["correctness"] = correctness_of(evaluation);
  if (word == "PASSED")
    result["performance"] = {{"latency_ms", t.getCandidateMs()},
                             {"reference_latency_ms", t.getReferenceMs()},
                             {"speedup_factor", t.getSpeedup().getEstimate()}};
  return sol_json{{"definition", sol_definition(task)},
                  {"workload",
                   {{"axes", axes_of(shape)},
                    {"inputs", sol_json::object()},
                    {"uuid", workload_uuid(task, shape)}}},
                  {"solution", sol_name(turn)},
                  {"evaluation", std::move(result)}};
}

} // namespace

expected<void> sol_turns(const admitted_group& from, const artifact_store& artifacts,
                         const std::string& program, left_out& without,
                         const std::function<expected<void>(const sol_turn&)>& to) {
  for (const auto& episode : from->episodes)
    for (const auto& record : episode.turns) {
      auto view = record.open();
      auto turn = view->getTurn();
      std::string why;
      auto trace = sol_trace(turn, program, why);
      if (!trace) {
        ++without[why];
        continue;
      }
      auto code = artifacts.candidate(turn);
      KM_TRY(code);
      if (code->empty()) {
        ++without["turns_without_kernel"];
        continue;
      }
      KM_TRY(to({sol_definition(sol_text(turn.getEpisode().getTask())), sol_name(turn),
                 sol_solution(turn, *code), std::move(*trace)}));
    }
  return {};
}

} // namespace kernelmill::exports
