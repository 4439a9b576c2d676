#include "tests/sim/world.hpp"

#include "actors/cluster/cluster.hpp"
#include "actors/episode/tools/tool_words.hpp"
#include "actors/governance/governance.hpp"
#include "messages/base/digest.hpp"

namespace kernelmill::sim {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

namespace {

using generator = std::mt19937_64;

bool happens(generator& random, double chance) {
  return chance > 0 && std::uniform_real_distribution<>{}(random) < chance;
}

milliseconds some_time(generator& random, const faults& how) {
  return milliseconds{1 + random() % static_cast<uint64_t>(how.slowest_answer_ms)};
}

// -- the policy: what it says depends on task, member and turn, and on nothing else
// ------------------

enum class quality : unsigned char { malformed, broken, wrong, slow, fast };

quality quality_of(std::string_view session, uint32_t turn) {
  auto digest = sha256(std::string{session} + "#" + std::to_string(turn));
  return static_cast<quality>(std::min<unsigned>(digest[0] % 7, 4));
}

std::string reply_of(std::string_view session, uint32_t turn) {
  static constexpr const char* names[] = {"malformed", "broken", "wrong", "slow", "fast"};
  auto what = quality_of(session, turn);
  if (what == quality::malformed) return "I would rather talk about the weather.";
  return "<think>plan</think><KERNEL>\n// " + std::string{session} + " " + std::to_string(turn) +
         " " + names[static_cast<int>(what)] + "\n</KERNEL>";
}

// -- and which tools it calls ------------------------------------------------------------------

/// A source of one of the qualities that workers tell by its words.
std::string source_of(std::string_view session, uint32_t turn, unsigned luck) {
  static constexpr const char* names[] = {"broken", "wrong", "slow", "fast"};
  return "// head\n// " + std::string{session} + " " + std::to_string(turn) + " " +
         names[luck % 4] + "\n";
}

const std::string shown_kernel = "// head\nint fast;\n";

struct said_call {
  std::string name, arguments;
};

std::vector<said_call> calls_of(std::string_view session, uint32_t turn) {
  auto digest = sha256(std::string{session} + "!" + std::to_string(turn));
  auto quoted = [](const std::string& text) {
    std::string out;
    for (char c : text) out += c == '\n' ? std::string{"\\n"} : std::string(1, c);
    return '"' + out + '"';
  };
  auto patch = [&](const std::string& by) {
    return quoted("<<<<<<< SEARCH\n// head\n=======\n// head " + by + "\n>>>>>>> REPLACE\n");
  };
  auto write = [&](unsigned luck) {
    return said_call{"write_candidate",
                     "{\"source\": " + quoted(source_of(session, turn, luck)) + "}"};
  };
  auto write_shown = [&] {
    return said_call{"write_candidate", "{\"source\": " + quoted(shown_kernel) + "}"};
  };
  if (turn == 0) return {write(digest[1]), {"build", ""}};
  if (turn >= 9 + digest[2] % 4u) return {{"submit", "{}"}, {"bench", "{}"}};
  switch (digest[0] % 17) {
    case 0: return {write(3), {"bench", "{}"}, {"promote", "{}"}};
    case 1: return {{"test_patch", "{\"measure\": \"eval\", \"patch\": " + patch("wrong") + "}"}};
    case 2: return {{"patch_candidate", "{\"patch\": " + patch("two") + "}"}, {"bench", "{}"}};
    case 3: return {{"branch", "{\"candidate\": \"c0\"}"}, {"eval", "{}"}};
    case 4: return {{"revert", "{\"candidate\": \"c0\"}"}};
    case 5: return {{"eval", "{"}};
    case 6: return {{"fly", "{}"}, {"run", "{\"candidate\": \"c99\"}"}};
    case 7: return {};
    case 8:
      return {{"compare", "{\"left\": \"c0\"}"},
              {"inspect", "{\"section\": \"history\"}"},
              {"inspect", "{\"section\": \"result\"}"}};
    case 9: return {{"note_strategy", "{\"name\": \"tiles\", \"state\": \"exploring\"}"}};
    case 10: return {{"replay", "{}"}};
    case 11: return {{"eval", "{}"}, {"sanitize", "{}"}};
    case 12: return {{"knowledge_query", "{\"query\": \"sum\"}"}, {"task_show", "{}"}};
    case 13: return {{"submit", "{\"candidate\": \"c0\"}"}};
    case 14: return {write_shown()};
    case 15:
      return {{"eval", "{\"candidate\": \"c0\"}"},
              {"test_patch", "{\"measure\": \"bench\", \"patch\": " + patch("cheat") + "}"},
              {"compare", "{\"left\": \"c0\"}"},
              {"revert", "{\"candidate\": \"c0\"}"}};
    default: return {write(digest[1]), {"bench", "{}"}};
  }
}

Message<wire::CompletionResult> calls_message(std::string_view session, uint32_t turn) {
  auto calls = calls_of(session, turn);
  return build<wire::CompletionResult>([&](wire::CompletionResult::Builder x) {
    x.setText("Turn " + std::to_string(turn));
    auto list = x.initCalls(static_cast<unsigned>(calls.size()));
    for (unsigned i = 0; i < list.size(); ++i) {
      list[i].setId("id" + std::to_string(i));
      list[i].setName(calls[i].name);
      list[i].setArguments(calls[i].arguments);
    }
  });
}

/// What a query finds: a kernel and a card.
Message<wire::RetrieveResult> found_message() {
  return build<wire::RetrieveResult>([](wire::RetrieveResult::Builder x) {
    auto list = x.initExamples(2);
    list[0].setId("kernel:other");
    list[0].setKind("kernel");
    list[0].setTitle("of another task");
    list[0].setReference("import torch\n");
    list[0].setText(shown_kernel);
    list[1].setId("card:sums");
    list[1].setKind("card");
    list[1].setText("Sum in order.");
  });
}

retriever_actor::behavior_type retriever() {
  return {
      [](atom::status) { return Message<wire::Snapshot>{}; },
      [](atom::query, const envelope&, const Message<wire::RetrieveRequest>& request) {
        // Without it the leak guard would not know whose solutions to withhold.
        bool guarded = request.open()->getExcludeTask().size() > 0;
        return guarded ? found_message() : Message<wire::RetrieveResult>{};
      },
  };
}

bool says(std::string_view source, std::string_view word) {
  return source.find(word) != std::string_view::npos;
}

/// Holds a finished answer until its virtual time has come.
template <class T>
struct late_answers {
  struct entry {
    caf::typed_response_promise<Message<T>> promise;
    Message<T> value;
  };
  std::map<uint64_t, entry> waiting;
  uint64_t next = 0;
};

using ticking = caf::reacts_to<caf::tick_atom, uint64_t>;

template <class Role>
using ticking_role = typename Role::template extend<ticking>;

template <class T>
struct role_state {
  late_answers<T> late;
  generator random;
  faults how;
  static inline const char* name = "simulated";
};

template <class T, class Self>
caf::result<Message<T>> later(Self* self, milliseconds delay, Message<T> value) {
  auto& late = self->state.late;
  auto promise = self->template make_response_promise<Message<T>>();
  auto number = late.next++;
  late.waiting.emplace(number, typename late_answers<T>::entry{promise, std::move(value)});
  self->delayed_send(self, delay, caf::tick_atom_v, number);
  return promise;
}

template <class T, class Self>
void speak(Self* self, uint64_t number) {
  auto& waiting = self->state.late.waiting;
  if (auto i = waiting.find(number); i != waiting.end()) {
    i->second.promise.deliver(i->second.value);
    waiting.erase(i);
  }
}

template <class T>
Message<T> infrastructure_fault(const char* category) {
  return build<T>([&](typename T::Builder x) {
    auto fault = x.initFault();
    fault.setClass(wire::FaultClass::INFRASTRUCTURE);
    fault.setCategory(category);
  });
}

// A request that is never answered: the promise is kept, so that nothing is delivered by accident.
template <class T, class Self>
caf::result<Message<T>> never(Self* self) {
  return later<T>(self, milliseconds{std::chrono::hours{1000}}, Message<T>{});
}

using sim_policy = ticking_role<policy_client_actor>;

sim_policy::behavior_type
policy(sim_policy::stateful_pointer<role_state<wire::CompletionResult>> self, uint64_t seed,
       faults how) {
  self->state.random.seed(seed);
  self->state.how = how;
  return {
      [](atom::status) { return Message<wire::Snapshot>{}; },
      [self](atom::complete, const envelope&, const Message<wire::CompletionRequest>& request)
          -> caf::result<Message<wire::CompletionResult>> {
        auto& s = self->state;
        if (happens(s.random, s.how.policy_silent)) return never<wire::CompletionResult>(self);
        auto delay = some_time(s.random, s.how);
        if (happens(s.random, s.how.policy_error))
          return later(self, delay, infrastructure_fault<wire::CompletionResult>("policy_down"));
        auto view = request.open();
        auto lost = ".e" + std::to_string(s.how.lost_member);
        if (view->getTurn() == 1 && std::string_view{view->getSession().cStr()}.ends_with(lost))
          return later(self, delay, infrastructure_fault<wire::CompletionResult>("policy_down"));
        if (view->getTools().size() > 0)
          return later(self, delay, calls_message(view->getSession().cStr(), view->getTurn()));
        auto text = reply_of(view->getSession().cStr(), view->getTurn());
        return later(self, delay, build<wire::CompletionResult>([&](auto x) { x.setText(text); }));
      },
      [self](caf::tick_atom, uint64_t n) { speak<wire::CompletionResult>(self, n); },
  };
}

// -- workers
// ----------------------------------------------------------------------------------------

Message<wire::BuildResult> build_result(wire::BuildRequest::Reader request) {
  bool broken = says(request.getSource().cStr(), "broken");
  return build<wire::BuildResult>([&](wire::BuildResult::Builder x) {
    x.setCompiled(!broken);
    x.setLibraryPath(request.getSource()); // the simulated runner reads the source from here
    if (!broken) return;
    auto fault = x.initFault();
    fault.setClass(wire::FaultClass::CANDIDATE);
    fault.setCategory("compile_error");
  });
}

Message<wire::EvaluateResult> evaluate_result(wire::EvaluateRequest::Reader request, bool timed) {
  std::string source = request.getLibraryPath().cStr();
  bool wrong = says(source, "wrong");
  return build<wire::EvaluateResult>([&](wire::EvaluateResult::Builder x) {
    x.setCorrect(!wrong);
    x.setDeterministic(true);
    x.setSeconds(0.25);
    auto cases = x.initCases(1);
    cases[0].setName("small");
    cases[0].setPass(!wrong);
    if (wrong) {
      auto fault = x.initFault();
      fault.setClass(wire::FaultClass::CANDIDATE);
      fault.setCategory("wrong_result");
      return;
    }
    if (says(source, "cheat")) {
      auto finding = x.initFindings(1)[0];
      finding.setRule("late_write");
      finding.setSeverity(wire::Severity::CRITICAL);
    }
    if (!request.getTiming().getEnabled()) return;
    auto timing = x.initTiming();
    if (!timed) return timing.setNotTimed(wire::NotTimed::MACHINE);
    timing.setMeasured(true);
    double speedup = says(source, "fast") ? 2.0 : 0.8;
    timing.getSpeedup().setEstimate(speedup);
    timing.getSpeedup().setLow(speedup * 0.98);
    timing.getSpeedup().setHigh(speedup * 1.02);
  });
}

/// What every simulated worker does with a job: answer, fail, fall silent or die.
template <class T, class Self>
caf::result<Message<T>> misbehave_or(Self* self, Message<T> value) {
  auto& s = self->state;
  if (happens(s.random, s.how.worker_dies)) {
    self->quit(caf::exit_reason::kill);
    return never<T>(self);
  }
  if (happens(s.random, s.how.worker_silent)) return never<T>(self);
  auto delay = some_time(s.random, s.how);
  if (happens(s.random, s.how.worker_fault)) value = infrastructure_fault<T>("worker_fault");
  return later(self, delay, std::move(value));
}

using sim_compiler = ticking_role<compiler_actor>;
using sim_runner = ticking_role<gpu_runner_actor>;

sim_compiler::behavior_type
compiler(sim_compiler::stateful_pointer<role_state<wire::BuildResult>> self, uint64_t seed,
         faults how) {
  self->state.random.seed(seed);
  self->state.how = how;
  return {
      [](atom::status) { return Message<wire::Snapshot>{}; },
      [self](atom::build, const envelope&, const Message<wire::BuildRequest>& request) {
        return misbehave_or(self, build_result(*request.open()));
      },
      [self](caf::tick_atom, uint64_t n) { speak<wire::BuildResult>(self, n); },
  };
}

sim_runner::behavior_type
runner(sim_runner::stateful_pointer<role_state<wire::EvaluateResult>> self, uint64_t seed,
       faults how) {
  self->state.random.seed(seed);
  self->state.how = how;
  return {
      [](atom::status) { return Message<wire::Snapshot>{}; },
      [self](atom::evaluate, const envelope&, const Message<wire::EvaluateRequest>& request) {
        bool timed = !happens(self->state.random, self->state.how.not_timed);
        return misbehave_or(self, evaluate_result(*request.open(), timed));
      },
      [](atom::cancel, const envelope&) {},
      [self](caf::tick_atom, uint64_t n) { speak<wire::EvaluateResult>(self, n); },
  };
}

/// Replaces workers that died, as a node's supervisor would.
struct supervisor_state {
  generator random;
  struct entry {
    bool is_compiler;
    caf::actor handle;
  };
  std::map<caf::actor_addr, entry> workers;
  static inline const char* name = "supervisor";

  ~supervisor_state() {
    for (auto& [address, worker] : workers)
      caf::anon_send_exit(worker.handle, caf::exit_reason::kill);
  }
};

caf::behavior supervisor(caf::stateful_actor<supervisor_state>* self, cluster_actor cluster,
                         uint64_t seed, uint32_t workers, faults how) {
  self->state.random.seed(seed);
  auto start = [self, cluster, how](bool is_compiler) {
    auto& s = self->state;
    if (is_compiler) {
      auto worker = self->spawn<caf::monitored>(compiler, s.random(), how);
      s.workers[worker.address()] = {true, caf::actor_cast<caf::actor>(worker)};
      self->send(cluster, atom::lease_v, compiler_actor{worker}, uint32_t{1});
    } else {
      auto worker = self->spawn<caf::monitored>(runner, s.random(), how);
      s.workers[worker.address()] = {false, caf::actor_cast<caf::actor>(worker)};
      self->send(cluster, atom::lease_v, gpu_runner_actor{worker}, uint32_t{1});
    }
  };
  self->set_down_handler([self](caf::down_msg& down) {
    auto i = self->state.workers.find(down.source);
    if (i == self->state.workers.end()) return;
    self->delayed_send(self, 1s, i->second.is_compiler);
    self->state.workers.erase(i);
  });
  for (uint32_t i = 0; i < workers; ++i) {
    start(true);
    start(false);
  }
  return {[start](bool is_compiler) { start(is_compiler); }};
}

// -- the world
// --------------------------------------------------------------------------------------

std::shared_ptr<const task> simulated_task(uint32_t number) {
  auto result = std::make_shared<task>();
  result->id = "sim/task_" + std::to_string(number);
  result->title = "simulated";
  result->verb = "optimize";
  result->operator_family = "simulated";
  result->contract = contract_kind::native;
  result->prompt = "Write the kernel.";
  return result;
}

class node {
public:
  node(uint64_t seed, const plan& what, const faults& how, std::shared_ptr<unreliable_sink> sink,
       bool resume)
      : random_(seed), system_(configured(config_)),
        scheduler_(dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler())) {
    scheduler_.clock().current_time += 1h; // time 0 has a special meaning
    epoch_ = scheduler_.clock().now();
    start(seed, what, how, std::move(sink), resume);
  }

  ~node() {
    // Actors that still hold timers would keep the scheduler's stop() busy for ever.
    for (auto& who : all_)
      caf::anon_send_exit(caf::actor_cast<caf::actor>(who), caf::exit_reason::kill);
    while (scheduler_.try_run_once()) {
    }
  }

  outcome run(double death) {
    outcome result;
    while (!summary_ && !failed_) {
      if (happens(random_, death)) {
        result.killed = true;
        break;
      }
      if (!step(result)) break;
    }
    result.ended = summary_.has_value();
    result.summary = summary_;
    result.virtual_seconds =
        std::chrono::duration<double>(scheduler_.clock().now() - epoch_).count();
    return result;
  }

private:
  static caf::actor_system_config& configured(caf::actor_system_config& config) {
    config.add_message_types<caf::id_block::kernelmill>();
    config.add_message_types<caf::id_block::kernelmill_handles>();
    config.set("scheduler.policy", caf::atom("testing"));
    return config;
  }

  // Runs one actor, chosen by the seed among those that have work; lets time pass when none has.
  bool step(outcome& result) {
    auto& jobs = scheduler_.jobs;
    if (jobs.empty()) {
      if (scheduler_.clock().now() - epoch_ > 24h) return false;
      return scheduler_.clock().trigger_timeout();
    }
    auto chosen = jobs.begin() + static_cast<std::ptrdiff_t>(random_() % jobs.size());
    std::iter_swap(jobs.begin(), chosen);
    auto* actor = dynamic_cast<caf::scheduled_actor*>(jobs.front());
    auto time = static_cast<uint64_t>((scheduler_.clock().now() - epoch_).count());
    result.trace_hash =
        (result.trace_hash ^ (actor != nullptr ? actor->id() : 0) ^ time) * 0x9e3779b97f4a7c15ULL;
    ++result.steps;
    scheduler_.run_once();
    return true;
  }

  template <class Handle>
  Handle keep(Handle x) {
    all_.push_back(caf::actor_cast<caf::strong_actor_ptr>(x));
    return x;
  }

  void start(uint64_t seed, const plan& what, const faults& how,
             std::shared_ptr<unreliable_sink> sink, bool resume) {
    sink->full = how.sink_full;
    uint32_t opening = 0; // as a node finds it in its store
    for (auto& [key, record] : sink->records()) {
      auto view = record.open();
      if (view->isRun()) opening = std::max(opening, view->getRun().getOpening() + 1);
    }
    auto cluster = keep(system_.spawn(leasing_cluster, lease_policy{30s, 3}));
    keep(system_.spawn(supervisor, cluster, seed ^ 1, what.workers, how));
    auto services = std::make_shared<episode_services>();
    services->policy = keep(system_.spawn(policy, seed ^ 2, how));
    services->compiler = cluster;
    services->runner = cluster;
    services->profiler = cluster;
    governance_config rules;
    rules.reward = what.rewards;
    services->governance = keep(system_.spawn(rule_governance, rules));
    if (what.tools) services->retriever = keep(system_.spawn(retriever));
    lineage_config lineage;
    lineage.own_thread = false;
    services->lineage = keep(spawn_group_commit_lineage(system_, std::move(sink), lineage));
    auto settings = std::make_shared<episode_settings>();
    settings->max_turns = what.max_turns;
    settings->rewards = what.rewards;
    if (what.tools) {
      settings->mode = mode_kind::tools;
      settings->max_turns = settings->tools.steps + 1;
      settings->gamma = 1;
    }
    services->prompts = prompts_of(*settings);
    settings->resume = resume;
    settings->profile_accepted = !what.profiled_backend.empty();
    if (settings->profile_accepted) settings->backend = what.profiled_backend;
    settings->policy_deadline = 60s;
    if (what.lease_slack_ms > 0) settings->lease_slack = milliseconds{what.lease_slack_ms};
    run_plan batch;
    batch.name = "sim";
    batch.opening = opening;
    batch.group_size = what.group_size;
    batch.quorum = what.quorum;
    batch.max_live = what.max_live;
    for (uint32_t i = 0; i < what.groups; ++i) batch.groups.push_back(simulated_task(i));
    auto run = keep(system_.spawn(batch_run, batch, settings, services, nullptr));
    keep(system_.spawn([this, run](caf::event_based_actor* self) {
      self->request(run, std::chrono::minutes{60 * 24 * 30}, atom::start_v)
          .then([this](const Message<wire::RunSummary>& x) { summary_ = x; },
                [this](caf::error&) { failed_ = true; });
    }));
  }

  generator random_;
  caf::actor_system_config config_;
  caf::actor_system system_;
  caf::scheduler::test_coordinator& scheduler_;
  caf::actor_clock::time_point epoch_;
  std::vector<caf::strong_actor_ptr> all_;
  std::optional<Message<wire::RunSummary>> summary_;
  bool failed_ = false;
};

} // namespace

expected<std::vector<bool>> unreliable_sink::commit(const std::vector<pending_record>& batch) {
  if (happens(random_, full))
    return infrastructure_error("disk_full", "failed to commit: no space left on device");
  return memory_sink::commit(batch);
}

outcome run_node(uint64_t seed, const plan& what, const faults& how,
                 std::shared_ptr<unreliable_sink> sink, bool resume) {
  node world{seed, what, how, std::move(sink), resume};
  return world.run(how.node_dies);
}

} // namespace kernelmill::sim
