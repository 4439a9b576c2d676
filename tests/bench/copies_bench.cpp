// What a baseline is paid that is handed in as a candidate, unchanged: its speedup is 1, and
// nothing else. Prints one line an evaluation and, for each task, how often the interval lay above
// 1 and above 1.02, and what the estimates differ by from one process to the next.
//
//   copies_bench [evaluations of each task] [task...]

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <unistd.h>

#include "gpu/referee/referee_client.hpp"
#include "gpu/task/task.hpp"
#include "gpu/toolchain/trusted_build.hpp"

namespace kernelmill::bench {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name, const char* fallback) {
  auto* value = std::getenv(name);
  return value != nullptr ? value : fallback;
}

template <class T>
T value_of(expected<T> x) {
  if (x) return std::move(*x);
  std::fprintf(stderr, "copies_bench: %s\n", render(x.error()).c_str());
  std::exit(1);
}

struct counts {
  std::vector<double> logarithms; // of the estimates
  std::vector<double> half_widths;
  int above_one = 0;
  int above_two_percent = 0;
  int lost = 0;
};

void note(counts& all, wire::EvaluateResult::Reader x) {
  auto timing = x.getTiming();
  auto speedup = timing.getSpeedup();
  if (!timing.getMeasured() || !x.getCorrect()) {
    ++all.lost;
    std::printf("  lost: %s %s\n", timing.getNote().cStr(), x.getFault().getMessage().cStr());
    return;
  }
  std::string findings;
  for (auto finding : x.getFindings())
    findings +=
        std::string{" "} + finding.getRule().cStr() + " (" + finding.getEvidence().cStr() + ")";
  std::printf("  %.4f [%.4f, %.4f], %.4f ms against %.4f ms, empty call %.4f ms, %u calls; %s%s\n",
              speedup.getEstimate(), speedup.getLow(), speedup.getHigh(), timing.getCandidateMs(),
              timing.getReferenceMs(), timing.getOverheadMs(), timing.getSamples(),
              timing.getNote().cStr(), findings.c_str());
  all.logarithms.push_back(std::log(speedup.getEstimate()));
  all.half_widths.push_back(std::log(speedup.getHigh() / speedup.getLow()) / 2);
  all.above_one += speedup.getLow() > 1;
  all.above_two_percent += speedup.getLow() > 1.02;
}

void summarize(const std::string& id, const counts& x) {
  double sum = 0;
  double squares = 0;
  for (double value : x.logarithms) sum += value;
  auto n = static_cast<double>(x.logarithms.size());
  for (double value : x.logarithms) squares += (value - sum / n) * (value - sum / n);
  auto widths = x.half_widths;
  std::sort(widths.begin(), widths.end());
  std::printf("%-32s %4.0f copies: mean %+.4f, deviation %.4f, half of an interval %.4f (median); "
              "above 1: %d, above 1.02: %d; not measured: %d\n",
              id.c_str(), n, sum / n, std::sqrt(squares / std::max(1.0, n - 1)),
              widths.empty() ? 0 : widths[widths.size() / 2], x.above_one, x.above_two_percent,
              x.lost);
  std::fflush(stdout);
}

int run(int count, const std::vector<std::string>& ids) {
  auto bin = fs::absolute(environment("KERNELMILL_BIN_DIR", "build/bin")).string();
  auto root = fs::absolute(environment("KERNELMILL_SOURCE_DIR", ".")).string() + "/configs/tasks";
  std::string scratch = (fs::temp_directory_path() / "kernelmill-copies-XXXXXX").string();
  if (::mkdtemp(scratch.data()) == nullptr) return 1;
  auto processes = value_of(spawner::launch(bin + "/kernelmill-spawner"));
  auto referee = value_of(
      referee_client::launch(processes, bin + "/kernelmill-referee", {{}, scratch + "/cache", 2}));
  trusted_builder builder{processes, scratch + "/copies", {}};
  for (const auto& id : ids) {
    auto what = value_of(load_task(root, id));
    auto library = value_of(builder.build(what->directory + "/baseline.cpp"));
    auto request = build<wire::EvaluateRequest>([&](wire::EvaluateRequest::Builder x) {
      x.setTaskDir(what->directory);
      x.setLibraryPath(library);
      x.setDeadlineMs(30'000);
      x.initTiming().setEnabled(true);
    });
    std::printf("%s\n", id.c_str());
    counts all;
    for (int i = 0; i < count; ++i) note(all, *value_of(referee.evaluate(request, 60'000)).open());
    summarize(id, all);
  }
  fs::remove_all(scratch);
  return 0;
}

} // namespace
} // namespace kernelmill::bench

int main(int argc, char** argv) {
  int count = argc > 1 ? std::atoi(argv[1]) : 50;
  std::vector<std::string> ids{argv + std::min(argc, 2), argv + argc};
  if (ids.empty())
    ids = {"native/row_sum", "native/softmax", "native/transpose",
           "native/gelu",    "native/matmul",  "native/argmax_routing"};
  return kernelmill::bench::run(count, ids);
}
