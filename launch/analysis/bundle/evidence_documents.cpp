// What was found out about a candidate: correctness/, eval/, perf/, build/, profiles/ and others.

#include <cmath>

#include <fmt/format.h>

#include "launch/analysis/bundle/documents.hpp"
#include "messages/json.hpp"

namespace kernelmill::bundles {

namespace {

std::string text(capnp::Text::Reader x) {
  return {x.begin(), x.size()};
}

json finite(double x) {
  return std::isfinite(x) ? json(x) : json(nullptr);
}

bool was_evaluated(wire::TurnRecord::Reader x) {
  return x.getFacts().getEvaluation().getCases().size() > 0;
}

/// Whether all cases of a kind pass; null where there are none.
json all_pass(wire::EvaluateResult::Reader x, bool hidden) {
  json result = nullptr;
  for (auto c : x.getCases())
    if (c.getHidden() == hidden) result = (result.is_null() || result == true) && c.getPass();
  return result;
}

// CorrectnessReport.
json correctness(wire::TurnRecord::Reader turn) {
  auto evaluation = turn.getFacts().getEvaluation();
  auto failures = json::array();
  json shapes = json::object();
  for (auto c : evaluation.getCases()) {
    auto name = text(c.getName());
    shapes[name] = {{"shape", text(c.getShape())},
                    {"distribution", text(c.getDistribution())},
                    {"visibility", c.getHidden() ? "hidden" : "visible"},
                    {"passed", c.getPass()},
                    {"max_error", finite(c.getMaxError())},
                    {"bound", finite(c.getBound())}};
    if (!c.getPass()) failures.push_back({{"case", name}, {"observed", text(c.getFirstBad())}});
  }
  return document_of({{"compile_ok", turn.getFacts().getBuild().getCompiled()},
                      {"visible_tests_ok", all_pass(evaluation, false)},
                      {"hidden_tests_ok", all_pass(evaluation, true)},
                      {"dtype_sweep", json::object()},
                      {"shape_sweep", std::move(shapes)},
                      {"determinism", {{"passed", evaluation.getDeterministic()}}},
                      {"numerical_deltas_ref", nullptr},
                      {"failures", std::move(failures)}});
}

json failure_localization(wire::TurnRecord::Reader turn) {
  for (auto c : turn.getFacts().getEvaluation().getCases())
    if (!c.getPass())
      return document_of({{"failure_class", text(turn.getVerdict().getCategory())},
                          {"benchmark_case_id", text(c.getName())},
                          {"observed", text(c.getFirstBad())},
                          {"likely_next_actions", {text(turn.getVerdict().getFault().getHint())}}});
  return not_run("no case failed");
}

expected<void> put_correctness(wire::TurnRecord::Reader turn, const std::string& folder,
                               const file_put& put) {
  if (!was_evaluated(turn)) {
    auto none = not_run("no case was run");
    for (const auto* name : {"correctness", "determinism", "failure_localization"})
      KM_TRY(put_json(put, folder + "correctness/" + name + ".json", none));
    return {};
  }
  KM_TRY(put_json(put, folder + "correctness/correctness.json", correctness(turn)));
  KM_TRY(put_json(put, folder + "correctness/determinism.json",
                  document_of({{"passed", turn.getFacts().getEvaluation().getDeterministic()},
                               {"runs", nullptr},
                               {"attempts", json::array()},
                               {"warnings", json::array()}})));
  return put_json(put, folder + "correctness/failure_localization.json",
                  failure_localization(turn));
}

/// 1 for a gate that passed, as gpu_rl counts; one that was not run counts nothing.
double counted(wire::TurnRecord::Reader turn, const char* gate) {
  return gate_word(turn, gate) == "pass" ? 1 : 0;
}

/// gpu_rl's three parts by its rules, and the run's own, which the score is made of.
json reward_parts(wire::TurnRecord::Reader turn) {
  bool all = true;
  for (const auto* gate : {"build", "correctness", "determinism", "integrity"})
    all = all && gate_word(turn, gate) == "pass";
  json parts = {{"binary_pass", all ? 1.0 : 0.0},
                {"determinism", counted(turn, "determinism")},
                {"perf", counted(turn, "performance")}};
  for (auto x : turn.getVerdict().getComponents())
    parts["kernelmill." + text(x.getName())] = finite(x.getValue() * x.getWeight());
  return parts;
}

/// What asked for no verdict may have been built all the same.
json compile_gate(wire::TurnRecord::Reader turn) {
  auto build = turn.getFacts().getBuild();
  bool judged = turn.getVerdict().getGates().size() > 0;
  if (judged || build.getToolchain().size() == 0) return gate_word(turn, "build");
  return build.getCompiled() ? "pass" : "fail";
}

// EvalEnvelope; its score is the run's own reward.
json envelope(wire::TurnRecord::Reader turn, const run_facts& of) {
  return document_of({{"compile_gate", compile_gate(turn)},
                      {"correctness_gate", gate_word(turn, "correctness")},
                      {"anti_hack_gate", gate_word(turn, "integrity")},
                      {"determinism_gate", gate_word(turn, "determinism")},
                      {"perf_gate", gate_word(turn, "performance")},
                      {"reward_components", reward_parts(turn)},
                      {"final_score", reward_or_null(turn, of)}});
}

// AntiHackReport.
json anti_hack(wire::TurnRecord::Reader turn) {
  auto hits = json::array();
  bool passed = true;
  for (auto f : turn.getVerdict().getFindings()) {
    passed = passed && f.getSeverity() != wire::Severity::CRITICAL;
    hits.push_back({{"pattern", text(f.getRule())},
                    {"category", enum_name(capnp::DynamicEnum{f.getSeverity()})},
                    {"location", "candidate"},
                    {"matched_text", text(f.getEvidence())}});
  }
  return document_of({{"passed", passed},
                      {"forbidden_patterns", json::array()},
                      {"scanned_locations", {"candidate", "runtime"}},
                      {"hits", std::move(hits)},
                      {"warnings", json::array()}});
}

json gate_summary(wire::TurnRecord::Reader turn) {
  auto gates = json::array();
  for (auto g : turn.getVerdict().getGates())
    gates.push_back({{"name", text(g.getName())},
                     {"status", enum_name(capnp::DynamicEnum{g.getStatus()})},
                     {"reason", text(g.getReason())}});
  return document_of({{"outcome", enum_name(capnp::DynamicEnum{turn.getVerdict().getOutcome()})},
                      {"category", text(turn.getVerdict().getCategory())},
                      {"gates", std::move(gates)}});
}

json reward_trace(wire::TurnRecord::Reader turn, const run_facts& of) {
  auto parts = json::array();
  for (auto x : turn.getVerdict().getComponents())
    parts.push_back({{"name", text(x.getName())},
                     {"value", finite(x.getValue())},
                     {"weight", finite(x.getWeight())}});
  return document_of({{"reward_version", "kernelmill"},
                      {"components", std::move(parts)},
                      {"reward_total", reward_or_null(turn, of)}});
}

// PerfReport.
json benchmark(wire::TurnRecord::Reader turn, const run_facts& of) {
  auto evaluation = turn.getFacts().getEvaluation();
  auto t = evaluation.getTiming();
  auto build = turn.getFacts().getBuild();
  json conditions = json::object();
  for (auto x : evaluation.getConditions()) conditions[text(x.getName())] = finite(x.getValue());
  return document_of(
      {{"baseline_id", "reference"},
       {"timer", text(t.getClock())},
       {"timing_method", "paired_interleaved"},
       {"warmups", nullptr},
       {"repeats", t.getSamples()},
       {"split_compile_from_run", true},
       {"cold_compile_ms", build.getCached() ? json(nullptr) : finite(build.getSeconds() * 1e3)},
       {"steady_state_ms_p50", finite(t.getCandidateMs())},
       {"steady_state_ms_p95", nullptr},
       {"baseline_steady_state_ms_p50", finite(t.getReferenceMs())},
       {"baseline_steady_state_ms_p95", nullptr},
       {"speedup_vs_baseline", finite(t.getSpeedup().getEstimate())},
       {"benchmark_scope", text(t.getShape())},
       {"benchmark_protocol_version", "kernelmill_paired"},
       {"hardware_fingerprint", fingerprint_at(of, turn.getStartedAt())},
       {"benchmark_provenance",
        {{"device", text(evaluation.getDevice())},
         {"device_uuid", text(evaluation.getDeviceUuid())},
         {"conditions", std::move(conditions)}}},
       {"perf_notes", {text(t.getNote())}},
       {"score_surfaces",
        {{"speedup_low", finite(t.getSpeedup().getLow())},
         {"speedup_high", finite(t.getSpeedup().getHigh())},
         {"roofline_ms", finite(t.getRooflineMs())},
         {"overhead_ms", finite(t.getOverheadMs())}}}});
}

/// The first listing of a kind; null where there is none.
json listing_of(const tool_words& tools, std::string_view kind) {
  for (const auto& [name, ignored] : tools.texts)
    if (name.ends_with(kind)) return "build/" + name;
  return nullptr;
}

// BuildRecord.
json build_record(wire::BuildResult::Reader x, const tool_words& tools) {
  auto kernels = json::array();
  for (auto k : x.getKernels())
    kernels.push_back({{"name", text(k.getName())},
                       {"registers", k.getRegisters()},
                       {"spill_stores", k.getSpillStores()},
                       {"spill_loads", k.getSpillLoads()},
                       {"stack_frame", k.getStackFrame()},
                       {"shared_bytes", k.getSharedBytes()},
                       {"occupancy", finite(k.getOccupancy())}});
  auto toolchain = text(x.getToolchain());
  return document_of({{"compiler", toolchain.substr(0, toolchain.find(' '))},
                      {"compiler_version", toolchain},
                      {"flags", json::array()},
                      {"status", x.getCompiled() ? "ok" : "failed"},
                      {"duration_ms", finite(x.getSeconds() * 1e3)},
                      {"cached", x.getCached()},
                      {"stdout_ref", "build/log.txt"},
                      {"stderr_ref", nullptr},
                      {"ptx_ref", listing_of(tools, ".ptx")},
                      {"sass_ref", listing_of(tools, ".sass")},
                      {"ptxas_stats", std::move(kernels)},
                      {"binary_hash", text(x.getLibrarySha256())}});
}

expected<void> put_build(const turn_material& x, const std::string& folder, const file_put& put) {
  auto build = x.record.getFacts().getBuild();
  bool built = build.getToolchain().size() > 0 || build.getCompiled();
  KM_TRY(put_json(put, folder + "build/build_record.json",
                  built ? build_record(build, x.tools) : not_run("nothing was built")));
  return put(folder + "build/log.txt", text(build.getLog()));
}

// ProfileReport and BottleneckCard.
expected<void> put_profile(wire::TurnRecord::Reader turn, const std::string& folder,
                           const file_put& put) {
  auto x = turn.getFacts().getProfile();
  auto profile = not_run("no profile was taken");
  auto card = profile;
  if (x.getAvailable()) {
    json counters = json::object();
    for (auto c : x.getCounters()) counters[text(c.getName())] = finite(c.getValue());
    profile = document_of({{"profiler", "kernelmill"},
                           {"backend", text(turn.getFacts().getBackend())},
                           {"duration_ms", finite(x.getSeconds() * 1e3)},
                           {"classification", text(x.getCard().getBottleneck())},
                           {"counters", std::move(counters)}});
    auto evidence = json::array(), actions = json::array();
    for (auto line : x.getCard().getEvidence()) evidence.push_back(text(line));
    for (auto line : x.getCard().getNextActions()) actions.push_back(text(line));
    card = document_of({{"card_id", "primary"},
                        {"run_id", run_id(turn)},
                        {"subject", text(turn.getEpisode().getTask())},
                        {"primary_bottleneck", text(x.getCard().getBottleneck())},
                        {"confidence", finite(x.getCard().getConfidence())},
                        {"evidence", std::move(evidence)},
                        {"next_actions", std::move(actions)}});
  }
  KM_TRY(put_json(put, folder + "profiles/kernel/summary.json", profile));
  return put_json(put, folder + "bottlenecks/primary.json", card);
}

} // namespace

expected<void> put_evidence(const turn_material& x, const run_facts& of, const std::string& folder,
                            const file_put& put) {
  auto turn = x.record;
  KM_TRY(put_correctness(turn, folder, put));
  KM_TRY(put_json(put, folder + "eval/eval_envelope.json", envelope(turn, of)));
  KM_TRY(put_json(put, folder + "eval/anti_hack_report.json",
                  was_evaluated(turn) ? anti_hack(turn) : not_run("no case was run")));
  KM_TRY(put_json(put, folder + "eval/gate_summary.json", gate_summary(turn)));
  KM_TRY(put_json(put, folder + "eval/learning_reward_trace.json", reward_trace(turn, of)));
  KM_TRY(put_json(put, folder + "eval/import_trace.json",
                  not_run("candidates are judged by what they do, not by what they import")));
  bool timed = turn.getFacts().getEvaluation().getTiming().getMeasured();
  KM_TRY(put_json(put, folder + "perf/benchmark.json",
                  timed ? benchmark(turn, of) : not_run("the candidate was not timed")));
  KM_TRY(put_build(x, folder, put));
  return put_profile(turn, folder, put);
}

} // namespace kernelmill::bundles
