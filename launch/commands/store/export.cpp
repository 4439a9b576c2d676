// `kernelmill export`: runs as datasets for trainers.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include <fmt/format.h>

#include "gpu/task/task.hpp"
#include "launch/analysis/watch/world.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/store/code_memory.hpp"
#include "launch/commands/store/export_folders.hpp"
#include "launch/commands/store/export_kernelbench.hpp"
#include "launch/commands/store/export_permits.hpp"
#include "launch/commands/store/export_runs.hpp"
#include "launch/commands/store/left_out_words.hpp"
#include "messages/base/counted.hpp"
#include "messages/base/json_value.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;
namespace ex = exports;

const std::vector<std::string> split_words = {"train", "dev"};
const std::vector<std::string>& verb_words = task_verbs();
const std::vector<std::string> kind_words = {"synthesized", "repaired", "rewritten",
                                             "reverted",    "repeated", "none"};
const std::vector<std::string> transition_words = {
    "inspect_only", "patch_applied", "benchmarked", "evaluated",   "repaired",  "reformulated",
    "reverted",     "branched",      "promoted",    "synthesized", "rewritten", "repeated"};
const std::vector<std::string> governance_words = {"usable_positive_sft", "usable_negative_debug",
                                                   "usable_negative_transition", "benchmark_only",
                                                   "unusable"};

tl::unexpected<error> usage(std::string message, std::string hint) {
  return configuration_error("usage", "failed to run 'export': " + std::move(message),
                             std::move(hint));
}

/// Reads "a,b" of the words that there are, from each time that the option is given.
expected<std::set<std::string>> words(const invocation& in, const char* name,
                                      const std::vector<std::string>& known) {
  std::set<std::string> result;
  if (!in.has(name)) return result;
  std::string text;
  for (const auto& x : in.list(name)) text += (text.empty() ? "" : ",") + x;
  for (size_t at = 0; at <= text.size();) {
    auto comma = std::min(text.find(',', at), text.size());
    auto word = text.substr(at, comma - at);
    if (std::find(known.begin(), known.end(), word) == known.end())
      return usage(fmt::format("{} takes words with commas between, and '{}' is none of them", name,
                               cli::clean(word)),
                   fmt::format("there are: {}", fmt::join(known, ", ")));
    result.insert(word);
    at = comma + 1;
  }
  return result;
}

expected<std::optional<double>> min_reward(const invocation& in) {
  if (!in.has("--min-reward")) return std::nullopt;
  const auto& text = in.value("--min-reward");
  double x = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (code != std::errc{} || end != text.data() + text.size() || !std::isfinite(x))
    return usage("--min-reward takes a number, not '" + cli::clean(text) + "'",
                 "such as --min-reward 0.5");
  return x;
}

expected<ex::filter> filter_of(const invocation& in) {
  ex::filter result;
  struct {
    const char* name;
    const std::vector<std::string>& known;
    std::set<std::string>& into;
  } lists[] = {{"--split", split_words, result.splits},
               {"--verb", verb_words, result.verbs},
               {"--kind", kind_words, result.transitions},
               {"--transition-kind", transition_words, result.kinds},
               {"--governance", governance_words, result.governance}};
  for (auto& x : lists) {
    auto read = words(in, x.name, x.known);
    KM_TRY(read);
    x.into = std::move(*read);
  }
  auto least = min_reward(in);
  KM_TRY(least);
  result.min_reward = *least;
  result.patch_bearing = in.has("--patch-bearing-only");
  result.accepted = in.has("--accepted");
  result.best_of_episode = in.has("--best-of-episode");
  return result;
}

expected<void> check_filter(const invocation& in, const ex::filter& wanted) {
  auto as = ex::form_of(in.value("--form"));
  const auto* trouble = "it would change what the members of a group are compared with";
  if (!as && (wanted.of_turns() || !wanted.splits.empty() || !wanted.verbs.empty()))
    return usage(
        fmt::format("the form {} takes no filter: it is of a whole run", in.value("--form")),
        "leave the filters out");
  if (as && ex::filters_of(*as) == ex::filtering::tasks && wanted.of_turns())
    return usage(
        fmt::format("the form {} takes only --split and --verb: {}", in.value("--form"), trouble),
        "leave the other filters out");
  if (wanted.best_of_episode && as != ex::form::sft)
    return usage(fmt::format("a row of the form {} is an episode", in.value("--form")),
                 "leave --best-of-episode out");
  return {};
}

bool tells_split(ex::form x) {
  const auto& fields = ex::fields_of(x);
  return std::any_of(fields.begin(), fields.end(),
                     [](const ex::field& f) { return f.name == "split"; });
}

/// Rows and solutions can be trained on, whatever form they have; KernelBench's figures cannot, and
/// folders of tasks hold no answer.
purpose purpose_of(const invocation& in) {
  bool shared = in.value("--form") == "kernelbench" || in.value("--form") == "harbor-tasks";
  return shared ? purpose::share : purpose::train;
}

ex::contamination_check contamination_of(const invocation& in) {
  ex::contamination_check result;
  const auto& word = in.value("--on-contamination");
  result.then = word == "drop"     ? ex::on_contamination::drop
                : word == "refuse" ? ex::on_contamination::refuse
                                   : ex::on_contamination::report;
  if (in.value("--form") != "kernelbench" && !in.has("--follow"))
    result.memory = make_code_memory();
  return result;
}

expected<void> check_output(const invocation& in) {
  if (in.value("--out") == "-" && in.json)
    return usage("with --out - rows go to stdout, where --json prints its document",
                 "leave one of them out");
  bool rows = ex::form_of(in.value("--form")).has_value();
  if (auto as = ex::form_of(in.value("--form")); as && in.value("--out") == "-")
    if (!tells_split(*as) &&
        (!in.has("--split") || in.value("--split").find(',') != std::string::npos))
      return usage(fmt::format("rows of the form {} do not say which split they are of, and with "
                               "--out - all go into one stream",
                               in.value("--form")),
                   "add --split train or --split dev, or give a folder");
  if (!rows && (in.has("--zstd") || in.has("--follow")))
    return usage(fmt::format("the form {} is a folder of plain files", in.value("--form")),
                 "leave --zstd and --follow out");
  if (!rows && in.value("--verdict") != "original")
    return usage("the form " + in.value("--form") +
                     " holds what was measured, which no verdict changes",
                 "leave --verdict out");
  if (in.has("--by") && in.value("--form") != "kernelbench")
    if (in.value("--by") != "episode")
      return usage("--by belongs to the form kernelbench", "leave --by out");
  return {};
}

// A reader that went away ends the export: what it has not read it does not want. What became of
// stdout is said when the program ends.
expected<void> to_stdout(std::string_view bytes) {
  cli::print(bytes);
  if (!std::ferror(stdout)) return {};
  return infrastructure_error("io_error", "failed to write rows to stdout");
}

// -- what is said -------------------------------------------------------------------------------

json document_of(const ex::report& x, const invocation& in) {
  auto files = json::array();
  for (const auto& f : x.files)
    files.push_back({{"path", f.path},
                     {"split", f.split},
                     {"rows", f.rows},
                     {"bytes", f.bytes},
                     {"sha256", f.sha256}});
  return {{"form", in.value("--form")},
          {"directory", in.value("--out")},
          {"rows", x.rows},
          {"groups", x.groups},
          {"turns", x.turns},
          {"files", std::move(files)},
          {"left_out", x.without},
          {"refused", refusals_json(x.refused)},
          {"train_like_dev", x.contamination.train_like_dev},
          {"answers_like_example", x.contamination.answers_like_example}};
}

std::string text_of(const ex::report& x, const invocation& in) {
  std::string result;
  for (const auto& f : x.files)
    result += fmt::format("wrote {}/{}: {}, {}\n", in.value("--out"), f.path,
                          counted(f.rows, "row"), cli::format_bytes(static_cast<double>(f.bytes)));
  for (const auto& [reason, count] : x.without)
    result += "left out: " + left_out_words(reason, count) + "\n";
  return result;
}

/// Of an export without a row: of a run that has not ended, what ends it.
std::string next_of_empty(const ex::report& x, const invocation& in) {
  if (x.without.contains("without_token_ids"))
    return "this form is made of token ids, and the policy server told none: "
           "docs/how-to/attach-a-policy-server.md says which servers do";
  if (x.without.contains("open_episodes") || x.without.contains("open_groups"))
    for (const auto& word : in.list("RUN")) {
      auto run = find_run(word, in.value("--root"));
      if (!run) continue;
      if (watch::is_worked_on(*run))
        return "wait until " + run->name +
               " has ended (`kernelmill ps` shows it), or read it "
               "meanwhile with --out - --follow";
      return "`kernelmill resume " + run->path + "` ends its episodes; then export again";
    }
  return "give fewer filters, another form, or a run that has such turns; `kernelmill query '' "
         "RUN` "
         "lists its turns";
}

error empty_export(const ex::report& x, const invocation& in) {
  std::string why;
  for (const auto& [reason, count] : x.without)
    why += (why.empty() ? "" : ", ") + left_out_words(reason, count);
  auto message =
      fmt::format("failed to export: none of {} in {} gives a row of the form {}",
                  counted(x.turns, "turn"), counted(x.groups, "group"), in.value("--form"));
  if (!why.empty()) message += "; left out: " + why;
  return {fault_class::configuration, "export_empty", std::move(message), next_of_empty(x, in)};
}

void say_what_was_kept_out(const ex::report& x, const ex::request& what) {
  say_refusals(x.refused);
  for (const auto& [task, conflict] : x.split_conflicts)
    cli::talk(fmt::format("the runs differ on the split of {}: it is in {}", task, conflict.taken));
  const auto& found = x.contamination;
  if (found.train_like_dev + found.answers_like_example > 0)
    cli::talk(fmt::format("contamination: {} a dev kernel, {} a retrieved example{}",
                          counted(found.train_like_dev, "train kernel near-duplicates",
                                  "train kernels near-duplicate"),
                          counted(found.answers_like_example, "answer", "answers"),
                          what.contamination.then == ex::on_contamination::drop
                              ? "; their groups are left out"
                              : "; --on-contamination drop leaves their groups out"));
}

expected<int> export_runs(const invocation& in) {
  auto wanted = filter_of(in);
  KM_TRY(wanted);
  KM_TRY(check_filter(in, *wanted));
  KM_TRY(check_output(in));
  auto runs = open_runs(in, purpose_of(in));
  KM_TRY(runs);
  auto as = ex::form_of(in.value("--form"));
  if (in.value("--form") == "sol") return export_sol(in, *runs);
  if (in.value("--form") == "harbor-tasks") return export_harbor_tasks(in, *runs);
  if (!as) return export_kernelbench(in, *runs);
  bool stream = in.value("--out") == "-";
  ex::request what{.as = *as,
                   .wanted = std::move(*wanted),
                   .zstd = in.has("--zstd"),
                   .accepted_terms = runs->accepted_terms,
                   .contamination = contamination_of(in),
                   .force = in.has("--force"),
                   .directory = stream ? std::string{} : in.value("--out"),
                   .stream = to_stdout,
                   .made_by = made_by()};
  if (in.has("--follow")) return export_following(in, *runs, what);
  cli::show_activity("reading the runs");
  auto done = ex::write_dataset(runs->sources, what);
  if (!done && stream && std::ferror(stdout)) return 0;
  KM_TRY(done);
  say_what_was_kept_out(*done, what);
  if (in.json)
    cli::print_json(document_of(*done, in));
  else if (!stream)
    cli::print(text_of(*done, in));
  if (done->rows == 0) return tl::unexpected<error>{empty_export(*done, in)};
  return 0;
}

std::vector<std::string> form_words() {
  std::vector<std::string> result;
  for (auto x : ex::all_forms) result.emplace_back(ex::to_string(x));
  for (const auto* name : {"kernelbench", "sol", "harbor-tasks"}) result.emplace_back(name);
  return result;
}

cli::option_spec of_words(const char* name, const char* doc,
                          const std::vector<std::string>& words) {
  return {name, "LIST", fmt::format("{}: {}.", doc, fmt::join(words, ", ")), "", false,
          {},   nothing};
}

cli::option_spec repeated(cli::option_spec x) {
  x.repeat = true;
  return x;
}

} // namespace

cli::command export_row() {
  return without_tables(
      {"export",
       "Writes runs as a dataset for a trainer.",
       "kernelmill export runs/first --form sft --out sft\n"
       "kernelmill export runs/first runs/second --form rl --zstd --out rl\n"
       "kernelmill export runs/first --form preference --split train --out - | head -1",
       "A folder has data/train.jsonl and data/dev.jsonl, a data card and PROVENANCE.json; "
       "`datasets.load_dataset(DIR)`\n"
       "reads it. Without --governance, sft has the accepted answers of episodes that are "
       "usable_positive_sft. Filters\n"
       "of turns belong to sft, trajectories and harbor. docs/reference/exports.md has every "
       "field.",
       {{"RUN", "Names of runs, or their directories.", true, true, completes::run, {}}},
       {{"--form", "FORM", "What rows are.", "", true, form_words(), nothing},
        {"--out",
         "DIR",
         "A new folder; - writes the rows to stdout.",
         "",
         true,
         {},
         completes::directory},
        of_words("--split", "Only tasks of these", split_words),
        of_words("--verb", "Only tasks of these", verb_words),
        of_words("--kind", "Only answers with these edit types", kind_words),
        repeated(of_words("--transition-kind",
                          "Only turns or episodes with such a transition, their own or that of a "
                          "tool call; may be repeated",
                          transition_words)),
        flag("--patch-bearing-only", "Only turns or episodes in which a patch made a candidate."),
        of_words("--governance", "Only episodes of these", governance_words),
        {"--min-reward", "X", "Only turns with at least this reward.", "", false, {}, nothing},
        flag("--accepted", "Only accepted turns."),
        flag("--best-of-episode", "Only the best of an episode's turns that are left."),
        {"--by",
         "UNIT",
         "Of kernelbench: a sample is an episode, which stands for its best turn, or each turn.",
         "episode",
         false,
         {"episode", "turn"},
         nothing},
        {"--verdict",
         "NAME",
         "Verdicts and rewards of this version: original, latest, or one that `rescore` made.",
         "original",
         false,
         {},
         nothing},
        {"--on-contamination",
         "WHAT",
         "When a train kernel near-duplicates a dev kernel, or an answer a retrieved example.",
         "report",
         false,
         {"report", "drop", "refuse"},
         nothing},
        accept_terms_option(),
        flag("--follow",
             "Continues while the run does: prints the rows of each group once it has ended."),
        flag("--zstd", "Packs the rows: .jsonl.zst."),
        flag("--force", "Replaces an existing export."),
        runs_root()},
       export_runs});
}

} // namespace kernelmill::commands
