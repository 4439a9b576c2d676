#include <charconv>
#include <set>

#include <fmt/format.h>

#include "launch/analysis/report/eval_results.hpp"
#include "launch/analysis/report/python_json.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::reporting {

namespace {

using json = nlohmann::ordered_json;

const std::string bad_file = "bad_eval_results";
const std::string bad_times = "bad_baseline_times";

std::optional<uint32_t> number_of(std::string_view text) {
  uint32_t x = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), x);
  return code == std::errc{} && end == text.data() + text.size() ? std::optional{x} : std::nullopt;
}

/// A time that was measured: the benchmark says -1 for one that was not.
std::optional<double> time_of(json_object& x, const char* key) {
  auto value = x.number(key);
  return value && *value > 0 ? value : std::nullopt;
}

std::optional<speedup_interval> own_speedup(json_object own) {
  auto x = own.object("speedup");
  auto estimate = x.number("estimate");
  auto low = x.number("low"), high = x.number("high");
  if (!estimate || *estimate <= 0) return std::nullopt;
  return speedup_interval{*estimate, low, high};
}

class reader {
public:
  explicit reader(const eval_results_source& source) : source_(source) {
    result_.knows_left_out = false;
  }

  expected<sample_set> read() {
    auto document = read_python_json(source_.file, bad_file);
    KM_TRY(document);
    if (!document->is_object())
      return tl::unexpected<error>{wrong_type(source_.file, bad_file, "", "an object", *document)};
    for (const auto& [id, entries] : document->items()) KM_TRY(read_problem(id, entries));
    return std::move(result_);
  }

private:
  expected<void> read_problem(const std::string& id, const json& entries) {
    auto problem = number_of(id);
    if (!problem)
      return configuration_error(bad_file,
                                 fmt::format("failed to read {}: the key \"{}\" is no problem's "
                                             "number",
                                             source_.file, id),
                                 "keys of eval_results.json are numbers such as \"19\"");
    ids_.clear();
    // Files from before the benchmark had several samples hold one object.
    if (entries.is_object()) return read_entry(*problem, id, 0, entries);
    if (!entries.is_array())
      return tl::unexpected<error>{
          wrong_type(source_.file, bad_file, id, "a list of samples", entries)};
    for (size_t i = 0; i < entries.size(); ++i)
      if (auto ok = read_entry(*problem, fmt::format("{}[{}]", id, i), i, entries[i]); !ok)
        return ok;
    return {};
  }

  expected<void> read_entry(uint32_t problem, const std::string& where, size_t index,
                            const json& value) {
    json_object x{source_.file, bad_file, where, value};
    sample s;
    s.id = x.whole_number("sample_id").value_or(index);
    s.correct = x.boolean("correctness").value_or(false);
    s.compiled = x.boolean("compiled").value_or(s.correct);
    auto metadata = x.object("metadata");
    auto own = metadata.object("kernelmill");
    s.hardware = metadata.text("hardware").value_or("");
    s.backend = metadata.text("device").value_or("");
    s.turn = own.text("turn").value_or("");
    s.category = own.text("category").value_or("");
    s.contract = own.text("contract").value_or("");
    if (auto turns = own.whole_number("turns_to_first_correct"))
      s.turns_to_first_correct = static_cast<uint32_t>(*turns);
    auto task = own.text("task").value_or("");
    s.speedup = own_speedup(own);
    read_times(x, s);
    if (x.wrong()) return tl::unexpected<error>{*x.wrong()};
    if (auto ok = name_task(s, problem, where, task); !ok) return ok;
    if (auto ok = add_baseline(s, problem); !ok) return ok;
    if (!ids_.insert(s.id).second)
      return configuration_error(
          bad_file,
          fmt::format("failed to read {}: {} has sample_id {}, as one before it", source_.file,
                      where, s.id),
          "remove one of the two: it would be counted twice");
    result_.samples.push_back(std::move(s));
    return {};
  }

  static void read_times(json_object& x, sample& s) {
    auto runtime = time_of(x, "runtime");
    auto reference = time_of(x, "ref_runtime");
    auto stats = x.object("runtime_stats"), reference_stats = x.object("ref_runtime_stats");
    auto calls = [](json_object& from) {
      return static_cast<uint32_t>(from.whole_number("num_trials").value_or(0));
    };
    if (runtime) s.candidate = run_time{*runtime, calls(stats)};
    if (reference) s.reference = run_time{*reference, calls(reference_stats)};
    if (!s.speedup && runtime && reference)
      s.speedup = speedup_interval{*reference / *runtime, std::nullopt, std::nullopt};
  }

  /// The task of a file of ours is in its metadata; that of the benchmark's has no name, and the
  /// level that the caller gave or the baseline's only one.
  expected<void> name_task(sample& s, uint32_t problem, const std::string& where,
                           const std::string& task) {
    auto at = place_of(task);
    if (!task.empty() && (at.problem != problem || (source_.level && at.level != source_.level)))
      return configuration_error(
          bad_file,
          fmt::format("failed to read {}: {}.metadata.kernelmill.task is '{}', which is not "
                      "problem {}{}",
                      source_.file, where, task, problem,
                      source_.level ? fmt::format(" of level {}", *source_.level) : ""),
          "correct the file, or --level");
    level_ = source_.level ? source_.level : at.level;
    if (!level_ && source_.baseline && source_.baseline->size() == 1)
      level_ = source_.baseline->begin()->first;
    if (!task.empty())
      s.task = task;
    else if (level_)
      s.task = fmt::format("kernelbench/level{}/{}", *level_, problem);
    else
      s.task = fmt::format("problems/{}", problem);
    return {};
  }

  expected<void> add_baseline(sample& s, uint32_t problem) {
    if (s.speedup || !source_.baseline || !s.candidate) return {};
    if (!level_)
      return configuration_error("usage",
                                 "failed to read " + source_.file +
                                     ": the baseline holds several levels, and the file does not "
                                     "say its own",
                                 "say which it is: --level 1");
    auto times = source_.baseline->find(*level_);
    if (times == source_.baseline->end())
      return configuration_error("usage",
                                 fmt::format("failed to read {}: the baseline has no level{}, and "
                                             "there is no ref_runtime",
                                             source_.file, *level_),
                                 "name a baseline of that level, or correct --level");
    auto mean = times->second.find(problem);
    if (mean == times->second.end()) return {};
    s.reference = run_time{mean->second, 0};
    s.speedup = speedup_interval{mean->second / s.candidate->ms, std::nullopt, std::nullopt};
    return {};
  }

  const eval_results_source& source_;
  sample_set result_;
  std::optional<uint32_t> level_; ///< of the sample at hand
  std::set<uint64_t> ids_;        ///< of the problem at hand
};

} // namespace

expected<sample_set> read_eval_results(const eval_results_source& source) {
  return reader{source}.read();
}

expected<baseline_times> read_baseline_times(const std::string& file) {
  auto document = read_python_json(file, bad_times);
  KM_TRY(document);
  if (!document->is_object())
    return tl::unexpected<error>{wrong_type(file, bad_times, "", "an object", *document)};
  baseline_times result;
  for (const auto& [name, problems] : document->items()) {
    auto level =
        name.starts_with("level") ? number_of(std::string_view{name}.substr(5)) : std::nullopt;
    if (!level) continue; // the benchmark may say other things beside
    if (!problems.is_object())
      return tl::unexpected<error>{wrong_type(file, bad_times, name, "an object", problems)};
    auto& times = result[*level];
    for (const auto& [problem, value] : problems.items()) {
      auto number = number_of(std::string_view{problem}.substr(0, problem.find('_')));
      if (!number)
        return configuration_error(
            bad_times,
            fmt::format("failed to read {}: the key {}.\"{}\" begins with no "
                        "problem's number",
                        file, name, problem),
            "its keys are names such as 19_ReLU.py");
      json_object x{file, bad_times, name + "." + problem, value};
      auto mean = time_of(x, "mean");
      if (x.wrong()) return tl::unexpected<error>{*x.wrong()};
      if (mean) times[*number] = *mean;
    }
  }
  if (result.empty())
    return configuration_error(bad_times, "failed to read " + file + ": it has no level",
                               "its keys are \"level1\" and so on");
  return result;
}

} // namespace kernelmill::reporting
