// What orchestration costs by itself: four-turn episodes with a policy and an evaluator of zero
// latency, every turn durable before the next, beside the same loop without storage; and the
// memory of live episodes. Run by launch/bench.sh.

#include <cstdio>
#include <filesystem>
#include <fstream>

#include <benchmark/benchmark.h>
#include <unistd.h>

#include "actors/run/run.hpp"
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

void four_turn_episodes(benchmark::State& state, bool durable) {
  auto episodes = static_cast<uint32_t>(state.range(0));
  uint64_t bytes = 0;
  for (auto _ : state) {
    state.PauseTiming();
    system_config config;
    caf::actor_system system{config};
    auto directory = scratch_directory();
    std::shared_ptr<record_sink> sink;
    if (durable) {
      auto opened = store::open({directory + "/lineage", false, uint64_t{8} << 30, true});
      if (!opened) std::abort();
      sink =
          std::make_shared<store_sink>(std::make_shared<store>(std::move(*opened)),
                                       std::make_shared<artifact_store>(directory + "/artifacts"));
    } else {
      sink = std::make_shared<memory_sink>(false);
    }
    auto services = instant_services(system, {});
    state.ResumeTiming();
    run_to_end(system, services, sink, episodes, run_plan{}.max_live);
    state.PauseTiming();
    sink.reset();
    for (auto& entry : std::filesystem::recursive_directory_iterator(directory))
      if (entry.is_regular_file()) bytes += entry.file_size();
    std::filesystem::remove_all(directory);
    state.ResumeTiming();
  }
  auto done = static_cast<double>(state.iterations()) * episodes;
  state.counters["episodes/s"] = benchmark::Counter(done, benchmark::Counter::kIsRate);
  state.counters["turns/s"] = benchmark::Counter(done * 4, benchmark::Counter::kIsRate);
  state.counters["bytes/turn"] = static_cast<double>(bytes) / (done * 4);
}

void durable_episodes(benchmark::State& state) {
  four_turn_episodes(state, true);
}
void episodes_without_storage(benchmark::State& state) {
  four_turn_episodes(state, false);
}

BENCHMARK(durable_episodes)
    ->Arg(40'000)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MeasureProcessCPUTime();
BENCHMARK(episodes_without_storage)
    ->Arg(40'000)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MeasureProcessCPUTime();

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
