#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/run_view.hpp"
#include "launch/commands/store/export_permits.hpp"
#include "launch/commands/store/index_embedder.hpp"
#include "launch/config/paths.hpp"
#include "launch/node/node_retrieval.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/text.hpp"
#include "retrieval/corpora/live_kernels.hpp"
#include "retrieval/search/index.hpp"
#include "storage/artifacts.hpp"
#include "storage/export/split.hpp"

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

/// Why kernels of a task are not among an index.
struct kept_out {
  uint64_t kernels = 0;
  std::string why;
};

struct found_kernels {
  std::vector<kernel_example> kernels;
  std::map<std::string, kept_out> without; ///< by task
  std::optional<exports::permit> refused;  ///< the first that a licence refuses
};

std::map<std::string, std::string> splits_of(const json& manifest) {
  std::map<std::string, std::string> result;
  for (const auto& x : manifest.value("tasks", json::array())) {
    auto id = x.value("id", std::string{});
    result[id] = exports::split_of(id, x.value("split", std::string{}));
  }
  return result;
}

/// The sources whose terms hold when this kernel is shown again: of its task, of the model that
/// wrote it, and of kernels that its prompt showed.
std::set<std::string> binding_sources(const exports::permits& may, wire::TurnRecord::Reader turn) {
  std::set<std::string> result;
  auto note = [&](const exports::permit& x) {
    if (!x.terms.empty() || !x.shared) result.insert(x.source);
  };
  note(exports::permit_of(may, turn.getEpisode().getTask().cStr()));
  if (const auto* of =
          may.of_model(turn.getCompletion().getModel().cStr(), turn.getTurn() < may.shared_turns))
    note(*of);
  for (std::string id : turn.getExamples())
    if (!id.starts_with("card:")) note(may.of_example(id));
  return result;
}

/// The candidates of a run's accepted turns that may be shown: an example is part of what a model
/// learns from, so its licence must allow training; and what is held out is never shown.
expected<found_kernels> kernels_of(const invocation& in) {
  auto run = find_run(in.value("--kernels"), in.value("--root"));
  KM_TRY(run);
  auto from = open_for_reading(*run);
  KM_TRY(from);
  KM_TRY(check_store_of(*run, *from));
  auto licences = installed_licences();
  KM_TRY(licences);
  auto accepted = accepted_terms(in, *licences);
  KM_TRY(accepted);
  auto may = permits_of(*run, *licences, purpose::train, *accepted);
  KM_TRY(may);
  auto manifest = read_json(run->manifest_file());
  KM_TRY(manifest);
  const auto splits = splits_of(*manifest);
  artifact_store artifacts{run->artifacts};
  found_kernels result;
  auto keep_out = [&](const std::string& task, std::string why) {
    auto& x = result.without[task];
    ++x.kernels;
    x.why = std::move(why);
  };
  auto add = [&](kernel_example kernel, const exports::permit* refused,
                 const std::set<std::string>& binding) {
    auto split = splits.find(kernel.task);
    kernel.split = split == splits.end() ? exports::split_of(kernel.task, "") : split->second;
    kernel.rights_source =
        binding.empty() ? exports::permit_of(*may, kernel.task).source : *binding.begin();
    if (refused) {
      if (!result.refused) result.refused = *refused;
      keep_out(kernel.task, refused->reason + " (" + refused->hint + ")");
    } else if (binding.size() > 1) {
      keep_out(kernel.task, fmt::format("several sources bind it, and an entry names one: {}",
                                        fmt::join(binding, ", ")));
    } else if (!kernel.is_shown()) {
      keep_out(kernel.task, "its task is held out (dev)");
    } else {
      result.kernels.push_back(std::move(kernel));
    }
  };
  const exports::licence_gate gate{{&*may}};
  auto done = for_each_group(*from, run->name, [&](const stored_group& group) -> expected<void> {
    auto admitted = gate.admit(*may, group);
    for (const auto& episode : group.episodes) {
      std::set<std::string> binding; // what an earlier turn read, a later one has read, too
      for (const auto& record : episode.turns) {
        auto view = record.open();
        binding.merge(binding_sources(*may, view->getTurn()));
        if (auto kernel = verified_of(artifacts, view->getTurn()))
          add(std::move(*kernel), admitted ? nullptr : &admitted.error().may, binding);
      }
    }
    return {};
  });
  KM_TRY(done);
  if (result.kernels.empty() && result.refused)
    return configuration_error("licence_forbids",
                               "failed to index kernels: " + result.refused->reason,
                               result.refused->hint);
  return result;
}

expected<int> index_build(const invocation& in) {
  index_options options;
  options.knowledge = in.has("--corpus") ? in.value("--corpus") : default_corpus();
  options.directory = in.value("DIR");
  auto embedding = embedder_of(in);
  KM_TRY(embedding);
  options.embedding = std::move(*embedding);
  std::map<std::string, kept_out> without;
  if (in.has("--kernels")) {
    auto found = kernels_of(in);
    KM_TRY(found);
    options.kernels = std::move(found->kernels);
    without = std::move(found->without);
  }
  auto manifest = build_index(options);
  KM_TRY(manifest);
  for (const auto& [task, x] : without)
    cli::talk(fmt::format("left out {} kernels of {}: {}", x.kernels, task, x.why));
  if (in.json) {
    auto document = manifest_json(*manifest);
    document["directory"] = options.directory;
    auto& left = document["left_out"] = json::object();
    for (const auto& [task, x] : without) left[task] = {{"kernels", x.kernels}, {"reason", x.why}};
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
  auto embedding = embedder_of(in);
  KM_TRY(embedding);
  auto index = open_index(in.value("DIR"), std::move(*embedding));
  KM_TRY(index);
  auto live = read_live_kernels(in.value("DIR"));
  KM_TRY(live);
  KM_TRY(take_up_live_kernels(*index, *live));
  auto text = joined(in.list("TEXT"), " ");
  retrieval_query query;
  query.text = text;
  query.count = static_cast<size_t>(*count);
  query.exclude_task = in.value("--exclude-task");
  query.family = in.value("--family");
  query.backend = in.value("--backend");
  auto answer = index->query(query);
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
  cli::command row = {
      "index build",
      "Builds a retrieval index from knowledge cards and the verified kernels of a run.",
      "kernelmill index build index\n"
      "kernelmill index build index --kernels first\n"
      "kernelmill index build index --embedder http --base-url http://localhost:8080/v1 --model "
      "MODEL",
      "A run uses the index given by `retrieval.index`. Verified kernels are the candidates of "
      "accepted turns. A kernel\n"
      "is never shown for the task that it solves. Kernels of held-out tasks, and of tasks that "
      "may "
      "not be trained on,\n"
      "are left out.\n"
      "Kernels that runs have added with `retrieval.live`, and what was retracted, stay in the "
      "index's live.jsonl.\n"
      "An index remembers its embedder: a run and `index query` name the same one.",
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
       accept_terms_option(),
       {"--root", "DIR", "Folder that holds the runs.", "runs", false, {}, completes::directory}},
      index_build};
  return with_embedder_options(std::move(row));
}

cli::command index_query_row() {
  return with_embedder_options(
      {"index query",
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
       index_query});
}

} // namespace kernelmill::commands
