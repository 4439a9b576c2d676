#include "launch/commands/run/train_text.hpp"

#include <map>

#include <fmt/format.h>

#include "launch/cli/terminal.hpp"
#include "messages/base/json_fields.hpp"

namespace kernelmill::commands {

namespace {

using train_json = nlohmann::ordered_json;

constexpr double seconds_a_minute = 60;

std::string number_text(const train_json& x, const char* key) {
  auto i = x.find(key);
  return i == x.end() || !i->is_number() ? "-" : fmt::format("{:.3f}", i->get<double>());
}

std::string interval_text(const train_json& x) {
  if (!x.is_array() || x.size() != 3) return "-";
  return fmt::format("{:.3f} [{:.3f}, {:.3f}]", x[0].get<double>(), x[1].get<double>(),
                     x[2].get<double>());
}

void add_findings(std::map<std::string, uint64_t>& to, const train_json& line) {
  if (!line.contains("findings")) return;
  for (const auto& [rule, count] : line["findings"].items()) to[rule] += count.get<uint64_t>();
}

} // namespace

std::string training_line(const train_json& x) {
  if (x.contains("after")) {
    auto text = fmt::format("held out after {} steps:", x["after"].get<uint64_t>());
    for (const auto& [key, value] : x.items())
      if (value.is_array() && value.size() == 3 && value[0].is_number())
        text += fmt::format(" {} {}", key, interval_text(value));
    return text;
  }
  return fmt::format("step {}: reward {}, right {}, {} episodes, {} of {} groups alike, {} s for "
                     "rollouts, {} s for "
                     "learning",
                     x["step"].get<uint64_t>(), number_text(x, "reward/mean"),
                     number_text(x, "kernel/correct_rate"), count_in(x, "episodes", 0),
                     count_in(x, "alike", 0), x["groups"].size(), number_text(x, "Timing/Rollout"),
                     number_text(x, "Timing/Train"));
}

train_json training_summary(const training::training_record& record) {
  double rollouts = 0, learning = 0, all = 0, evaluations = 0;
  uint64_t episodes = 0, turns = 0, lost = 0;
  std::map<std::string, uint64_t> findings;
  for (const auto& x : record.steps()) {
    rollouts += number_in(x, "Timing/Rollout");
    learning += number_in(x, "Timing/Train");
    all += number_in(x, "Timing/Total");
    episodes += count_in(x, "episodes", 0);
    turns += count_in(x, "turns", 0);
    lost += count_in(x, "infrastructure_turns", 0);
    add_findings(findings, x);
  }
  train_json held_out = train_json::array();
  std::map<std::string, uint64_t> held_out_findings;
  for (const auto& x : record.evaluations()) {
    train_json one;
    for (const auto& [key, value] : x.items())
      if (key != "rewards" && key != "best" && key != "findings" && key != "timestamp")
        one[key] = value;
    held_out.push_back(std::move(one));
    evaluations += number_in(x, "seconds");
    add_findings(held_out_findings, x);
  }
  auto rate = [&](double count) {
    return all > 0 ? train_json(count * seconds_a_minute / all) : train_json(nullptr);
  };
  return {{"steps", record.steps().size()},
          {"episodes", episodes},
          {"turns", turns},
          {"infrastructure_turns", lost},
          {"seconds",
           {{"rollouts", rollouts},
            {"learning", learning},
            {"steps", all},
            {"evaluations", evaluations}}},
          {"per_minute",
           {{"steps", rate(static_cast<double>(record.steps().size()))},
            {"episodes", rate(static_cast<double>(episodes))},
            {"verdicts", rate(static_cast<double>(turns - lost))}}},
          {"findings", findings},
          {"held_out_findings", held_out_findings},
          {"held_out", held_out},
          {"best", record.evaluations().empty()
                       ? train_json::object()
                       : record.evaluations().back().value("best", train_json::object())}};
}

std::string training_text(const training::training_record& record, const train_json& summary) {
  std::string text;
  std::vector<std::vector<std::string>> rows;
  for (const auto& x : record.steps())
    rows.push_back({x["step"].dump(), number_text(x, "reward/mean"),
                    number_text(x, "kernel/correct_rate"), number_text(x, "kernel/mean_speedup"),
                    x.value("alike", train_json(0)).dump(), number_text(x, "Timing/Rollout"),
                    number_text(x, "Timing/Train")});
  if (!rows.empty())
    text += cli::format_table({"step>", "reward>", "right>", "mean speedup lower>", "alike>",
                               "rollouts s>", "learning s>"},
                              rows) +
            "\n";
  rows.clear();
  for (const auto& x : summary["held_out"])
    for (const auto& [key, value] : x.items())
      if (value.is_array()) rows.push_back({x["after"].dump(), key, interval_text(value)});
  if (!rows.empty()) text += cli::format_table({"after>", "held out", "mean [95 %]"}, rows) + "\n";
  rows.clear();
  for (const char* part : {"findings", "held_out_findings"})
    for (const auto& [rule, count] : summary[part].items())
      rows.push_back(
          {rule, part == std::string{"findings"} ? "training" : "held out", count.dump()});
  text += rows.empty() ? "No violation.\n\n"
                       : cli::format_table({"finding", "in", "count>"}, rows) + "\n";
  rows.clear();
  for (const auto& [task, x] : summary["best"].items())
    rows.push_back({task, x["turn"].get<std::string>(), number_text(x, "speedup")});
  if (!rows.empty())
    text += cli::format_table({"held-out task", "best kernel", "best speedup lower>"}, rows) + "\n";
  const auto& rate = summary["per_minute"];
  return text +
         fmt::format("{} turns in {} steps; {} steps, {} episodes and {} verdicts a minute\n",
                     summary["turns"].dump(), summary["steps"].dump(), number_text(rate, "steps"),
                     number_text(rate, "episodes"), number_text(rate, "verdicts"));
}

train_json held_out_document(const training::held_out_report& x) {
  train_json leaks = train_json::array();
  for (const auto& one : x.leaks)
    leaks.push_back({{"task", one.task}, {"shown", one.shown}, {"where", one.where}});
  return {{"tasks", x.tasks}, {"runs", x.runs},   {"prompts", x.prompts},
          {"files", x.files}, {"texts", x.texts}, {"leaks", leaks}};
}

std::string held_out_text(const training::held_out_report& x) {
  auto text = fmt::format(
      "searched {} prompts of {} runs and {} texts of {} files for {} held-out tasks: ", x.prompts,
      x.runs, x.texts, x.files, x.tasks);
  if (x.leaks.empty()) return text + "none is shown\n";
  text += fmt::format("{} shown\n", x.leaks.size());
  for (const auto& one : x.leaks)
    text += cli::clean(fmt::format("{}: \"{}\" in {}\n", one.task, one.shown, one.where));
  return text;
}

} // namespace kernelmill::commands
