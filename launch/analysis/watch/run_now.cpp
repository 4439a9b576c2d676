#include "launch/analysis/watch/run_now.hpp"

#include <utility>

#include "messages/base/clock.hpp"
#include "storage/search_end.hpp"

namespace kernelmill::watch {

std::string run_now::state() const {
  if (live) return live->state;
  return stored.state == "open" ? "interrupted" : stored.state;
}

double run_now::seconds() const {
  return stored.worked.seconds(live ? seconds_since_1970() : 0);
}

uint64_t run_now::infrastructure() const {
  return stored.closed_as_lost + (live ? live->lost_open : stored.lost_open);
}

bool run_now::lacks_winner(const run_directory& run, const run_plan& plan) const {
  return plan.search && !live && stored.state == "finished" && !read_search_end(run, stored.turns);
}

std::string run_now::next(const run_directory& run) const {
  return live ? std::string{} : how_to_continue(state(), run.path);
}

std::string how_to_measure_winner(const std::string& directory) {
  return "`kernelmill search --resume " + directory + "` measures it";
}

std::string how_to_continue(const std::string& state, const std::string& directory) {
  return state == "finished" ? std::string{} : "`kernelmill resume " + directory + "` continues it";
}

expected<run_now> look_at_run(const world& in, const run_directory& run,
                              const std::map<uint64_t, std::string>& more_workers) {
  auto stored = find_summary(in, run);
  KM_TRY(stored);
  run_now result{**stored, std::nullopt};
  if (result.stored.state != "open") return result;
  if (auto says = in.ask_run(run)) {
    result.live = read_live({run, std::move(*says)}, more_workers);
    return result;
  }
  auto again = summarize_silent(in, run, std::move(result.stored));
  KM_TRY(again);
  result.stored = std::move(*again);
  return result;
}

} // namespace kernelmill::watch
