#include "launch/learning/training/held_out.hpp"

#include <algorithm>
#include <set>

#include "launch/learning/training/journal_summary.hpp"
#include "launch/learning/training/training.hpp"
#include "messages/base/text.hpp"
#include "storage/files.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::training {

namespace {

constexpr size_t shortest_mark = 16; ///< shorter lines of a prompt say nothing of their task

std::vector<std::string> lines_in(std::string_view text) {
  std::vector<std::string> result;
  while (!text.empty()) result.emplace_back(next_line(text));
  return result;
}

/// The ways in which texts say a timed shape.
std::vector<std::string> shapes_of(const task& x) {
  std::vector<std::string> result;
  for (const auto* timed : {&x.timed_cpu, &x.timed_gpu}) {
    if (timed->scalars.size() < 2) continue; // a single number is no shape
    auto by_name = shape_text(timed->scalars), by_place = shape_text(x, timed->scalars);
    for (const auto& text : {by_name, by_place}) result.push_back(text);
  }
  return result;
}

/// Every text of a JSON document.
void collect_texts(const nlohmann::ordered_json& x, std::string& to) {
  if (x.is_string()) to += x.get<std::string>() + "\n";
  if (x.is_structured())
    for (const auto& one : x) collect_texts(one, to);
}

expected<std::vector<std::string>> texts_of(const std::string& path) {
  auto whole = read_file(path);
  KM_TRY(whole);
  if (!path.ends_with(".jsonl")) return std::vector<std::string>{*whole};
  std::vector<std::string> result;
  for (const auto& text : lines_in(*whole)) {
    auto x = nlohmann::ordered_json::parse(text, nullptr, false);
    result.emplace_back();
    if (x.is_discarded())
      result.back() = text;
    else
      collect_texts(x, result.back());
  }
  return result;
}

using marks = std::vector<std::pair<std::string, std::vector<std::string>>>; ///< by task

void search(const marks& wanted, const std::vector<std::string>& texts, const std::string& where,
            held_out_report& to) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const auto& text : texts)
    for (const auto& [task, all] : wanted)
      for (const auto& mark : all)
        if (text.find(mark) != text.npos && seen.emplace(task, mark).second)
          to.leaks.push_back({task, mark, where});
}

} // namespace

std::vector<std::string> marks_of(const task& held_out, const std::vector<task_ptr>& trained) {
  std::vector<std::string> result{held_out.id};
  std::set<std::string> common;
  for (const auto& x : trained)
    for (auto& line : lines_in(x->prompt)) common.insert(std::move(line));
  for (auto& line : lines_in(held_out.prompt))
    if (line.size() >= shortest_mark && !common.contains(line)) result.push_back(std::move(line));
  for (auto& shape : shapes_of(held_out)) result.push_back(std::move(shape));
  return result;
}

expected<held_out_report> check_held_out(const train_config& config, const chosen_tasks& tasks) {
  held_out_report result;
  std::vector<task_ptr> trained, held_out;
  for (const auto& x : tasks.all) {
    bool out =
        std::find(tasks.held_out.begin(), tasks.held_out.end(), x->id) != tasks.held_out.end();
    (out ? held_out : trained).push_back(x);
  }
  result.tasks = held_out.size();
  marks wanted;
  for (const auto& x : held_out) {
    wanted.emplace_back(x->id, marks_of(*x, trained));
    for (const auto& other : trained)
      for (const auto& shape : shapes_of(*other))
        if (auto own = shapes_of(*x); std::find(own.begin(), own.end(), shape) != own.end()) {
          result.leaks.push_back({x->id, shape, other->id});
          break;
        }
  }
  for (const auto& run : list_runs(runs_of(config.dir))) {
    if (!run.starts_with("step-")) continue;
    auto summary = summarize_journal(runs_of(config.dir) + "/" + run, true);
    if (!summary && summary.error().category == "not_found") continue; // it has just begun
    KM_TRY(summary);
    ++result.runs;
    result.prompts += summary->prompts.size();
    search(wanted, summary->prompts, run, result);
  }
  for (const auto& path : config.texts) {
    auto texts = texts_of(path);
    KM_TRY(texts);
    ++result.files;
    result.texts += texts->size();
    search(wanted, *texts, path, result);
  }
  return result;
}

} // namespace kernelmill::training
