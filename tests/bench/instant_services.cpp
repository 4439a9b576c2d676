#include "tests/bench/instant_services.hpp"

#include "actors/cluster/cluster.hpp"
#include "actors/governance/governance.hpp"
#include "actors/snapshots.hpp"

namespace kernelmill::bench {

namespace {

std::string kernel_text() {
  std::string text = "#include <cstddef>\nextern \"C\" void solve(const float* x, float* y, int "
                     "rows, int cols) {\n";
  for (int i = 0; i < 14; ++i)
    text += "  // accumulate four lanes at once so that the adds do not wait for each other\n";
  return text + "  for (int r = 0; r < rows; ++r) y[r] = x[(size_t)r * cols];\n}\n";
}

} // namespace

Message<wire::CompletionResult> instant_completion(const std::string& more) {
  auto text = "<think>Unroll by four and keep partial sums in registers." + more +
              "</think>\n<KERNEL>\n```cpp\n" + (more.empty() ? "" : "// " + more + "\n") +
              kernel_text() + "```\n</KERNEL>\n";
  return build<wire::CompletionResult>([&](wire::CompletionResult::Builder x) {
    x.setText(text);
    x.setFinishReason("stop");
    x.setModel("instant");
    x.setRequestId("00000000-0000");
    x.setAttempts(1);
    x.setPromptTokens(900);
    x.setCompletionTokens(400);
  });
}

Message<wire::BuildResult> instant_build() {
  return build<wire::BuildResult>([](wire::BuildResult::Builder x) {
    x.setCompiled(true);
    x.setLibraryPath("/cache/ab/cdef.so");
    x.setLibrarySha256(std::string(64, 'a'));
    x.setToolchain("g++ 12.2.0 -O3 -march=native -fopenmp");
    x.setSeconds(0.06);
  });
}

Message<wire::EvaluateResult> instant_evaluation() {
  return build<wire::EvaluateResult>([](wire::EvaluateResult::Builder x) {
    x.setCorrect(true);
    x.setDeterministic(true);
    auto cases = x.initCases(8);
    for (unsigned i = 0; i < cases.size(); ++i) {
      cases[i].setName("case");
      cases[i].setShape("rows=64 cols=256");
      cases[i].setHidden(i > 3);
      cases[i].setDistribution("normal");
      cases[i].setMaxError(1e-6);
      cases[i].setBound(1e-5);
      cases[i].setPass(true);
    }
    auto timing = x.initTiming();
    timing.setMeasured(true);
    timing.setCandidateMs(0.2);
    timing.setReferenceMs(0.3);
    timing.getSpeedup().setEstimate(1.5);
    timing.getSpeedup().setLow(1.45);
    timing.getSpeedup().setHigh(1.55);
    timing.setSamples(20);
    timing.setClock("outside");
    x.setDevice("bench");
  });
}

namespace {

struct instant_state {
  uint64_t held = 0; // requests that are never answered
  uint64_t answered = 0;
  static inline const char* name = "instant";
};

policy_client_actor::behavior_type
instant_policy(policy_client_actor::stateful_pointer<instant_state> self,
               services_options options) {
  auto answer = instant_completion();
  return {
      [self](atom::status) {
        return snapshot_of("policy", {}, "holding", {}, {{"held", self->state.held}});
      },
      [self, answer, options](atom::complete, const envelope&,
                              const Message<wire::CompletionRequest>& request)
          -> caf::result<Message<wire::CompletionResult>> {
        if (!options.policy_answers && request.open()->getTurn() >= options.answered_turns) {
          ++self->state.held;
          return self->make_response_promise<Message<wire::CompletionResult>>();
        }
        if (options.more_text == 0) return answer;
        // A text that is there already would cost no file.
        return instant_completion(std::to_string(++self->state.answered) +
                                  std::string(options.more_text, '.'));
      },
  };
}

compiler_actor::behavior_type instant_compiler(compiler_actor::stateful_pointer<instant_state>) {
  auto answer = instant_build();
  return {
      [](atom::status) { return Message<wire::Snapshot>{}; },
      [answer](atom::build, const envelope&, const Message<wire::BuildRequest>&) { return answer; },
  };
}

gpu_runner_actor::behavior_type instant_runner(gpu_runner_actor::stateful_pointer<instant_state>) {
  auto answer = instant_evaluation();
  return {
      [](atom::status) { return Message<wire::Snapshot>{}; },
      [answer](atom::evaluate, const envelope&, const Message<wire::EvaluateRequest>&) {
        return answer;
      },
      [](atom::cancel, const envelope&) {},
  };
}

} // namespace

std::shared_ptr<episode_services> instant_services(caf::actor_system& system,
                                                   const services_options& options) {
  auto services = std::make_shared<episode_services>();
  auto cluster = system.spawn(leasing_cluster, lease_policy{});
  caf::anon_send(cluster, atom::lease_v, compiler_actor{system.spawn(instant_compiler)},
                 uint32_t{1000});
  caf::anon_send(cluster, atom::lease_v, gpu_runner_actor{system.spawn(instant_runner)},
                 uint32_t{1000});
  services->policy = system.spawn(instant_policy, options);
  services->compiler = cluster;
  services->runner = cluster;
  services->profiler = cluster;
  services->governance = system.spawn(rule_governance, governance_config{});
  services->prompts = std::make_shared<prompt_cache>();
  return services;
}

std::shared_ptr<const task> bench_task() {
  auto result = std::make_shared<task>();
  result->id = "bench/row_sum";
  result->title = "Row sums";
  result->verb = "optimize";
  result->operator_family = "reduction";
  result->contract = contract_kind::native;
  result->prompt = std::string(1500, 'p');
  return result;
}

} // namespace kernelmill::bench
