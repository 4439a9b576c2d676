// `kernelmill index audit`: what an index holds, and whether it gives solutions away.

#include <map>

#include <fmt/format.h>

#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/store/index_embedder.hpp"
#include "launch/commands/tasks_root.hpp"
#include "launch/import/kernelbench.hpp"
#include "launch/node/node_retrieval.hpp"
#include "launch/node/run_rights.hpp"
#include "messages/base/counted.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/text.hpp"
#include "messages/folder_file.hpp"
#include "retrieval/search/leak_audit.hpp"

namespace kernelmill::commands {

namespace {

using audit_json = nlohmann::ordered_json;

constexpr size_t most_leaks_shown = 40; // on a terminal; --json has all

expected<std::vector<task_ptr>> tasks_that_ask(const invocation& in) {
  auto roots = tasks_roots(in);
  KM_TRY(roots);
  auto ids = list_tasks(*roots);
  KM_TRY(ids);
  std::vector<task_ptr> result;
  for (const auto& id : *ids) {
    auto one = load_task(*roots, id);
    KM_TRY(one);
    result.push_back(std::move(*one));
  }
  return result;
}

/// The index as a run opens it: with its live kernels, and with a guard that knows the tasks.
expected<loaded_index> index_of(const invocation& in, const std::vector<task_ptr>& tasks) {
  auto embedding = embedder_of(in);
  KM_TRY(embedding);
  auto& directory = in.value("DIR");
  auto index = open_index(directory, std::move(*embedding));
  KM_TRY(index);
  know_tasks(*index, tasks);
  auto lines = read_live_kernels(directory);
  KM_TRY(lines);
  if (auto warning = warning_of(*lines, directory); !warning.empty()) cli::talk(warning);
  KM_TRY(take_up_live_kernels(*index, *lines));
  return index;
}

expected<std::vector<audit_problem>> problems_of(const invocation& in,
                                                 const std::vector<task_ptr>& tasks) {
  std::vector<audit_problem> result;
  for (const auto& x : tasks) {
    result.push_back({x->id, x->prompt, x->computation(), baselines_of(*x)});
  }
  if (!in.has("--problems")) return result;
  auto read = read_kernelbench(in.value("--problems"));
  KM_TRY(read);
  for (const auto& x : *read) result.push_back({x.id(), {}, x.code, {}});
  return result;
}

/// What kernels() counts: retracted ones are examples no more, held-out ones are to be seen here.
bool is_counted(const loaded_index& index, size_t i) {
  const auto& x = index.entry(i);
  return x.kind == "kernel" && (index.may_show(i) || x.split == "dev");
}

/// Without the row's own name: "KernelBook, owner/name, MIT" is "KernelBook, MIT". A corpus has
/// thousands of rows, and a table of them says nothing.
std::string corpus_of(const index_entry& x) {
  if (x.origin.empty()) return "runs";
  auto result = x.origin;
  if (x.rights_source != "kernelbook" && x.rights_source != "sakana-archive") return result;
  auto first = result.find(", ");
  if (first == result.npos) return result;
  if (auto second = result.find(", ", first + 1); second != result.npos)
    result.erase(first, second - first);
  return result;
}

/// Kernels of one origin under one licence.
struct source_count {
  std::string origin, source, licence;
  size_t kernels = 0;
};

std::vector<source_count> count_sources(const loaded_index& index, const licence_table& licences) {
  std::map<std::pair<std::string, std::string>, size_t> counts;
  for (size_t i = 0; i < index.size(); ++i) {
    const auto& x = index.entry(i);
    if (!is_counted(index, i)) continue;
    auto source = x.rights_source;
    if (source.empty())
      if (auto by_task = licences.of_task({x.task, "", ""}); !by_task.empty())
        source = by_task.front()->source;
    ++counts[{corpus_of(x), source}];
  }
  std::vector<source_count> result;
  for (const auto& [key, count] : counts) {
    const auto* licence = licences.find(key.second);
    result.push_back({key.first, key.second, licence ? licence->name : "unknown", count});
  }
  return result;
}

std::map<std::string, size_t> splits_of_kernels(const loaded_index& index) {
  std::map<std::string, size_t> result;
  for (size_t i = 0; i < index.size(); ++i)
    if (const auto& x = index.entry(i); is_counted(index, i))
      ++result[x.split.empty() ? "unknown" : x.split];
  return result;
}

audit_json audit_document(const std::string& directory, const loaded_index& index,
                          const std::vector<source_count>& sources,
                          const std::map<std::string, size_t>& splits,
                          const duplicate_count& duplicates, const leak_report& report,
                          bool guarded) {
  audit_json document = {{"directory", directory},
                         {"entries", index.cards() + index.kernels()},
                         {"cards", index.cards()},
                         {"kernels", index.kernels()},
                         {"embedder", index.manifest().embedder},
                         {"dimension", index.manifest().dimension},
                         {"sources", audit_json::array()},
                         {"splits", splits},
                         {"duplicates", {{"exact", duplicates.exact}, {"near", duplicates.near}}},
                         {"guarded", guarded},
                         {"problems", report.problems},
                         {"results", report.results},
                         {"withheld", report.withheld},
                         {"leaks", audit_json::array()}};
  for (const auto& x : sources)
    document["sources"].push_back({{"origin", x.origin},
                                   {"source", x.source},
                                   {"licence", x.licence},
                                   {"kernels", x.kernels}});
  for (const auto& x : report.leaks)
    document["leaks"].push_back(
        {{"task", x.task}, {"entry", x.entry}, {"rank", x.rank}, {"why", x.why}});
  return document;
}

void print_audit(const std::string& directory, const loaded_index& index,
                 const std::vector<source_count>& sources,
                 const std::map<std::string, size_t>& splits, const duplicate_count& duplicates,
                 const leak_report& report) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& x : sources)
    rows.push_back({cli::clean(x.origin), cli::clean(x.source), cli::clean(x.licence),
                    std::to_string(x.kernels)});
  if (!rows.empty())
    cli::print(cli::format_table({"ORIGIN", "SOURCE", "LICENCE", "KERNELS>"}, rows) + "\n");
  std::string split_text;
  for (const auto& [split, count] : splits)
    split_text += fmt::format("{}{} {}", split_text.empty() ? "" : ", ", count, split);
  cli::print(fmt::format("{}: {}, {}{}, {}\n", directory, counted(index.cards(), "card"),
                         counted(index.kernels(), "kernel"),
                         split_text.empty() ? "" : " (" + split_text + ")",
                         index.manifest().embedder));
  cli::print(fmt::format("duplicates: {} exact, {} near\n", duplicates.exact, duplicates.near));
  cli::print(fmt::format("leaks: {} among {} for {}, {} withheld\n", report.leaks.size(),
                         counted(report.results, "result"), counted(report.problems, "problem"),
                         counted(report.withheld, "entry", "entries")));
  rows.clear();
  for (const auto& x : report.leaks)
    if (rows.size() < most_leaks_shown)
      rows.push_back(
          {cli::clean(x.task), cli::clean(x.entry), std::to_string(x.rank), cli::clean(x.why)});
  if (!rows.empty()) cli::print("\n" + cli::format_table({"TASK", "ENTRY", "RANK>", "WHY"}, rows));
  if (report.leaks.size() > most_leaks_shown)
    cli::talk(fmt::format("{} more; --json lists all", report.leaks.size() - most_leaks_shown));
}

expected<int> index_audit(const invocation& in) {
  auto tasks = tasks_that_ask(in);
  KM_TRY(tasks);
  auto index = index_of(in, *tasks);
  KM_TRY(index);
  auto problems = problems_of(in, *tasks);
  KM_TRY(problems);
  auto licences = installed_licences();
  KM_TRY(licences);
  bool guarded = !in.has("--unguarded");
  auto report = audit_leaks(*index, *problems, guarded);
  KM_TRY(report);
  auto sources = count_sources(*index, *licences);
  auto splits = splits_of_kernels(*index);
  auto duplicates = count_duplicates(*index);
  auto& directory = in.value("DIR");
  if (in.json)
    cli::print_json(
        audit_document(directory, *index, sources, splits, duplicates, *report, guarded));
  else
    print_audit(directory, *index, sources, splits, duplicates, *report);
  return report->leaks.empty() ? cli::exit_ok : cli::exit_quality;
}

} // namespace

cli::command index_audit_row() {
  return with_embedder_options(
      {"index audit",
       "Says what a retrieval index holds, and whether it would show a task its own solution.",
       "kernelmill index audit index\n"
       "kernelmill index audit index --problems problems.jsonl --json",
       "Prints kernels by origin and licence, splits, duplicates and leaks. Every installed task, "
       "and every problem of\n"
       "--problems, asks for its 20 nearest entries. An entry is a leak if it is of the task or of "
       "a "
       "problem of its name\n"
       "(`task`), if its code is the problem's but for names, layout and sizes (`normal_form`), if "
       "it has the same\n"
       "operators with the same parameters (`operators`), or if it near-duplicates the task's "
       "baseline (`solution`).\n"
       "Exit codes: 0 when there is no leak, 5 when there is one.",
       {{"DIR", "Folder of the index.", true, false, completes::directory, {}}},
       {{"--problems",
         "FILE",
         "KernelBench's problems.jsonl, or a checkout of it.",
         "",
         false,
         {},
         completes::file},
        flag("--unguarded", "Asks without the leak guard: shows what it is there for."),
        tasks_root()},
       index_audit});
}

} // namespace kernelmill::commands
