#include <fmt/format.h>

#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/store/export_permits.hpp"
#include "launch/commands/store/index_embedder.hpp"
#include "launch/commands/store/index_sources.hpp"
#include "launch/config/paths.hpp"
#include "messages/base/counted.hpp"
#include "messages/base/json_value.hpp"
#include "retrieval/search/index.hpp"

namespace kernelmill::commands {

namespace {

using build_json = nlohmann::ordered_json;

build_json build_document(const index_manifest& x, const std::string& directory,
                          const std::vector<source_report>& reports) {
  auto sources = build_json::array();
  for (const auto& one : reports) {
    auto left = build_json::array();
    for (const auto& [unused, why] : one.without)
      left.push_back({{"rows", why.rows}, {"reason", why.reason}});
    sources.push_back(
        {{"from", one.from}, {"rows", one.rows}, {"kept", one.kept}, {"left_out", left}});
  }
  return {{"directory", directory},   {"embedder", x.embedder},
          {"dimension", x.dimension}, {"corpus_digest", x.corpus_digest},
          {"cards", x.cards},         {"kernels", x.kernels},
          {"sources", sources}};
}

std::string build_text(const index_manifest& x, const std::string& directory,
                       const std::vector<source_report>& reports) {
  auto result = fmt::format("{}: {}, {}, {}\n", directory, counted(x.cards, "card"),
                            counted(x.kernels, "kernel"), x.embedder);
  for (const auto& one : reports) {
    result += fmt::format("{}: {} row{} read, {} kept\n", cli::clean(one.from), one.rows,
                          one.rows == 1 ? "" : "s", one.kept);
    for (const auto& [unused, why] : one.without)
      result += fmt::format("  {} left out: {}\n", why.rows, cli::clean(why.reason));
  }
  return result;
}

tl::unexpected<error> nothing_left(const std::vector<source_report>& reports) {
  std::string why;
  for (const auto& one : reports)
    for (const auto& [unused, x] : one.without)
      why += fmt::format("{}{} of {}: {}", why.empty() ? "" : "; ", x.rows, one.from, x.reason);
  return configuration_error("corpus_empty", "failed to build the index: nothing is left for it",
                             why.empty() ? "name another source" : why);
}

expected<int> index_build(const invocation& in) {
  auto sources = sources_of(in);
  KM_TRY(sources);
  auto filter = kernel_filter_of(in);
  KM_TRY(filter);
  index_options options;
  options.directory = in.value("DIR");
  auto embedding = embedder_of(in);
  KM_TRY(embedding);
  options.embedding = std::move(*embedding);
  auto licences = installed_licences();
  KM_TRY(licences);
  auto accepted = accepted_terms(in, *licences);
  KM_TRY(accepted);
  kernel_intake intake{std::move(*filter), *licences, *accepted};
  for (const auto& x : *sources) {
    cli::show_activity("reading " + x.kind + (x.value.empty() ? "" : " " + x.value));
    if (x.kind == "cards")
      options.knowledge = x.value.empty() ? default_corpus() : x.value;
    else if (x.kind == "run")
      KM_TRY(take_run(intake, x, in.value("--root"), *licences, *accepted));
    else
      KM_TRY(take_corpus(intake, x));
  }
  options.kernels = intake.kernels();
  if (options.kernels.empty() && options.knowledge.empty()) return nothing_left(intake.reports());
  cli::show_activity(options.kernels.empty()
                         ? std::string{"embedding the cards"}
                         : "embedding " + counted(options.kernels.size(), "kernel"));
  auto manifest = build_index(options);
  KM_TRY(manifest);
  if (in.json)
    cli::print_json(build_document(*manifest, options.directory, intake.reports()));
  else
    cli::print(build_text(*manifest, options.directory, intake.reports()));
  return 0;
}

} // namespace

cli::command index_build_row() {
  cli::command row = {
      "index build",
      "Builds a retrieval index from knowledge cards, runs and corpora of kernels.",
      "kernelmill index build index\n"
      "kernelmill index build index --from cards --from run=first\n"
      "kernelmill index build index --from sakana=level_1.jsonl --min-speedup 1.2\n"
      "kernelmill index build index --embedder http --base-url http://localhost:8080/v1 --model "
      "MODEL",
      "--from takes, as often as wanted:\n"
      "  cards, cards=DIR   knowledge cards: the installation's, or a folder's\n"
      "  run=RUN            candidates of a run's accepted turns\n"
      "  kernelbook=FILE    rows with KernelBook's columns\n"
      "  sakana=FILE        rows with the columns of Sakana's AI CUDA Engineer Archive\n"
      "  ndjson=FILE        rows of your own (docs/how-to/show-examples.md)\n"
      "A file is JSON lines or one JSON array, and is read row by row.\n"
      "Of kernels that repeat each other the fastest stays. Kernels of held-out tasks, and what "
      "may\n"
      "not be trained on, are left out. A kernel is never shown for the task that it solves.\n"
      "Kernels that runs have added with `retrieval.live`, and what was retracted, stay in the "
      "index's live.jsonl.\n"
      "An index remembers its embedder: a run and `index query` name the same one.",
      {{"DIR", "Folder of the index. Created if missing.", true, false, completes::directory, {}}},
      {from_option()},
      index_build};
  auto filters = kernel_filter_options();
  row.options.insert(row.options.end(), filters.begin(), filters.end());
  row.options.push_back(accept_terms_option());
  row.options.push_back(
      {"--root", "DIR", "Folder that holds the runs.", "runs", false, {}, completes::directory});
  return with_embedder_options(std::move(row));
}

} // namespace kernelmill::commands
