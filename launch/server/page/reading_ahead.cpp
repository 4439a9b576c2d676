#include "launch/server/page/reading_ahead.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "launch/server/page/documents.hpp"
#include "launch/server/page/settled.hpp"
#include "launch/server/page/summaries.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::page {

namespace {

namespace fs = std::filesystem;

constexpr uintmax_t most_read = uintmax_t{1} << 30; ///< bytes of stores: seconds of one processor

struct run_ahead {
  run_directory run;
  fs::file_time_type written;
  uintmax_t bytes = 0;
};

struct plan_ahead {
  std::vector<run_ahead> runs; ///< the next one last
  bool fits = true;            ///< all runs are among them
};

plan_ahead plan_of(const watch::world& in) {
  plan_ahead result;
  for (const auto& name : list_runs(in.root)) {
    if (stamp_of_settled(in.root, name).empty()) continue; // read for each document anyway
    auto run = run_below(in, name);
    if (!run) continue;
    std::error_code code;
    fs::path records = run->store + "/data.mdb";
    run_ahead one{std::move(*run), fs::last_write_time(records, code), 0};
    one.bytes = fs::file_size(records, code);
    if (!code) result.runs.push_back(std::move(one));
  }
  auto& all = result.runs;
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.written > b.written; });
  uintmax_t sum = 0;
  auto end = std::find_if(all.begin(), all.end(),
                          [&](const auto& x) { return (sum += x.bytes) > most_read; });
  result.fits = end == all.end();
  all.erase(end, all.end());
  std::reverse(all.begin(), all.end());
  return result;
}

} // namespace

answers::idle_step reading_ahead(const watch::world& in, kept_runs& kept) {
  return [&in, &kept, plan = std::shared_ptr<plan_ahead>{}](const auto& waiting) mutable {
    if (!plan) plan = std::make_shared<plan_ahead>(plan_of(in));
    if (!plan->runs.empty()) {
      auto goes_on = [&] { return waiting == 0; };
      auto done = kept.facts_of(in, plan->runs.back().run, goes_on);
      // Another error is told to the reader who asks for the run.
      if (done || done.error().category != "busy") plan->runs.pop_back();
      return true;
    }
    if (plan->fits) {
      runs_document(in, json::object(), kept);
      kernels_document(in, json::object(), kept);
    }
    return false;
  };
}

} // namespace kernelmill::page
