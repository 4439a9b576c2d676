// Sandboxed CPU evaluations per second, from source text (every candidate is new, nothing comes
// from the cache) and from built libraries: loaded in a fresh process, checked on all cases, and
// timed against the baseline by the protocol that configs/quickstart.json uses. One slot per core,
// each with one thread; build and evaluation of a candidate follow each other, candidates run side
// by side.

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>
#include <unistd.h>

#include "gpu/referee/referee_client.hpp"
#include "gpu/sandbox/sandbox.hpp"
#include "gpu/task/task.hpp"
#include "gpu/toolchain/toolchain.hpp"
#include "messages/base/digest.hpp"

namespace kernelmill::bench {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name, const char* fallback) {
  auto* value = std::getenv(name);
  return value != nullptr ? value : fallback;
}

std::string bin_directory() {
  return fs::absolute(environment("KERNELMILL_BIN_DIR", "build/bin")).string();
}

std::string read_text(const std::string& path) {
  std::ifstream file{path};
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Message<wire::BuildRequest> build_request(const task& what, const std::string& source) {
  return build<wire::BuildRequest>([&](wire::BuildRequest::Builder x) {
    x.setTask(what.id);
    x.setContract("native");
    x.setBackend("cpu");
    x.setSource(source);
    x.setSha256(sha256_hex(source));
    x.setDeadlineMs(30'000);
  });
}

Message<wire::EvaluateRequest> evaluate_request(const task& what, const std::string& source,
                                                wire::BuildResult::Reader built, bool timed) {
  return build<wire::EvaluateRequest>([&](wire::EvaluateRequest::Builder x) {
    x.setTaskDir(what.directory);
    x.setTaskDigest(what.digest);
    x.setCandidateSha256(sha256_hex(source));
    x.setLibraryPath(built.getLibraryPath());
    x.setLibrarySha256(built.getLibrarySha256());
    x.setDeadlineMs(30'000);
    auto timing = x.initTiming();
    timing.setEnabled(timed);
    timing.setHalfWidth(0.05);
  });
}

struct bench_node {
  std::string scratch;
  spawner processes;
  sandbox walls;
  native_toolchain toolchain;
  std::vector<referee_client> referees;

  bench_node(std::string folder, spawner started)
      : scratch(std::move(folder)), processes(std::move(started)), walls(processes),
        toolchain(walls, options()) {
    auto bin = bin_directory();
    auto cores = static_cast<int>(std::thread::hardware_concurrency());
    for (int core = 0; core < cores; ++core) {
      auto client = referee_client::launch(processes, bin + "/kernelmill-referee",
                                           {{core}, scratch + "/cache", 2});
      if (!client) {
        std::fprintf(stderr, "%s\n", render(client.error()).c_str());
        std::abort();
      }
      referees.push_back(std::move(*client));
    }
  }
  ~bench_node() {
    referees.clear();
    fs::remove_all(scratch);
  }
  toolchain_options options() const {
    toolchain_options result;
    result.cache_directory = scratch + "/cache";
    return result;
  }
};

std::unique_ptr<bench_node> start_node() {
  std::string pattern = (fs::temp_directory_path() / "kernelmill-bench-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) std::abort();
  auto started = spawner::launch(bin_directory() + "/kernelmill-spawner");
  if (!started) std::abort();
  return std::make_unique<bench_node>(pattern, std::move(*started));
}

Message<wire::BuildResult> build_new(bench_node& node, const task& what,
                                     const std::string& source) {
  auto request = build_request(what, source);
  auto built = node.toolchain.build(*request.open());
  auto view = built.open();
  if (!view->getCompiled() || view->getCached()) std::abort();
  return built;
}

// A benchmark of failures would say nothing.
void evaluate(referee_client& referee, const task& what, const std::string& source,
              const Message<wire::BuildResult>& built, bool timed) {
  auto result = referee.evaluate(evaluate_request(what, source, *built.open(), timed), 60'000);
  if (result && result->open()->getCorrect()) return;
  std::fprintf(stderr, "%s: %s\n", what.id.c_str(),
               result ? result->open()->getFault().getMessage().cStr()
                      : result.error().message.c_str());
  std::abort();
}

enum class scope { from_source, from_library };

void evaluations(benchmark::State& state, scope what, bool timed) {
  static const std::vector<std::string> ids = {"native/row_sum", "native/softmax",
                                               "native/transpose", "native/gelu"};
  auto root = environment("KERNELMILL_SOURCE_DIR", ".") + "/configs/tasks";
  std::vector<task> tasks;
  std::vector<std::string> sources;
  for (auto& id : ids) {
    auto loaded = load_task(root, id);
    if (!loaded) std::abort();
    sources.push_back(read_text((*loaded)->directory + "/baseline.cpp"));
    tasks.push_back(**loaded);
  }
  auto node = start_node();
  std::vector<Message<wire::BuildResult>> libraries;
  for (size_t i = 0; i < tasks.size(); ++i)
    libraries.push_back(build_new(*node, tasks[i], sources[i]));
  std::atomic<int> number = 0;
  auto one = [&](referee_client& referee, size_t i) {
    if (what == scope::from_library)
      return evaluate(referee, tasks[i], sources[i], libraries[i], timed);
    auto source = sources[i] + "// candidate " + std::to_string(number.fetch_add(1)) + "\n";
    evaluate(referee, tasks[i], source, build_new(*node, tasks[i], source), timed);
  };
  auto round = [&](int count) {
    std::atomic<int> left = count;
    std::vector<std::thread> threads;
    for (auto& referee : node->referees)
      threads.emplace_back([&] {
        for (int mine; (mine = left.fetch_sub(1) - 1) >= 0;)
          one(referee, static_cast<size_t>(mine) % tasks.size());
      });
    for (auto& thread : threads) thread.join();
  };
  // References, baselines and the precompiled header are made once a machine, not once a candidate.
  round(static_cast<int>(2 * tasks.size() * node->referees.size()));
  constexpr int candidates = 96;
  for (auto _ : state) round(candidates);
  state.counters["evaluations/s"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * candidates, benchmark::Counter::kIsRate);
}

void compile_check_and_time(benchmark::State& state) {
  evaluations(state, scope::from_source, true);
}
void compile_and_check(benchmark::State& state) {
  evaluations(state, scope::from_source, false);
}
void check_and_time(benchmark::State& state) {
  evaluations(state, scope::from_library, true);
}
void check(benchmark::State& state) {
  evaluations(state, scope::from_library, false);
}

BENCHMARK(compile_check_and_time)->Iterations(2)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(compile_and_check)->Iterations(2)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(check_and_time)->Iterations(2)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(check)->Iterations(2)->Unit(benchmark::kMillisecond)->UseRealTime();

} // namespace
} // namespace kernelmill::bench

BENCHMARK_MAIN();
