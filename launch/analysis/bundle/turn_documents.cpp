// manifest, events, summary, prompt and command of a turn; and of an episode or a run as a whole.

#include <cmath>

#include <fmt/format.h>

#include "launch/analysis/bundle/documents.hpp"
#include "messages/json.hpp"

namespace kernelmill::bundles {

namespace {

std::string str(capnp::Text::Reader x) {
  return {x.begin(), x.size()};
}

json text_or_null(const std::string& x) {
  return x.empty() ? json(nullptr) : json(x);
}

json parent_run(const turn_material& x) {
  return x.parent ? json(str(x.record.getEpisode().getRun()) + "/" + *x.parent) : json(nullptr);
}

json seed_of(const run_facts& of) {
  return of.config.value(json::json_pointer{"/run/seed"}, json{});
}

json hex_seed(wire::EvaluateResult::Reader x) {
  std::string result;
  for (auto b : x.getSeed()) result += fmt::format("{:02x}", b);
  return text_or_null(result);
}

/// The compiler of this turn, and the tools of the session in which it was done; null is what that
/// machine does not have.
json tool_versions(wire::TurnRecord::Reader turn, const run_facts& of) {
  json result = {{"compiler", str(turn.getFacts().getBuild().getToolchain())}};
  auto tools = fingerprint_at(of, turn.getStartedAt()).value("tool_versions", json::object());
  for (const auto* name : {"nvcc", "nvrtc", "python", "torch", "triton"})
    result[name] = tools.is_object() ? tools.value(name, json{}) : json{};
  return result;
}

// RunSpec.
json manifest_of(const turn_material& x, const run_facts& of) {
  auto turn = x.record;
  auto facts = turn.getFacts();
  auto backend = str(facts.getBackend());
  return document_of(
      {{"run_id", run_id(turn)},
       {"parent_run_id", parent_run(x)},
       {"created_at", time_or_nothing(turn.getStartedAt())},
       {"engine_version", "kernelmill " + of.program},
       {"task_ref", str(turn.getEpisode().getTask())},
       {"mode", of.again.is_null() ? "agent" : "command"},
       {"target_backend", backend},
       {"target_vendor", vendor_of(turn)},
       {"executor", "kernelmill_sandbox"},
       {"image_digest", nullptr},
       {"tool_versions", tool_versions(turn, of)},
       {"policy_pack", str(turn.getCompletion().getModel())},
       {"budgets",
        {{"wall_seconds", nullptr},
         {"compile_attempts", 1},
         {"bench_runs", nullptr},
         {"profile_runs", nullptr},
         {"artifact_mb", nullptr}}},
       {"seed_pack",
        {{"global_seed", seed_of(of)}, {"input_seed", hex_seed(facts.getEvaluation())}}},
       {"tags", {str(facts.getVerb()), str(facts.getContract())}},
       {"notes", json::array({"turn_id " + str(turn.getTurnId())})}});
}

// RunSummary.
json summary_of(const turn_material& x) {
  auto turn = x.record;
  auto seconds = turn.getSeconds();
  double all = seconds.getRetrieve() + seconds.getPolicy() + seconds.getBuild() +
               seconds.getEvaluate() + seconds.getProfile() + seconds.getJudge();
  auto warnings = json::array();
  for (auto f : turn.getVerdict().getFindings())
    warnings.push_back(str(f.getRule()) + ": " + str(f.getEvidence()));
  auto sha256 = str(turn.getCandidateSha256());
  bool patch = !x.parent_sha256.empty() && !sha256.empty() && x.parent_sha256 != sha256;
  return document_of({{"run_id", run_id(turn)},
                      {"task_id", str(turn.getEpisode().getTask())},
                      {"status", status_of(turn)},
                      {"trace_enabled", false},
                      {"backend", str(turn.getFacts().getBackend())},
                      {"vendor", vendor_of(turn)},
                      {"parent_run_id", parent_run(x)},
                      {"candidate_id", text_or_null(candidate_id(sha256))},
                      {"parent_candidate_id", text_or_null(candidate_id(x.parent_sha256))},
                      {"patch_present", patch},
                      {"transition_kind", str(turn.getTransition())},
                      {"candidate_status", candidate_status(turn)},
                      {"exit_code", turn.getVerdict().getOutcome() == wire::Outcome::ACCEPTED ||
                                            turn.getVerdict().getOutcome() == wire::Outcome::OPEN
                                        ? 0
                                        : 1},
                      {"duration_ms", std::isfinite(all) ? json(all * 1e3) : json(nullptr)},
                      {"key_artifacts", {"candidate/source.txt", "eval/eval_envelope.json"}},
                      {"warnings", std::move(warnings)}});
}

std::string summary_text(const turn_material& x, const json& summary, const run_facts& of) {
  auto verdict = x.record.getVerdict();
  auto timing = x.record.getFacts().getEvaluation().getTiming();
  auto result =
      fmt::format("# {}\n\n- task: {}\n- status: {} ({})\n- candidate: {}\n",
                  summary["run_id"].get<std::string>(), summary["task_id"].get<std::string>(),
                  summary["status"].get<std::string>(), verdict.getCategory().cStr(),
                  x.record.getCandidateSha256().cStr());
  if (timing.getMeasured())
    result += fmt::format("- speedup: {:.3f} [{:.3f}, {:.3f}]\n", timing.getSpeedup().getEstimate(),
                          timing.getSpeedup().getLow(), timing.getSpeedup().getHigh());
  else
    result += "- speedup: not_run\n";
  auto reward = reward_or_null(x.record, of);
  result += reward.is_null() ? std::string{"- reward: none\n"}
                             : fmt::format("- reward: {:.6g}\n", reward.get<double>());
  return result;
}

json event(const std::string& of, size_t number, const std::string& at, const char* scope,
           const char* kind, json payload) {
  return document_of({{"event_id", fmt::format("{}#{}", of, number)},
                      {"run_id", of},
                      {"seq", number},
                      {"ts", at.empty() ? json(nullptr) : json(at)},
                      {"scope", scope},
                      {"kind", kind},
                      {"payload", std::move(payload)}});
}

// A record knows when its turn began and was committed, and how long each stage took; when a stage
// began it does not know, so such an event has the commit's time and says so.
std::string events_of(const turn_material& x) {
  auto turn = x.record;
  auto id = run_id(turn);
  auto began = time_or_nothing(turn.getStartedAt()), ended = time_or_nothing(turn.getCommittedAt());
  auto seconds = turn.getSeconds();
  struct {
    const char* name;
    double seconds;
    bool done;
  } stages[] = {{"retrieve", seconds.getRetrieve(), seconds.getRetrieve() > 0},
                {"policy", seconds.getPolicy(), true},
                {"build", seconds.getBuild(), turn.getCandidateSha256().size() > 0},
                {"eval", seconds.getEvaluate(), turn.getFacts().getBuild().getCompiled()},
                {"profile", seconds.getProfile(), turn.getFacts().getProfile().getAvailable()},
                {"judge", seconds.getJudge(), true}};
  std::string result;
  size_t number = 0;
  auto add = [&](const json& line) {
    result += line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  };
  add(event(id, number++, began, "run", "started", json::object()));
  for (const auto& s : stages)
    if (s.done)
      add(event(id, number++, ended, s.name, "completed",
                {{"seconds", s.seconds}, {"ts_is", "commit"}}));
  bool lost = turn.getVerdict().getOutcome() == wire::Outcome::INFRASTRUCTURE;
  add(event(id, number, ended, "run", lost ? "failed" : "completed",
            {{"category", str(turn.getVerdict().getCategory())}}));
  return result;
}

// TaskSpec, as far as a turn knows it.
json task_spec(const turn_material& x) {
  auto facts = x.record.getFacts();
  return document_of({{"task_id", str(x.record.getEpisode().getTask())},
                      {"verb", str(facts.getVerb())},
                      {"operator_family", str(facts.getOperatorFamily())},
                      {"difficulty", nullptr},
                      {"prompt", x.task_prompt},
                      {"baseline_ref", nullptr},
                      {"reference_impl_ref", nullptr},
                      {"visible_tests_ref", nullptr},
                      {"hidden_tests_ref", nullptr},
                      {"input_generator_ref", nullptr},
                      {"deterministic_mode", nullptr},
                      {"feature_requirements", json::array()},
                      {"numerical_policy",
                       {{"dtype_matrix", json::array()}, {"rtol", nullptr}, {"atol", nullptr}}},
                      {"perf_protocol",
                       {{"warmups", nullptr},
                        {"repeats", nullptr},
                        {"timer", str(facts.getEvaluation().getTiming().getClock())},
                        {"split_compile_from_run", true},
                        {"benchmark_args", json::array()}}},
                      {"allowed_backends", {str(facts.getBackend())}},
                      {"forbidden_patterns", json::array()},
                      {"required_artifacts", json::array()}});
}

expected<void> put_conversation(const turn_material& x, const std::string& folder,
                                const file_put& put) {
  auto messages = json::array();
  for (const auto& [role, content] : x.messages)
    messages.push_back({{"role", role}, {"content", content}});
  KM_TRY(put_json(put, folder + "prompt/task_spec.json", task_spec(x)));
  KM_TRY(put_json(put, folder + "prompt/messages.json", messages));
  KM_TRY(put(folder + "prompt/completion.txt", x.answer));
  KM_TRY(put(folder + "prompt/feedback.txt", x.feedback));
  auto evaluation = x.record.getFacts().getEvaluation();
  KM_TRY(put(folder + "command/stdout.txt", str(evaluation.getOutput())));
  return put_json(put, folder + "command/summary.json",
                  document_of({{"status", evaluation.getCaseCount() > 0 ? "completed" : "not_run"},
                               {"stdout_ref", "command/stdout.txt"},
                               {"stdout_is", "what the candidate printed, both streams, until a "
                                             "hidden case or a timed row began"},
                               {"stderr_ref", nullptr},
                               {"exit_code", nullptr},
                               {"duration_ms", evaluation.getSeconds() * 1e3}}));
}

} // namespace

expected<void> put_turn(const turn_material& x, const run_facts& of, const std::string& folder,
                        const file_put& put) {
  auto summary = summary_of(x);
  KM_TRY(put_json(put, folder + "manifest.json", manifest_of(x, of)));
  KM_TRY(put(folder + "events.jsonl", events_of(x)));
  KM_TRY(put_json(put, folder + "summary.json", summary));
  KM_TRY(put(folder + "summary.md", summary_text(x, summary, of)));
  KM_TRY(put(folder + "trace.jsonl",
             x.trace.dump(-1, ' ', false, json::error_handler_t::replace) + "\n"));
  KM_TRY(put_conversation(x, folder, put));
  KM_TRY(put_evidence(x, of, folder, put));
  KM_TRY(put_lineage(x, folder, put));
  KM_TRY(put_tools(x, folder, put));
  return put_meta(run_id(x.record), of, x.record.getStartedAt(), folder, put);
}

expected<void> put_whole(const whole_facts& x, const run_facts& of, const file_put& put) {
  auto created = of.manifest.value("created_at", json{});
  KM_TRY(put_json(put, "manifest.json",
                  document_of({{"run_id", x.what},
                               {"parent_run_id", nullptr},
                               {"created_at", created},
                               {"engine_version", "kernelmill " + of.program},
                               {"mode", "agent"},
                               {"executor", "kernelmill_sandbox"},
                               {"image_digest", nullptr},
                               {"seed_pack", {{"global_seed", seed_of(of)}}},
                               {"runs", x.turn_names}})));
  std::string events;
  for (size_t i = 0; i < x.events.size(); ++i) {
    auto line = document_of(
        {{"event_id", fmt::format("{}#{}", x.what, i)}, {"run_id", x.what}, {"seq", i}});
    line.update(x.events[i]);
    events += line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  }
  KM_TRY(put("events.jsonl", events));
  KM_TRY(put_json(put, "summary.json",
                  document_of({{"run_id", x.what},
                               {"status", x.status},
                               {"episodes", x.episodes},
                               {"turns", x.turns},
                               {"accepted_turns", x.accepted}})));
  KM_TRY(put("summary.md", fmt::format("# {}\n\n- status: {}\n- episodes: {}\n- turns: {}\n"
                                       "- accepted turns: {}\n",
                                       x.what, x.status, x.episodes, x.turns, x.accepted)));
  return put_meta(x.what, of, 1e11, "", put);
}

} // namespace kernelmill::bundles
