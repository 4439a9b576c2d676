#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/run_view.hpp"
#include "launch/config/paths.hpp"
#include "launch/node/node_retrieval.hpp"
#include "messages/base/text.hpp"
#include "retrieval/index.hpp"
#include "storage/artifacts.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

json manifest_json(const index_manifest& x) {
  return {{"embedder", x.embedder},
          {"dimension", x.dimension},
          {"corpus_digest", x.corpus_digest},
          {"cards", x.cards},
          {"kernels", x.kernels}};
}

/// The candidates of a run's accepted turns.
expected<std::vector<verified_kernel>> kernels_of(const std::string& name,
                                                  const std::string& root) {
  auto run = find_run(name, root);
  KM_TRY(run);
  auto from = open_for_reading(*run);
  KM_TRY(from);
  artifact_store artifacts{run->artifacts};
  std::vector<verified_kernel> result;
  auto done = for_each_group(*from, run->name, [&](const stored_group& group) -> expected<void> {
    for (const auto& episode : group.episodes)
      for (const auto& record : episode.turns)
        if (auto kernel = verified_of(artifacts, record.open()->getTurn()))
          result.push_back(std::move(*kernel));
    return {};
  });
  KM_TRY(done);
  return result;
}

expected<int> index_build(const invocation& in) {
  index_options options;
  options.knowledge = in.has("--corpus") ? in.value("--corpus") : default_corpus();
  options.directory = in.value("DIR");
  if (in.has("--kernels")) {
    auto kernels = kernels_of(in.value("--kernels"), in.value("--root"));
    KM_TRY(kernels);
    options.kernels = std::move(*kernels);
  }
  auto manifest = build_index(options);
  KM_TRY(manifest);
  if (in.json) {
    auto document = manifest_json(*manifest);
    document["directory"] = options.directory;
    cli::print_json(document);
  } else {
    cli::print(fmt::format("{}: {} cards, {} kernels, {}\n", options.directory, manifest->cards,
                           manifest->kernels, manifest->embedder));
  }
  return 0;
}

expected<int> index_query(const invocation& in) {
  auto count = in.integer("--count", 1, static_cast<int64_t>(max_results));
  KM_TRY(count);
  auto index = open_index(in.value("DIR"));
  KM_TRY(index);
  auto text = joined(in.list("TEXT"), " ");
  auto answer = index->query(text, static_cast<size_t>(*count), in.value("--exclude-task"),
                             in.value("--family"), in.value("--backend"));
  KM_TRY(answer);
  json results = json::array();
  std::vector<std::vector<std::string>> rows;
  for (const auto& x : answer->results) {
    results.push_back({{"id", x.entry.id},
                       {"kind", x.entry.kind},
                       {"title", x.entry.title},
                       {"source", x.entry.source},
                       {"task", x.entry.task},
                       {"score", x.score},
                       {"text", cli::clean(x.entry.text)}});
    rows.push_back({fmt::format("{:.3f}", x.score), x.entry.id, cli::clean(x.entry.title)});
  }
  if (in.json)
    cli::print_json({{"query", text}, {"results", results}, {"withheld", answer->withheld}});
  else
    cli::print(cli::format_table({"SCORE>", "ID", "TITLE"}, rows));
  if (answer->withheld > 0)
    cli::talk(fmt::format("{} entries left out: they solve the excluded task", answer->withheld));
  return 0;
}

} // namespace

cli::command index_build_row() {
  return {
      "index build",
      "Builds a retrieval index from knowledge cards and the verified kernels of a run.",
      "kernelmill index build index\n"
      "kernelmill index build index --kernels first",
      "A run uses the index given by `retrieval.index`. Verified kernels are the candidates of "
      "accepted turns. A kernel\n"
      "is never shown for the task that it solves.",
      {{"DIR", "Folder of the index. Created if missing.", true, false, completes::directory, {}}},
      {{"--corpus",
        "DIR",
        "Folder of the cards. Default: the installation's.",
        "",
        false,
        {},
        completes::directory},
       {"--kernels",
        "RUN",
        "Run whose verified kernels are indexed too.",
        "",
        false,
        {},
        completes::run},
       {"--root", "DIR", "Folder that holds the runs.", "runs", false, {}, completes::directory}},
      index_build};
}

cli::command index_query_row() {
  return {"index query",
          "Searches a retrieval index.",
          "kernelmill index query index sum of each row",
          "",
          {{"DIR", "Folder of the index.", true, false, completes::directory, {}},
           {"TEXT", "Search text.", true, true, nothing, {}}},
          {{"--count", "N", "Maximum number of results.", "5", false, {}, nothing},
           {"--exclude-task",
            "TASK",
            "Leaves out kernels that solve this task.",
            "",
            false,
            {},
            completes::task},
           {"--family", "NAME", "Ranks this operator family higher.", "", false, {}, nothing},
           {"--backend", "NAME", "Ranks this backend higher.", "", false, {}, nothing}},
          index_query};
}

} // namespace kernelmill::commands
