#include "launch/server/page/searching.hpp"

#include "launch/analysis/searching/search_document.hpp"
#include "launch/analysis/watch/live.hpp"
#include "launch/analysis/watch/stored.hpp"
#include "messages/base/json_value.hpp"
#include "storage/search_end.hpp"

namespace kernelmill::page {

namespace {

/// An episode that begins after this is no part of the answer, and one that ends meanwhile has its
/// record in the store, which is read afterwards.
searching::search_progress progress_of(const watch::world& in, const run_directory& run) {
  searching::search_progress result;
  if (auto says = in.ask_run(run)) {
    result.live = true;
    for (const auto& x : watch::read_live({run, std::move(*says)}).episodes)
      result.running.insert(x.id);
  }
  return result;
}

} // namespace

expected<watch::json> search_of(const watch::world& in, const run_directory& run) {
  auto config = read_json(run.config_file());
  auto plan = config ? searching::plan_of(*config) : std::nullopt;
  if (!plan)
    return configuration_error("not_found",
                               "failed to show a search: the run " + run.name + " is no search",
                               "`kernelmill search TASK --policy URL` makes one");
  auto now = progress_of(in, run);
  auto from = watch::open_store_of(in, run);
  KM_TRY(from);
  auto story = searching::read_whole_story(**from, run.name, artifact_store{run.artifacts});
  KM_TRY(story);
  now.ended = read_search_end(run, story->used.turns).value_or(watch::json{});
  watch::json result = {{"run", run.name}};
  result.update(searching::search_document(*story, *plan, now));
  return result;
}

} // namespace kernelmill::page
