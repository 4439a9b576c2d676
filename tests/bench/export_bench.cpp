// Exports a synthetic run and says how many rows a second come out, and in how much memory.
//   export_bench [TURNS] [FORM...] [zst]     100000 turns; sft, rl and trl; zst: packed as well
// Each form is exported by a process of its own. Anonymous memory is what the export itself holds;
// pages of the store's map count as files and the kernel takes them back as it likes. The largest
// resident set has both.

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stop_token>
#include <thread>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "storage/export/dataset.hpp"
#include "tests/unit/storage/fixtures.hpp"

namespace kernelmill {

namespace {

using clock = std::chrono::steady_clock;
namespace ex = exports;

constexpr uint32_t members = 8, turns_each = 4;
constexpr uint32_t prompt_ids = 400, answer_ids = 200;

/// Of this process and all its threads.
double processor_seconds() {
  rusage x{};
  ::getrusage(RUSAGE_SELF, &x);
  auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(x.ru_utime) + seconds(x.ru_stime);
}

double seconds_since(clock::time_point begin) {
  return std::chrono::duration<double>(clock::now() - begin).count();
}

store open_run(const std::string& directory, bool read_only) {
  auto result = store::open({.directory = directory,
                             .read_only = read_only,
                             .map_bytes = uint64_t{1} << 30,
                             .durable = false});
  if (!result) throw std::runtime_error(render(result.error()));
  return std::move(*result);
}

// A turn's prompt is the one before it, its answer, and a feedback: ids go on as a server's do.
void add_tokens(wire::Completion::Builder x, uint32_t turn) {
  auto prompt = x.initPromptTokenIds(prompt_ids + turn * (answer_ids + 100));
  for (uint32_t i = 0; i < prompt.size(); ++i) prompt.set(i, static_cast<int32_t>(i * 37 % 50000));
  auto ids = x.initTokenIds(answer_ids);
  auto logprobs = x.initLogprobs(answer_ids);
  for (uint32_t i = 0; i < answer_ids; ++i) {
    ids.set(i, static_cast<int32_t>((prompt.size() + i) * 37 % 50000));
    logprobs.set(i, -0.001f * static_cast<float>(i * 7919 % 4096));
  }
}

Message<wire::Record> turn_with_tokens(uint32_t group, uint32_t member, uint32_t turn,
                                       const fixtures::turn_options& with) {
  auto plain = fixtures::make_turn(group, member, turn, with);
  return build<wire::Record>([&](wire::Record::Builder x) {
    auto view = plain.open();
    x.setTurn(view->getTurn());
    add_tokens(x.getTurn().getCompletion(), turn);
  });
}

void make_run(const std::string& directory, uint64_t turns) {
  auto lineage = open_run(directory, false);
  auto groups = static_cast<uint32_t>(turns / (members * turns_each));
  const std::string code(1500, 'x');
  for (uint32_t group = 0; group < groups; ++group) {
    std::vector<Message<wire::Record>> records;
    fixtures::turn_options with;
    with.task = "native/task_" + std::to_string(group % 100);
    for (uint32_t member = 0; member < members; ++member) {
      std::vector<double> rewards;
      for (uint32_t turn = 0; turn < turns_each; ++turn) {
        bool wrong = turn == 0 && member % 2 == 0;
        with.outcome = wrong ? wire::Outcome::REJECTED : wire::Outcome::ACCEPTED;
        with.reward = wrong ? 0 : 0.3 + 0.1 * ((member + turn) % 7);
        with.text = "<KERNEL>" + code + std::to_string(member) + "</KERNEL>";
        rewards.push_back(with.reward);
        records.push_back(turn_with_tokens(group, member, turn, with));
      }
      records.push_back(fixtures::make_episode(group, member, rewards, with));
    }
    records.push_back(fixtures::make_group(group, std::vector<double>(members, 0.5), with));
    if (auto ok = lineage.commit(records); !ok) throw std::runtime_error(render(ok.error()));
  }
}

uint64_t anonymous_kib() {
  std::ifstream in{"/proc/self/status"};
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("RssAnon:")) return std::stoull(line.substr(8));
  return 0;
}

/// Looks at the memory again and again while `work` is done.
uint64_t most_memory_of(const std::function<void()>& work) {
  std::atomic<uint64_t> most = 0;
  {
    std::jthread watcher{[&](const std::stop_token& done) {
      for (; !done.stop_requested(); std::this_thread::sleep_for(std::chrono::milliseconds{5}))
        most = std::max(most.load(), anonymous_kib());
    }};
    work();
  }
  return most;
}

void export_form(const std::string& folder, ex::form as, bool packed) {
  auto lineage = open_run(folder + "/lineage", true);
  artifact_store artifacts{folder + "/artifacts"};
  ex::source from;
  from.run = "demo";
  from.lineage = &lineage;
  from.artifacts = &artifacts;
  from.may.cards.allowed = from.may.kernels.allowed = true;
  for (int i = 0; i < 100; ++i) from.may.tasks["native/task_" + std::to_string(i)] = from.may.cards;
  ex::request what;
  what.as = as;
  what.zstd = packed;
  what.directory = folder + "/" + std::string{ex::to_string(as)};
  auto begin = clock::now();
  ex::report report;
  auto most = most_memory_of([&] {
    auto done = ex::write_dataset({from}, what);
    if (!done) throw std::runtime_error(render(done.error()));
    report = std::move(*done);
  });
  auto took = seconds_since(begin), worked = processor_seconds();
  uint64_t bytes = 0;
  for (const auto& x : report.files) bytes += x.bytes;
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  fmt::print(
      "{:12} {:>8} turns {:>8} rows {:>7.0f} MB in {:>6.1f} s ({:.1f} s of a core): {:>6.0f} "
      "rows/s, a core's second {:>6.0f} rows and {:>6.0f} turns; peak anonymous RSS {:.1f} "
      "MiB, largest resident set with pages of the store {:.0f} MiB\n",
      std::string{ex::to_string(as)} + (packed ? ".zst" : ""), report.turns, report.rows,
      static_cast<double>(bytes) / 1e6, took, worked, static_cast<double>(report.rows) / took,
      static_cast<double>(report.rows) / worked, static_cast<double>(report.turns) / worked,
      static_cast<double>(most) / 1024, static_cast<double>(used.ru_maxrss) / 1024);
  std::filesystem::remove_all(what.directory);
}

/// Runs `work` in a child, so that its memory is its own.
void apart(const std::function<void()>& work) {
  std::fflush(stdout);
  auto child = ::fork();
  if (child == 0) {
    int code = 0;
    try {
      work();
    } catch (const std::exception& x) {
      fmt::print(stderr, "{}\n", x.what());
      code = 1;
    }
    std::fflush(stdout);
    ::_exit(code);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status != 0) std::exit(1);
}

} // namespace

} // namespace kernelmill

int main(int argc, char** argv) {
  using namespace kernelmill;
  uint64_t turns = 100'000;
  std::vector<ex::form> forms;
  bool packed = false;
  for (int i = 1; i < argc; ++i) { // others are Google Benchmark's, which bench.sh hands to all
    if (auto x = ex::form_of(argv[i])) forms.push_back(*x);
    packed |= argv[i] == std::string_view{"zst"};
    if (auto count = std::strtoull(argv[i], nullptr, 10)) turns = count;
  }
  if (forms.empty()) forms = {ex::form::sft, ex::form::rl, ex::form::trl};
  fixtures::temporary_folder folder;
  auto begin = clock::now();
  apart([&] { make_run(folder / "lineage", turns); });
  fmt::print("made a run of {} turns in {:.1f} s\n", turns, seconds_since(begin));
  for (auto x : forms) {
    apart([&] { export_form(folder.path(), x, false); });
    if (packed) apart([&] { export_form(folder.path(), x, true); });
  }
}
