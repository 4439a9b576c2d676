#include <fmt/format.h>

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

std::string head(const request& what, const report& done) {
  auto result = fmt::format("---\npretty_name: Kernelmill {}\nlanguage:\n- en\n- code\n"
                            "size_categories:\n- {}\ntags:\n- kernelmill\n- gpu-kernels\n",
                            to_string(what.as), size_word(done.rows));
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
                     {"rows", x.rows}});
  for (const auto& x : done.files)
    files.push_back({{"path", x.path},
                     {"split", x.split},
                     {"rows", x.rows},
                     {"bytes", x.bytes},
                     {"sha256", x.sha256}});
  return {{"schema_version", 1},
          {"form", std::string{to_string(what.as)}},
          {"made_by", what.made_by},
          {"filter", filter_json(filter_of(what))},
          {"split_rule", std::string{split_rule}},
          {"runs", std::move(runs)},
          {"models", words(done.models)},
          {"tasks", std::move(tasks)},
          {"read", {{"groups", done.groups}, {"turns", done.turns}}},
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
  result += fmt::format("\nRuns: {}. Answers by: {}. Their licence is that of the models and of "
                        "the tasks; this card gives none.\n",
                        listed(runs), listed(done.models));
  result += counts(done);
  result += fmt::format("\nSplits: {}. All rows of a task are in one split.\n", split_rule);
  result += "\nRewards come from measurements: each answer was built, run in a sandbox, checked "
            "against a reference and\ntimed beside a baseline. A turn that the infrastructure "
            "lost, or that the machine could not time, has no\nreward and is in no comparison.\n"
            "\n`PROVENANCE.json` names runs, filters, hashes and what was left out.\n";
  return result;
}

} // namespace kernelmill::exports
