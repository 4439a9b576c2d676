// What other systems recorded: kernel_rl's lines, and the files of gpu_rl's bundles. A line
// "## PATH" begins the file of that name in a bundle.

#include <cmath>
#include <filesystem>

#include "launch/import/gpu_rl.hpp"
#include "launch/import/kernel_rl.hpp"
#include "tests/fuzz/support.hpp"
#include "tests/fuzz/targets.hpp"

namespace kernelmill::fuzz {

namespace {

namespace fs = std::filesystem;

constexpr size_t most_lines = 256; // a store is written for each input

void check_groups(const std::vector<foreign_group>& groups) {
  for (const auto& group : groups) {
    promise(!group.episodes.empty(), "a group has an episode");
    for (const auto& episode : group.episodes) {
      promise(!episode.turns.empty(), "an episode has a turn");
      for (size_t i = 0; i < episode.turns.size(); ++i) {
        const auto& x = episode.turns[i];
        promise(x.number == i, "turns follow each other");
        promise(x.task == group.task, "a turn is of its group's task");
        promise(!x.reward || std::isfinite(*x.reward), "a reward is a number");
      }
    }
  }
}

void write_run(const char* system, const std::vector<foreign_group>& groups) {
  auto path = scratch_folder() + "/imported";
  fs::remove_all(path);
  auto counts = write_foreign_run(path, {system, "fuzz", "", "", {}}, groups);
  check(counts);
  size_t turns = 0;
  for (const auto& group : groups)
    for (const auto& episode : group.episodes) turns += episode.turns.size();
  promise(!counts || counts->turns == turns, "each turn that was read is written");
}

void read_lines(std::string_view bytes) {
  std::string text;
  for (const auto& line : lines_of(bytes, most_lines)) text += line + "\n";
  memory_file_path file{text};
  auto read = read_kernel_rl_traces(file.path());
  check(read);
  if (!read) return;
  check_groups(read->groups);
  write_run("kernel_rl", read->groups);
}

void read_bundle(std::string_view bytes) {
  auto folder = fs::path{scratch_folder()} / "bundle";
  fs::remove_all(folder);
  fs::path at = folder / "manifest.json";
  std::string text;
  auto put = [&] {
    fs::create_directories(at.parent_path());
    write_file(at.string(), text);
    text.clear();
  };
  for (const auto& line : lines_of(bytes, most_lines)) {
    if (!line.starts_with("## ")) {
      text += line + "\n";
      continue;
    }
    put();
    auto name = line.substr(3);
    for (const auto* known :
         {"prompt/task_spec.json", "prompt/messages.json", "prompt/completion.txt",
          "prompt/feedback.txt", "eval/eval_envelope.json", "perf/benchmark.json", "summary.json",
          "correctness/correctness.json", "candidate/source.txt"})
      if (name == known) at = folder / known;
  }
  put();
  auto read = read_gpu_rl_bundles(folder.string());
  check(read);
  if (!read) return;
  check_groups(read->groups);
  write_run("gpu_rl", read->groups);
}

} // namespace

void imports(std::string_view bytes) {
  read_lines(bytes);
  read_bundle(bytes);
}

} // namespace kernelmill::fuzz
