#include <fmt/format.h>

#include "messages/base/json_fields.hpp"
#include "storage/export/dataset.hpp"
#include "storage/export/split.hpp"

namespace kernelmill::exports {

namespace {

using json = nlohmann::ordered_json;

template <class Set>
json words(const Set& xs) {
  auto result = json::array();
  for (const auto& x : xs) result.push_back(x);
  return result;
}

json filter_json(const filter& x) {
  return {{"split", words(x.splits)},
          {"verb", words(x.verbs)},
          {"transition", words(x.transitions)},
          {"governance", words(x.governance)},
          {"transition_kind", words(x.kinds)},
          {"patch_bearing", x.patch_bearing},
          {"min_reward", x.min_reward ? json(*x.min_reward) : json(nullptr)},
          {"accepted", x.accepted},
          {"best_of_episode", x.best_of_episode}};
}

filter filter_of(const request& what) {
  return what.as == form::sft ? with_defaults_of_sft(what.wanted) : what.wanted;
}

const char* size_word(uint64_t rows) {
  if (rows < 1000) return "n<1K";
  if (rows < 10'000) return "1K<n<10K";
  if (rows < 100'000) return "10K<n<100K";
  if (rows < 1'000'000) return "100K<n<1M";
  return rows < 10'000'000 ? "1M<n<10M" : "10M<n<100M";
}

// As Hugging Face names licences; several, or one that it has no word for, are "other".
std::string licence_lines(const report& done) {
  std::set<std::string> names;
  for (const auto& [source, x] : done.sources) names.insert(x.licence);
  for (const auto& [run, x] : done.model_licences) names.insert(x);
  if (names.size() == 1)
    for (auto [spdx, word] : {std::pair{"Apache-2.0", "apache-2.0"}, std::pair{"MIT", "mit"},
                              std::pair{"CC-BY-4.0", "cc-by-4.0"}})
      if (*names.begin() == spdx) return fmt::format("license: {}\n", word);
  return "license: other\nlicense_name: see-licenses\nlicense_link: LICENSES\n";
}

std::string head(const request& what, const report& done) {
  auto result = fmt::format("---\npretty_name: Kernelmill {}\n{}language:\n- en\n- code\n"
                            "size_categories:\n- {}\ntags:\n- kernelmill\n- gpu-kernels\n",
                            to_string(what.as), licence_lines(done), size_word(done.rows));
  if (done.files.empty()) return result + "---\n";
  result += "configs:\n- config_name: default\n  data_files:\n";
  for (const auto& x : done.files)
    result += fmt::format("  - split: {}\n    path: {}\n", x.split, x.path);
  return result + "dataset_info:\n  features:\n" + features_yaml(what.as, 2) + "---\n";
}

template <class Set>
std::string listed(const Set& xs) {
  std::string result;
  for (const auto& x : xs) result += (result.empty() ? "`" : ", `") + x + "`";
  return result.empty() ? "none" : result;
}

std::string counts(const report& done) {
  std::string result = "\n| split | rows | tasks | file |\n|---|---|---|---|\n";
  for (const auto& x : done.files) {
    size_t tasks = 0;
    for (const auto& [name, facts] : done.tasks) tasks += facts.split == x.split && facts.rows > 0;
    result += fmt::format("| {} | {} | {} | `{}` |\n", x.split, x.rows, tasks, x.path);
  }
  if (done.without.empty()) return result;
  result += "\nLeft out, by reason:\n\n| reason | count |\n|---|---|\n";
  for (const auto& [reason, count] : done.without)
    result += fmt::format("| `{}` | {} |\n", reason, count);
  return result;
}

std::string kinds_part(const char* what, const std::map<std::string, uint64_t>& kinds) {
  if (kinds.empty()) return {};
  auto result = fmt::format("\n| {} | count |\n|---|---|\n", what);
  for (const auto& [kind, count] : kinds) result += fmt::format("| `{}` | {} |\n", kind, count);
  return result;
}

std::string licences_part(const report& done) {
  std::string result = "\n| source | licence | may be passed on |\n|---|---|---|\n";
  for (const auto& [source, x] : done.sources)
    result += fmt::format("| {} | {} | {} |\n", source, x.licence, x.shared ? "yes" : "no");
  for (const auto& [run, x] : done.model_licences)
    result += fmt::format("| model of `{}` | {} | see there |\n", run, x);
  result += "\n`LICENSES` names the tasks of each. The licence of a model's answers is that of the "
            "model";
  result += done.model_licences.empty() ? ", which no run names.\n" : ".\n";
  for (const auto& [key, x] : done.refused)
    result +=
        fmt::format("\nNot in here: {} groups with {}: {}.\n", x.groups, x.what, x.may.reason);
  return result;
}

std::string contamination_part(const request& what, const report& done) {
  std::string result;
  for (const auto& [task, x] : done.split_conflicts)
    result += fmt::format("\nThe runs differ on the split of `{}`; it is in {}.\n", task, x.taken);
  const auto& x = done.contamination;
  if (!x.looked) return result;
  result += fmt::format(
      "\nContamination: {} codes of train were compared with {} accepted codes of dev. {} nearly "
      "repeat one. {} answers nearly\nrepeat a kernel that the prompt showed.{}\n",
      x.compared, x.held_out, x.train_like_dev, x.answers_like_example,
      what.contamination.then == on_contamination::drop ? " Their groups are left out." : "");
  if (x.not_compared > 0)
    result += fmt::format("{} codes of dev did not fit into memory and were not compared.\n",
                          x.not_compared);
  return result;
}

/// Of runs whose rewards were not measured here, or whose rows are unsigned.
std::string origins_part(const std::vector<source>& from) {
  std::string result;
  for (const auto& x : from) {
    if (auto i = x.facts.find("imported"); i != x.facts.end())
      result += fmt::format("\nThe rewards of `{}` were not measured here: the run was imported "
                            "from {}.\n",
                            x.run, text_in(*i, "system"));
    uint64_t episodes = 0, turns = 0;
    for (const auto& entry : x.facts.value("restored", json::array())) {
      episodes += count_in(entry, "episodes", 0);
      turns += count_in(entry, "turns", 0);
    }
    if (turns > 0)
      result += fmt::format("\n{} episodes with {} turns of `{}` were restored from its "
                            "traces.jsonl, after its store was lost: their rewards\nare what these "
                            "rows say.\n",
                            episodes, turns, x.run);
  }
  return result;
}

json licences_json(const request& what, const report& done) {
  auto sources = json::array(), refused = json::array();
  for (const auto& [source, x] : done.sources)
    sources.push_back({{"source", source},
                       {"licence", x.licence},
                       {"url", x.url},
                       {"terms", x.terms.empty() ? json(nullptr) : json(x.terms)},
                       {"share", x.shared},
                       {"confirmed", x.confirmed}});
  for (const auto& [key, x] : done.refused)
    refused.push_back({{"what", x.what},
                       {"source", x.may.source},
                       {"licence", x.may.licence},
                       {"groups", x.groups},
                       {"reason", x.may.reason}});
  return {{"sources", std::move(sources)},
          {"models", done.model_licences},
          {"accepted_terms", words(what.accepted_terms)},
          {"refused", std::move(refused)}};
}

const char* word_of(on_contamination x) {
  switch (x) {
    case on_contamination::report: return "report";
    case on_contamination::drop: return "drop";
    case on_contamination::refuse: break;
  }
  return "refuse";
}

json contamination_json(const request& what, const report& done) {
  const auto& x = done.contamination;
  if (!x.looked) return nullptr;
  auto pairs = json::array();
  for (const auto& pair : x.examples) pairs.push_back({{"code", pair.what}, {"like", pair.like}});
  return {{"then", word_of(what.contamination.then)},
          {"dev_codes", x.held_out},
          {"dev_codes_not_compared", x.not_compared},
          {"train_codes", x.compared},
          {"train_like_dev", x.train_like_dev},
          {"answers_like_example", x.answers_like_example},
          {"first", std::move(pairs)}};
}

json conflicts_json(const report& done) {
  auto result = json::array();
  for (const auto& [task, x] : done.split_conflicts)
    result.push_back({{"task", task}, {"taken", x.taken}, {"by_run", x.by_run}});
  return result;
}

} // namespace

json provenance(const std::vector<source>& from, const request& what, const report& done) {
  auto runs = json::array(), tasks = json::array(), files = json::array();
  for (const auto& x : from) {
    json run = {{"run", x.run}};
    run.update(x.facts);
    runs.push_back(std::move(run));
  }
  for (const auto& [name, x] : done.tasks)
    tasks.push_back({{"task", name},
                     {"split", x.split},
                     {"split_by", x.own_split ? "task" : "hash"},
                     {"source", x.may.source},
                     {"licence", x.may.licence},
                     {"rows", x.rows}});
  for (const auto& x : done.files)
    files.push_back({{"path", x.path},
                     {"split", x.split},
                     {"rows", x.rows},
                     {"bytes", x.bytes},
                     {"sha256", x.sha256}});
  return {{"schema_version", 1},
          {"form", std::string{to_string(what.as)}},
          {"row_schema", schema_id(what.as)},
          {"made_by", what.made_by},
          {"filter", filter_json(filter_of(what))},
          {"split_rule", std::string{split_rule}},
          {"split_conflicts", conflicts_json(done)},
          {"licences", licences_json(what, done)},
          {"contamination", contamination_json(what, done)},
          {"runs", std::move(runs)},
          {"models", words(done.models)},
          {"tasks", std::move(tasks)},
          {"read", {{"groups", done.groups}, {"turns", done.turns}}},
          {"transitions", done.transitions},
          {"patch_kinds", done.patch_kinds},
          {"rows", done.rows},
          {"files", std::move(files)},
          {"left_out", done.without}};
}

std::string data_card(const std::vector<source>& from, const request& what, const report& done) {
  std::vector<std::string> runs;
  for (const auto& x : from) runs.push_back(x.run);
  auto result = head(what, done);
  result +=
      fmt::format("\n# Kernelmill export: {}\n\n{}\n", to_string(what.as), summary_of(what.as));
  result += fmt::format("\nRuns: {}. Answers by: {}.\n", listed(runs), listed(done.models));
  result += licences_part(done);
  result += counts(done);
  result += kinds_part("transition of a turn or a call", done.transitions);
  result += kinds_part("kind of patch", done.patch_kinds);
  result += fmt::format("\nSplits: {}. All rows of a task are in one split.\n", split_rule);
  result += contamination_part(what, done);
  result += "\nRewards come from measurements: each answer was built, run in a sandbox, checked "
            "against a reference and\ntimed beside a baseline. A turn that the infrastructure "
            "lost, or that the machine could not time, has no\nreward and is in no comparison.\n";
  result += origins_part(from);
  result += "\n`PROVENANCE.json` names runs, filters, hashes and what was left out.\n";
  return result;
}

} // namespace kernelmill::exports
