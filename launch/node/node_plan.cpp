#include "launch/node/node_plan.hpp"

#include <algorithm>

#include "launch/machine/accelerators.hpp"
#include "launch/machine/timing_policy.hpp"
#include "launch/node/named_baseline.hpp"
#include "launch/node/task_choice.hpp"
#include "messages/sandbox_layers.hpp"

namespace kernelmill {

using std::chrono::milliseconds;

namespace {

// Checked here and not with the configuration: a run without such tasks may keep its turns short.
expected<void> check_torch_deadlines(const run_config& config) {
  auto sanitized = config.sanitized_ms();
  const std::pair<const char*, uint32_t> tools[] = {
      {"compile.torch_deadline_ms", config.compile.torch_deadline_ms},
      {sanitized > 0 ? "evaluation.torch_deadline_ms + evaluation.sanitize_ms"
                     : "evaluation.torch_deadline_ms",
       config.evaluation.torch_deadline_ms + sanitized}};
  for (const auto& [name, ms] : tools)
    if (ms >= config.episode.turn_deadline_ms)
      return configuration_error(
          "config_inconsistent",
          "failed to nest the timeouts: " + std::string{name} + " (" + std::to_string(ms) +
              ") is not below episode.turn_deadline_ms (" +
              std::to_string(config.episode.turn_deadline_ms) +
              "), and the run has tasks of the contract torch",
          "lower " + std::string{name} + " or raise episode.turn_deadline_ms");
  return {};
}

// Said before a run begins: a turn whose checks cannot run is judged without them.
expected<void> check_sanitizer(const run_config& config, const chosen_backend& backend) {
  // On a CPU it is the compiler's libraries that look. Where a slot lacks them, the gate says so.
  if (config.evaluation.sanitize == "off" || backend.name == "cpu") return {};
  auto refuse = [&](const std::string& cause, std::string hint) {
    return configuration_error("sanitizer_unavailable",
                               "failed to use evaluation.sanitize = " + config.evaluation.sanitize +
                                   ": " + cause,
                               std::move(hint));
  };
  if (!backend.on_nvidia())
    return refuse("no sanitizer looks at candidates on AMD GPUs", "set evaluation.sanitize=off");
  bool judges_here = !backend.gpus.empty();
  if (judges_here && toolkit_program("compute-sanitizer").empty())
    return refuse("there is no compute-sanitizer here",
                  "install the CUDA toolkit (cuda-sanitizer), put it on PATH, or set "
                  "evaluation.sanitize=off");
  return {};
}

} // namespace

expected<std::vector<std::shared_ptr<const task>>> load_tasks(const run_config& config,
                                                              const chosen_backend& backend) {
  auto chosen = tasks_of(config.tasks);
  KM_TRY(chosen);
  auto contract = contract_of(config.evaluation.contract);
  KM_TRY(contract);
  KM_TRY(check_sanitizer(config, backend));
  std::vector<std::shared_ptr<const task>> result;
  const auto& asked = config.evaluation;
  baseline_finder baselines{{asked.baseline, asked.best_kernels, asked.python, config.compile},
                            backend};
  const judging_terms terms{backend.name,           *contract,     asked.torch_mode,
                            asked.language,         asked.float32, baseline_of_word(asked.baseline),
                            hardware_text(backend), asked.shapes};
  for (const auto& one : *chosen) {
    auto what = on_terms(*one, terms);
    KM_TRY(what);
    if ((*what)->contract == contract_kind::torch || (*what)->contract == contract_kind::program)
      KM_TRY(check_torch_deadlines(config));
    what = baselines.give(std::move(*what));
    KM_TRY(what);
    result.push_back(std::move(*what));
  }
  return result;
}

bool any_torch(const std::vector<std::shared_ptr<const task>>& tasks) {
  return std::any_of(tasks.begin(), tasks.end(),
                     [](const auto& x) { return x->contract == contract_kind::torch; });
}

expected<governance_config> governance_of(const run_config& config) {
  governance_config result;
  auto preset = reward_preset(config.reward.preset);
  KM_TRY(preset);
  result.preset = config.reward.preset;
  result.reward = *preset;
  auto& given = config.reward;
  auto& weights = result.reward;
  const std::pair<const std::optional<double>*, double*> overrides[] = {
      {&given.format, &weights.format},
      {&given.build, &weights.build},
      {&given.partial, &weights.partial},
      {&given.correct, &weights.correct},
      {&given.speed, &weights.speed},
      {&given.speed_cap, &weights.speed_cap},
      {&given.unchanged_speed, &weights.unchanged_speed},
      {&given.diagnosis, &weights.diagnosis},
      {&given.thinking, &weights.thinking},
      {&given.length, &weights.length},
      {&given.sol, &weights.sol},
      {&given.success, &weights.success},
      {&given.correctness, &weights.correctness},
      {&given.determinism, &weights.determinism},
      {&given.performance, &weights.performance},
      {&given.integrity_penalty, &weights.integrity_penalty}};
  for (auto& [value, weight] : overrides)
    if (*value) *weight = **value;
  if (given.memory_safety != "preset")
    weights.memory_safety_rejects = given.memory_safety == "reject";
  if (given.shaping != "preset")
    weights.shaping =
        given.shaping == "optimize_v1" ? shaping_kind::optimize_v1 : shaping_kind::none;
  result.minimum_speedup = given.minimum_speedup;
  result.significant_speedup = given.significant_speedup;
  KM_TRY(validate(result));
  return result;
}

expected<policy_config> policy_of(const run_config& config) {
  auto& section = config.policy;
  policy_config result;
  result.base_url = section.base_url;
  result.model = section.model;
  result.api_key_env = section.api_key_env;
  result.api_key_file = section.api_key_file;
  result.stream = section.stream;
  result.exact_tokens = section.tokens == "exact";
  result.max_in_flight = section.max_in_flight;
  result.request_timeout_ms = section.timeout_ms;
  result.connect_timeout_ms = section.connect_timeout_ms;
  result.first_contact_ms = section.first_contact_ms;
  result.stall_ms = section.stall_ms;
  result.max_response_bytes = section.max_response_bytes;
  result.ca_file = section.ca_file;
  if (section.kind != "scripted" && section.kind != "attached") {
    auto kind = parse_server_kind(section.kind);
    if (!kind)
      return configuration_error("invalid_value", "policy.kind: unknown kind " + section.kind,
                                 "use scripted, attached, openai, vllm, sglang or llamacpp");
    result.kind = *kind;
  }
  return result;
}

expected<advantage_kind> advantage_of(const std::string& name) {
  if (name == "mean_centered") return advantage_kind::mean_centered;
  if (name == "normalized") return advantage_kind::normalized;
  if (name == "leave_one_out") return advantage_kind::leave_one_out;
  return configuration_error("invalid_value", "advantage: unknown kind " + name,
                             "use mean_centered, normalized or leave_one_out");
}

double gamma_of(const run_config& config) {
  return config.episode.mode == "tools" ? config.tools.gamma : config.episode.gamma;
}

std::shared_ptr<const episode_settings> settings_of(const run_config& config,
                                                    const std::string& backend,
                                                    const reward_config& rewards, bool resume) {
  auto result = std::make_shared<episode_settings>();
  result->rewards = rewards;
  result->run_seed = config.run.seed;
  result->priority = static_cast<int32_t>(config.run.priority);
  result->required_layers = layer_bits(config.evaluation.required_layers);
  result->backend = backend;
  result->max_turns = config.tasks.max_turns;
  result->gamma = gamma_of(config);
  if (config.episode.mode == "tools") {
    result->mode = mode_kind::tools;
    result->tools = {config.tools.calls == "text" ? call_form::text : call_form::native,
                     config.tools.steps, config.tools.gpu_seconds, config.tools.hidden_evaluations,
                     config.tools.observation_bytes};
    // Each turn takes a step at least, and one more is for the submission.
    result->max_turns = config.tools.steps + 1;
    auto coarse = config.evaluation.timing;
    coarse.half_width = config.tools.half_width;
    result->coarse_timing = timing_policy(coarse, config.evaluation.clock);
  }
  result->patches = config.episode.patches;
  result->stop_on_correct = config.episode.stop_on_correct;
  result->stop_speedup = config.episode.stop_speedup;
  result->feedback_bytes = config.episode.feedback_bytes;
  result->example_count = config.retrieval.enabled ? config.retrieval.count : 0;
  result->profile_accepted = config.profile.enabled && config.profile.when == "accepted";
  result->profile_feedback = !result->profile_accepted              ? profile_words::none
                             : config.profile.feedback == "none"    ? profile_words::none
                             : config.profile.feedback == "numbers" ? profile_words::numbers
                                                                    : profile_words::card;
  result->report_share = config.profile.share;
  result->resume = resume;
  result->episode_deadline = milliseconds{config.episode.deadline_ms};
  result->policy_deadline = milliseconds{config.policy.timeout_ms};
  result->build_deadline = milliseconds{config.compile.deadline_ms};
  result->evaluate_deadline = milliseconds{config.evaluation.deadline_ms};
  result->torch_build_deadline = milliseconds{config.compile.torch_deadline_ms};
  result->torch_evaluate_deadline = milliseconds{config.evaluation.torch_deadline_ms};
  if (config.evaluation.sanitize != "off") result->sanitize = config.evaluation.sanitize;
  result->sanitize_limit = milliseconds{config.sanitized_ms()};
  result->lease_slack = milliseconds{config.episode.turn_deadline_ms};
  if (!config.evaluation.seed.empty()) result->evaluation_seed = config.evaluation.seed;
  auto& sampling = config.policy.sampling;
  result->sampling = build<wire::CompletionRequest>([&](wire::CompletionRequest::Builder x) {
    x.setExactTokens(config.policy.tokens == "exact");
    auto s = x.initSampling();
    s.setTemperature(sampling.temperature);
    s.setTopP(sampling.top_p);
    s.setMaxTokens(sampling.max_tokens);
    s.setSeed(sampling.seed);
    s.setLogprobs(sampling.logprobs);
    auto stop = s.initStop(static_cast<unsigned>(sampling.stop.size()));
    for (unsigned i = 0; i < stop.size(); ++i) stop.set(i, sampling.stop[i]);
  });
  result->timing = timing_policy(config.evaluation.timing, config.evaluation.clock);
  return result;
}

search_settings search_settings_of(const run_config& config, profile_words profile) {
  const auto& from = config.search;
  search_settings result;
  result.run = config.run.name;
  auto& how = result.strategy;
  how.kind = search::strategy_of(from.strategy).value_or(how.kind);
  how.seed = config.run.seed;
  how.width = config.tasks.group_size;
  how.beam = from.beam;
  how.islands = from.islands;
  how.migration = from.migration;
  how.exploration = from.exploration;
  how.fresh = from.fresh;
  result.budget = {from.gpu_minutes * 60, from.tokens, from.dollars, from.prompt_price,
                   from.completion_price};
  result.limits.ledger = from.ledger;
  result.limits.patches = config.episode.patches;
  result.reports = {config.episode.feedback_bytes, profile};
  return result;
}

run_plan plan_of(const run_config& config, const std::vector<std::shared_ptr<const task>>& tasks) {
  run_plan result;
  result.group_size = config.tasks.group_size;
  result.quorum = config.tasks.quorum;
  result.max_infrastructure = config.run.max_infrastructure;
  result.max_live = config.episode.max_live;
  for (auto& what : tasks) result.groups.insert(result.groups.end(), config.tasks.groups, what);
  return result;
}

} // namespace kernelmill
