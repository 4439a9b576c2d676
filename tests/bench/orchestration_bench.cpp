// What orchestration costs by itself: four-turn episodes with a policy and an evaluator of zero
// latency, every turn durable before the next, beside the same loop without storage; and the
// memory of live episodes. Run by launch/bench.sh.

#include <cstdio>
#include <filesystem>
#include <fstream>

#include <benchmark/benchmark.h>
#include <unistd.h>

#include "actors/episode/turn_facts.hpp"
#include "actors/run/run.hpp"
#include "messages/base/digest.hpp"
#include "storage/journal/run_journal.hpp"
#include "tests/bench/instant_services.hpp"
#include "tests/oracles/memory_sink.hpp"

namespace kernelmill::bench {
namespace {

constexpr uint32_t group_size = 8;

struct system_config : caf::actor_system_config {
  system_config() {
    add_message_types<caf::id_block::kernelmill>();
    add_message_types<caf::id_block::kernelmill_handles>();
    set("scheduler.policy", caf::atom("sharing"));
    set("scheduler.max-threads", size_t{2});
    set("scheduler.max-throughput", size_t{100});
  }
};

run_plan plan_of(uint32_t episodes, uint32_t max_live) {
  run_plan plan;
  plan.name = "bench";
  plan.group_size = group_size;
  plan.max_live = max_live;
  plan.groups.assign(episodes / group_size, bench_task());
  return plan;
}

uint64_t resident_bytes() {
  std::ifstream file{"/proc/self/statm"};
  uint64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

std::string scratch_directory() {
  auto* from = std::getenv("KERNELMILL_BENCH_DIR"); // a real disk; /tmp may be memory
  std::string pattern = std::string{from != nullptr ? from : "."} + "/bench-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) std::abort();
  return pattern;
}

void run_to_end(caf::actor_system& system, std::shared_ptr<episode_services> services,
                std::shared_ptr<record_sink> sink, uint32_t episodes, uint32_t max_live) {
  services->lineage = spawn_group_commit_lineage(system, std::move(sink), lineage_config{});
  auto settings = std::make_shared<episode_settings>();
  settings->max_turns = 4;
  auto run = system.spawn(batch_run, plan_of(episodes, max_live), settings, services, nullptr);
  caf::scoped_actor self{system};
  self->request(run, std::chrono::minutes{10}, atom::start_v)
      .receive(
          [&](const Message<wire::RunSummary>& summary) {
            auto view = summary.open();
            if (view->getTotals().getEpisodes() != episodes ||
                view->getTotals().getTurns() != 4 * episodes)
              std::abort(); // a benchmark of a run that did not do its work says nothing
          },
          [&](caf::error& why) {
            std::fprintf(stderr, "%s\n", system.render(why).c_str());
            std::abort();
          });
  for (auto& who :
       {caf::actor_cast<caf::actor>(services->policy),
        caf::actor_cast<caf::actor>(services->compiler),
        caf::actor_cast<caf::actor>(services->governance),
        caf::actor_cast<caf::actor>(services->lineage), caf::actor_cast<caf::actor>(run)})
    self->send_exit(who, caf::exit_reason::kill);
}

struct kept {
  bool durable = true;
  bool journal = false; ///< with traces.jsonl and metrics.jsonl, as a run has them
  size_t more_text = 0; ///< makes artifacts of completions and kernels
};

std::shared_ptr<store_sink> open_sink(const std::string& directory, bool with_journal) {
  auto opened = store::open({directory + "/lineage", false, uint64_t{8} << 30, true});
  if (!opened) std::abort();
  auto records = std::make_shared<store>(std::move(*opened));
  auto artifacts = std::make_shared<artifact_store>(directory + "/artifacts");
  auto sink = std::make_shared<store_sink>(records, artifacts);
  if (!with_journal) return sink;
  artifacts->keep_recent(size_t{16} << 20);
  run_directory run;
  run.path = directory;
  auto lines = run_journal::open(run);
  if (!lines) std::abort();
  auto journal = std::make_shared<run_journal>(std::move(*lines));
  sink->on_fresh(
      [records, artifacts, journal](wire::Record::Reader record) {
        if (!journal->collect(*records, *artifacts, record)) std::abort();
      },
      [journal] {
        if (!journal->flush()) std::abort();
      });
  return sink;
}

uint64_t disk_bytes(const std::string& directory) {
  uint64_t bytes = 0;
  for (auto& entry : std::filesystem::recursive_directory_iterator(directory))
    if (entry.is_regular_file()) bytes += entry.file_size();
  return bytes;
}

void four_turn_episodes(benchmark::State& state, const kept& what) {
  auto episodes = static_cast<uint32_t>(state.range(0));
  uint64_t bytes = 0;
  for (auto _ : state) {
    state.PauseTiming();
    system_config config;
    caf::actor_system system{config};
    auto directory = scratch_directory();
    std::shared_ptr<store_sink> stored;
    if (what.durable) stored = open_sink(directory, what.journal);
    std::shared_ptr<record_sink> sink = stored;
    if (!sink) sink = std::make_shared<memory_sink>(false);
    auto services = instant_services(system, {.more_text = what.more_text});
    state.ResumeTiming();
    run_to_end(system, services, sink, episodes, run_plan{}.max_live);
    if (stored) stored->settle();
    state.PauseTiming();
    stored.reset();
    sink.reset();
    bytes += disk_bytes(directory);
    std::filesystem::remove_all(directory);
    state.ResumeTiming();
  }
  auto done = static_cast<double>(state.iterations()) * episodes;
  state.counters["episodes/s"] = benchmark::Counter(done, benchmark::Counter::kIsRate);
  state.counters["turns/s"] = benchmark::Counter(done * 4, benchmark::Counter::kIsRate);
  state.counters["bytes/turn"] = static_cast<double>(bytes) / (done * 4);
}

void durable_episodes(benchmark::State& state) {
  four_turn_episodes(state, {});
}
void durable_episodes_with_journal(benchmark::State& state) {
  four_turn_episodes(state, {.journal = true});
}
// Completions of 12 KB with kernels of 6.6 KB.
void durable_episodes_of_long_completions(benchmark::State& state) {
  four_turn_episodes(state, {.journal = true, .more_text = 5'400});
}
void episodes_without_storage(benchmark::State& state) {
  four_turn_episodes(state, {.durable = false});
}

void configure(benchmark::internal::Benchmark* x) {
  x->Unit(benchmark::kMillisecond)->UseRealTime()->MeasureProcessCPUTime();
}
BENCHMARK(durable_episodes)->Arg(40'000)->Apply(configure);
BENCHMARK(durable_episodes_with_journal)->Arg(20'000)->Apply(configure);
BENCHMARK(durable_episodes_of_long_completions)->Arg(1'000)->Apply(configure);
BENCHMARK(episodes_without_storage)->Arg(40'000)->Apply(configure);

// What two of a turn's copies cost: facts built of the answers and flattened for the judge, and
// copied into the turn's record, which is flattened for the store.
struct judged_turn {
  judged_turn() : what(bench_task()), shown(*what, what->prompt) {
    auto text = instant_completion();
    parsed = parse_completion(text.open()->getText().cStr());
    sha256 = sha256_hex(parsed.kernel);
  }

  Message<wire::TurnFacts> facts() const {
    return build<wire::TurnFacts>([this](wire::TurnFacts::Builder out) {
      set_turn_facts(out, {*what, parsed, sha256}, {built, evaluated, {}, none}, shown);
    });
  }

  std::shared_ptr<const task> what;
  shown_code shown;
  parsed_completion parsed;
  std::string sha256;
  Message<wire::BuildResult> built = instant_build();
  Message<wire::EvaluateResult> evaluated = instant_evaluation();
  error none{fault_class::none, {}, {}, {}};
};

void facts_of_a_turn(benchmark::State& state) {
  judged_turn turn;
  for (auto _ : state) benchmark::DoNotOptimize(turn.facts().data());
  state.counters["bytes"] = static_cast<double>(turn.facts().size());
}
BENCHMARK(facts_of_a_turn)->Unit(benchmark::kMicrosecond);

void facts_copied_into_a_record(benchmark::State& state) {
  auto facts = judged_turn{}.facts();
  for (auto _ : state) {
    auto record = build<wire::Record>(
        [&](wire::Record::Builder out) { out.initTurn().setFacts(*facts.open()); });
    benchmark::DoNotOptimize(record.data());
  }
}
BENCHMARK(facts_copied_into_a_record)->Unit(benchmark::kMicrosecond);

// 100,000 episodes, each waiting for the policy in its first or (second argument) a later turn,
// with the conversation and the facts of the turns before it in memory.
void live_episodes(benchmark::State& state) {
  auto episodes = static_cast<uint32_t>(state.range(0));
  auto turns = static_cast<uint32_t>(state.range(1));
  for (auto _ : state) {
    system_config config;
    caf::actor_system system{config};
    auto services = instant_services(system, {false, turns});
    services->lineage =
        spawn_group_commit_lineage(system, std::make_shared<memory_sink>(false), lineage_config{});
    auto settings = std::make_shared<episode_settings>();
    auto before = resident_bytes();
    auto run = system.spawn(batch_run, plan_of(episodes, episodes), settings, services, nullptr);
    caf::scoped_actor self{system};
    auto pending = self->request(run, std::chrono::minutes{10}, atom::start_v);
    // Asking every episode would fill the memory that is to be measured; the policy knows too.
    for (double held = 0; held < episodes;)
      self->request(services->policy, std::chrono::minutes{1}, atom::status_v)
          .receive(
              [&](const Message<wire::Snapshot>& x) {
                held = x.open()->getNumbers()[0].getValue();
              },
              [](caf::error&) {});
    auto after = resident_bytes();
    state.counters["MB"] = static_cast<double>(after - before) / 1e6;
    state.counters["bytes/episode"] = static_cast<double>(after - before) / episodes;
    std::fflush(stdout);
    self->send(run, atom::cancel_v);
    pending.receive([](const Message<wire::RunSummary>&) {}, [](caf::error&) {});
    for (auto& who :
         {caf::actor_cast<caf::actor>(services->policy),
          caf::actor_cast<caf::actor>(services->compiler),
          caf::actor_cast<caf::actor>(services->governance),
          caf::actor_cast<caf::actor>(services->lineage), caf::actor_cast<caf::actor>(run)})
      self->send_exit(who, caf::exit_reason::kill);
  }
}

BENCHMARK(live_episodes)
    ->Args({100'000, 0})
    ->Args({100'000, 1})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

} // namespace
} // namespace kernelmill::bench

BENCHMARK_MAIN();
