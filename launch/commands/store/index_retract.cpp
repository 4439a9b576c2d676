// `kernelmill index retract`: kernels in which a later rule found a fault are no examples any more.

#include <fmt/format.h>

#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/options.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/text.hpp"
#include "retrieval/search/live_kernels.hpp"

namespace kernelmill::commands {

namespace {

constexpr std::string_view entry_prefix = "kernel:";

expected<int> index_retract(const invocation& in) {
  retraction what;
  for (const auto& x : in.list("--turn"))
    what.ids.insert(x.starts_with(entry_prefix) ? x.substr(entry_prefix.size()) : x);
  what.run = in.value("--run");
  what.reason = in.value("--reason");
  if (what.ids.empty() == what.run.empty())
    return configuration_error("usage",
                               "failed to run 'index retract': it takes either --turn or --run",
                               "`kernelmill index query` lists ids of turns: kernel:ID");
  auto& directory = in.value("DIR");
  auto done = retract_kernels(directory, what);
  KM_TRY(done);
  std::vector<std::string> missing;
  for (const auto& id : what.ids)
    if (!done->found.contains(id)) missing.push_back(id);
  if (done->found.empty())
    return configuration_error(
        "not_found",
        fmt::format("failed to retract from {}: it has no kernel of {}", directory,
                    what.run.empty() ? cli::clean(fmt::format("{}", fmt::join(missing, ", ")))
                                     : "run " + cli::clean(what.run)),
        what.run.empty()
            ? "`kernelmill index query` lists ids of turns: kernel:ID"
            : fmt::format("`kernelmill index audit {}` lists the runs of its kernels", directory));
  if (in.json) {
    cli::print_json({{"directory", directory},
                     {"retracted", done->retracted},
                     {"already", done->already},
                     {"missing", missing}});
    return 0;
  }
  cli::print(fmt::format("{}: {} kernel{} retracted{}\n", directory, done->retracted,
                         done->retracted == 1 ? "" : "s",
                         done->already > 0 ? fmt::format(", {} before", done->already) : ""));
  for (const auto& id : missing) cli::talk("not in the index: " + cli::clean(id));
  return 0;
}

} // namespace

cli::command index_retract_row() {
  return {"index retract",
          "Takes kernels out of a retrieval index.",
          "kernelmill index retract index --turn 3f0c...\n"
          "kernelmill index retract index --run first --reason \"its baseline was wrong\"",
          "A retracted kernel is no example of runs that open the index from then on; the leak "
          "guard still knows it.\n"
          "A line is added to the index's live.jsonl, which `index build` keeps. Delete the line "
          "to take it back.",
          {{"DIR", "Folder of the index.", true, false, completes::directory, {}}},
          {{"--turn",
            "ID",
            "Id of a turn, as `index query` shows it. Repeatable.",
            "",
            false,
            {},
            nothing,
            {},
            true},
           {"--run",
            "NAME",
            "Run that verified the kernels: all those that the index has now.",
            "",
            false,
            {},
            completes::run},
           {"--reason", "TEXT", "Kept with the line.", "", false, {}, nothing}},
          index_retract};
}

} // namespace kernelmill::commands
