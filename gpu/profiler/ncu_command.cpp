#include "gpu/profiler/ncu_command.hpp"

#include "messages/base/text.hpp"

namespace kernelmill {

namespace {

// Launch facts are no counters: every ncu has them, and its list of counters does not.
bool is_known(std::string_view name, const std::set<std::string, std::less<>>& known) {
  if (known.empty() || name.starts_with("launch__") || known.contains(name)) return true;
  return known.contains(name.substr(0, name.find('.')));
}

} // namespace

std::set<std::string, std::less<>> read_metric_names(std::string_view listed) {
  std::set<std::string, std::less<>> result;
  while (!listed.empty()) {
    auto line = next_line(listed);
    auto word = line.substr(0, line.find_first_of(" \t\r"));
    if (word.find("__") != word.npos) result.emplace(word);
  }
  return result;
}

std::vector<std::string> ncu_metrics(metric_pack pack,
                                     const std::set<std::string, std::less<>>& known) {
  std::vector<std::string> result;
  for (const auto& row : metric_table()) {
    if (pack == metric_pack::quick && !row.is_in_quick) continue;
    for (auto name : row.ncu) {
      if (name.empty() || !is_known(name, known)) continue;
      result.emplace_back(name);
      break;
    }
  }
  return result;
}

std::vector<std::string> ncu_command(std::string_view ncu, const std::vector<std::string>& metrics,
                                     const ncu_launches& which) {
  std::vector<std::string> result{std::string{ncu},
                                  "--csv",
                                  "--page=raw",
                                  "--print-units=base",
                                  "--clock-control=none",
                                  "--replay-mode=kernel",
                                  "--target-processes=all",
                                  "--kernel-name-base=demangled"};
  if (!which.kernel.empty()) result.push_back("--kernel-name=regex:" + which.kernel);
  if (which.marked) result.emplace_back("--profile-from-start=off");
  if (which.skip > 0) result.push_back("--launch-skip=" + std::to_string(which.skip));
  if (which.count > 0) result.push_back("--launch-count=" + std::to_string(which.count));
  if (!which.log_file.empty()) result.push_back("--log-file=" + which.log_file);
  result.push_back("--metrics=" + joined(metrics, ","));
  return result;
}

} // namespace kernelmill
