#include "launch/learning/training/journal_summary.hpp"

#include <algorithm>
#include <fstream>

#include <fmt/format.h>

#include "launch/analysis/study/paired.hpp"
#include "messages/base/json_fields.hpp"

namespace kernelmill::training {

namespace {

using line = nlohmann::json;

constexpr uint32_t draws = 1000;
constexpr double tail = 0.025;

/// Every whole line of a file of JSON lines.
template <class Take>
expected<void> each_line(const std::string& path, Take take) {
  std::ifstream file{path};
  if (!file)
    return configuration_error("not_found", "failed to read " + path,
                               "was the training's folder moved or cut off?");
  for (std::string text; std::getline(file, text);)
    if (auto x = line::parse(text, nullptr, false); x.is_object()) take(x);
  return {};
}

bool is_most(const std::string& key) {
  return key.ends_with("/max") || key.ends_with("_max") ||
         key.ends_with("max_correct_per_trajectory");
}

/// The sum or, of extremes, the extreme so far, and over how many.
void tally_key(std::pair<double, uint64_t>& to, const std::string& key, double x, uint64_t count) {
  if (to.second == 0)
    to.first = x;
  else if (is_most(key))
    to.first = std::max(to.first, x);
  else if (key.ends_with("/min"))
    to.first = std::min(to.first, x);
  else
    to.first += x;
  to.second += count;
}

/// The turn counts where it is the best so far of its episode.
void add_turn(std::map<std::string, std::pair<std::string, rewarded_sample>>& episodes,
              const line& x) {
  auto episode = text_in(x, "episode");
  if (!x.contains("reward") || !x["reward"].is_number() || text_in(x, "outcome") == "open") return;
  rewarded_sample one;
  one.reward = x["reward"].get<double>();
  one.score.correct = flag_in(x, "kernel/correct", false) && text_in(x, "outcome") == "accepted";
  if (x.contains("kernel/speedup") && x["kernel/speedup"].is_number())
    one.score.speedup = x["kernel/speedup"].get<double>();
  one.turn = fmt::format("{}/{}.t{}", text_in(x, "run"), episode, count_in(x, "turn", 0));
  auto& best = episodes[episode];
  if (best.first.empty() || one.reward > best.second.reward)
    best = {text_in(x, "task"), std::move(one)};
}

double mean_of(const samples_by_task& samples, auto what) {
  double sum = 0;
  for (const auto& [task, all] : samples) sum += what(all);
  return samples.empty() ? 0 : sum / static_cast<double>(samples.size());
}

std::vector<std::pair<std::string, double>> values_at(const samples_by_task& samples,
                                                      const std::vector<double>& fast,
                                                      const std::vector<uint64_t>& pass) {
  using all = std::vector<rewarded_sample>;
  std::vector<std::pair<std::string, double>> result;
  result.emplace_back("reward", mean_of(samples, [](const all& x) {
                        double sum = 0;
                        for (const auto& one : x) sum += one.reward;
                        return sum / static_cast<double>(x.size());
                      }));
  auto right = [](const all& x) {
    return static_cast<uint64_t>(
        std::count_if(x.begin(), x.end(), [](const auto& one) { return one.score.correct; }));
  };
  for (auto k : pass)
    if (std::all_of(samples.begin(), samples.end(),
                    [&](const auto& x) { return x.second.size() >= k; }))
      result.emplace_back(fmt::format("pass@{}", k), mean_of(samples, [&](const all& x) {
                            return reporting::pass_at_k(x.size(), right(x), k).value_or(0);
                          }));
  for (auto p : fast)
    result.emplace_back(fmt::format("fast_{:g}", p), mean_of(samples, [&](const all& x) {
                          std::vector<reporting::scored> scores;
                          for (const auto& one : x) scores.push_back(one.score);
                          return reporting::fast_p(scores, p).value_or(0);
                        }));
  return result;
}

} // namespace

void journal_summary::add(const journal_summary& x) {
  for (const auto& [task, all] : x.samples)
    samples[task].insert(samples[task].end(), all.begin(), all.end());
  for (const auto& [rule, count] : x.findings) findings[rule] += count;
  for (const auto& [key, sum] : x.sums_) tally_key(sums_[key], key, sum.first, sum.second);
  groups += x.groups;
  turns += x.turns;
  lost += x.lost;
  for (const auto& [key, sum] : sums_)
    metrics[key] = is_most(key) || key.ends_with("/min")
                       ? sum.first
                       : sum.first / static_cast<double>(sum.second);
}

expected<journal_summary> summarize_journal(const std::string& run, bool prompts) {
  journal_summary result;
  std::map<std::string, std::pair<std::string, rewarded_sample>> episodes;
  KM_TRY(each_line(run + "/metrics.jsonl", [&](const line& x) {
    if (text_in(x, "kind") == "turn") {
      ++result.turns;
      result.lost += text_in(x, "outcome") == "infrastructure";
      add_turn(episodes, x);
    } else if (text_in(x, "kind") == "group") {
      ++result.groups;
      for (const auto& [key, value] : x.items())
        if (value.is_number() && key.find('/') != key.npos)
          tally_key(result.sums_[key], key, value.template get<double>(), 1);
    }
  }));
  for (auto& [name, x] : episodes) result.samples[x.first].push_back(std::move(x.second));
  KM_TRY(each_line(run + "/traces.jsonl", [&](const line& x) {
    if (text_in(x, "kind") != "turn") return;
    if (x.contains("eval_result") && x["eval_result"].contains("findings"))
      for (const auto& one : x["eval_result"]["findings"]) ++result.findings[text_in(one, "rule")];
    if (!prompts) return;
    std::string all;
    if (x.contains("prompt_messages"))
      for (const auto& message : x["prompt_messages"])
        if (text_in(message, "role") != "assistant") all += text_in(message, "content") + "\n";
    result.prompts.push_back(std::move(all));
  }));
  result.add({}); // the means
  return result;
}

std::vector<std::pair<std::string, interval>> measures_of(const samples_by_task& samples,
                                                          const std::vector<double>& fast,
                                                          const std::vector<uint64_t>& pass) {
  std::vector<std::pair<std::string, interval>> result;
  if (samples.empty()) return result;
  for (const auto& [name, value] : values_at(samples, fast, pass))
    result.emplace_back(name, interval{value, value, value});
  study::splitmix64 random{1};
  std::vector<std::vector<double>> drawn(result.size());
  for (uint32_t i = 0; i < draws; ++i) {
    samples_by_task again;
    for (const auto& [task, all] : samples)
      for (size_t n = 0; n < all.size(); ++n) again[task].push_back(all[random.below(all.size())]);
    auto values = values_at(again, fast, pass);
    for (size_t k = 0; k < values.size(); ++k) drawn[k].push_back(values[k].second);
  }
  for (size_t k = 0; k < result.size(); ++k) {
    std::sort(drawn[k].begin(), drawn[k].end());
    result[k].second.low = study::quantile(drawn[k], tail);
    result[k].second.high = study::quantile(drawn[k], 1 - tail);
  }
  return result;
}

} // namespace kernelmill::training
