// Rows of a run while it goes on.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>
#include <thread>

#include "launch/cli/terminal.hpp"
#include "launch/commands/interrupt.hpp"
#include "launch/commands/store/export_folders.hpp"
#include "launch/commands/store/export_permits.hpp"
#include "messages/base/json_value.hpp"
#include "storage/export/gates.hpp"

namespace kernelmill::commands {

namespace {

constexpr auto look_again = std::chrono::milliseconds{200};

/// Whether the latest session of the run has ended.
expected<bool> has_ended(const exported_run& run) {
  bool ended = false;
  uint32_t latest = 0;
  auto ok = run.lineage.scan_openings(run.where.name, [&](wire::Record::Reader record) {
    auto x = record.getRun();
    if (x.getOpening() > latest) ended = false;
    latest = std::max(latest, x.getOpening());
    if (x.getOpening() == latest && x.getState() != "running") ended = true;
    return true;
  });
  KM_TRY(ok);
  return ended;
}

/// Ended groups that were not told yet, in the order in which they were committed.
expected<std::vector<uint32_t>> fresh_groups(const exported_run& run,
                                             const std::set<uint32_t>& told) {
  auto numbers = run.lineage.groups(run.where.name);
  KM_TRY(numbers);
  std::vector<std::pair<double, uint32_t>> found;
  for (auto number : *numbers) {
    if (told.contains(number)) continue;
    double at = -1;
    auto ok = run.lineage.scan_group(run.where.name, number, [&](wire::Record::Reader record) {
      if (record.isGroup()) at = record.getGroup().getCommittedAt();
      return true;
    });
    KM_TRY(ok);
    if (at >= 0) found.emplace_back(at, number);
  }
  std::sort(found.begin(), found.end());
  std::vector<uint32_t> result;
  for (const auto& [at, number] : found) result.push_back(number);
  return result;
}

} // namespace

expected<int> export_following(const cli::invocation& in, exported_runs& runs,
                               const exports::request& what) {
  if (in.value("--out") != "-" || runs.opened.size() != 1 || in.value("--verdict") != "original" ||
      in.has("--zstd") || in.value("--on-contamination") != "report")
    return configuration_error(
        "usage", "failed to run 'export': --follow writes one run's own rows to stdout",
        "name one run, with --out - and without --zstd, --verdict and --on-contamination");
  interrupt signals;
  const auto& run = runs.opened.front();
  KM_TRY(exports::gate_of(runs.sources).check()); // before the first group has ended
  exports::report done;
  std::set<uint32_t> told;
  for (;;) {
    // Asked first: what was committed before the end is seen after it.
    auto ended = has_ended(run);
    KM_TRY(ended);
    auto fresh = fresh_groups(run, told);
    KM_TRY(fresh);
    for (auto number : *fresh) {
      KM_TRY(exports::write_group(runs.sources.front(), number, what, done));
      told.insert(number);
      std::fflush(stdout);
      if (std::ferror(stdout)) return 0; // the reader closed it
    }
    if (*ended) {
      say_refusals(done.refused);
      KM_TRY(exports::check_any_left(done.refused, done.groups > 0));
      return 0;
    }
    if (signals.token().stop_requested()) return 128 + interrupt::signal();
    std::this_thread::sleep_for(look_again);
  }
}

} // namespace kernelmill::commands
