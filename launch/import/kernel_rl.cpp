#include "launch/import/kernel_rl.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "messages/base/digest.hpp"
#include "messages/base/json_depth.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/text.hpp"
#include "storage/files.hpp"

namespace kernelmill {

namespace {

using json = nlohmann::ordered_json;

constexpr uint32_t most_examples = 100; // of a prompt: a file may say anything

const json& member_of(const json& x, const char* key) {
  static const json none;
  auto found = x.is_object() ? x.find(key) : x.end();
  return x.is_object() && found != x.end() ? *found : none;
}

std::string word(const json& x, const char* key) {
  const auto& found = member_of(x, key);
  if (found.is_number_integer()) return found.dump();
  return found.is_string() ? found.get<std::string>() : std::string{};
}

bool truth(const json& x, const char* key) {
  const auto& found = member_of(x, key);
  return found.is_boolean() && found.get<bool>();
}

std::optional<double> figure(const json& x) {
  if (x.is_object()) return figure(member_of(x, "estimate"));
  if (!x.is_number() || !std::isfinite(x.get<double>())) return std::nullopt;
  return x.get<double>();
}

uint32_t count(const json& x, const char* key) {
  auto found = figure(member_of(x, key)).value_or(0);
  return found >= 0 && found < 1e9 ? static_cast<uint32_t>(found) : 0;
}

std::optional<double> at_path(const json& x, std::initializer_list<const char*> keys) {
  const auto* at = &x;
  for (const auto* key : keys) at = &member_of(*at, key);
  return figure(*at);
}

std::string task_of(const json& line) {
  if (auto task = word(line, "task"); !task.empty()) return task;
  auto problem = word(line, "problem_id");
  if (problem.empty()) return {};
  auto level = word(line, "level");
  return "kernelbench/level" + (level.empty() ? "0" : level) + "/" + problem;
}

void read_prompt(foreign_turn& to, const json& messages) {
  if (!messages.is_array()) return;
  for (const auto& x : messages)
    if (auto role = word(x, "role"); !role.empty())
      to.prompt.emplace_back(role, word(x, "content"));
}

// Ours are an object of numbers, as theirs; what else stands there is no part of a reward.
void read_breakdown(foreign_turn& to, const json& parts) {
  if (!parts.is_object()) return;
  for (const auto& [name, value] : parts.items())
    if (auto x = figure(value); x && value.is_number()) to.components.emplace_back(name, *x);
}

foreign_turn turn_of(const json& line, const std::string& task) {
  foreign_turn x;
  const auto& response = member_of(line, "response");
  const auto& result = member_of(line, "eval_result");
  x.task = task;
  x.verb = word(line, "verb").empty() ? "optimize" : word(line, "verb");
  x.operator_family = word(line, "operator_family");
  x.backend = word(line, "backend");
  x.contract = "torch";
  x.model = word(line, "model");
  x.number = count(line, "turn");
  read_prompt(x, member_of(line, "prompt_messages"));
  x.answer = word(response, "raw");
  x.code = word(response, "kernel");
  x.feedback = word(line, "feedback");
  x.format_ok = truth(response, "format_ok") || truth(result, "format_ok");
  x.compiled = truth(result, "compiled");
  x.correct = truth(result, "correctness") || truth(result, "correct");
  x.cheated = truth(result, "cheated");
  x.cases_passed = count(result, "tests_passed") + count(result, "cases_passed");
  x.cases_total = count(result, "tests_total") + count(result, "cases_total");
  x.error_text = word(result, "error_message") + word(result, "error");
  x.speedup = figure(member_of(result, "speedup"));
  x.reward = figure(member_of(line, "reward"));
  for (const auto* key : {"runtime_ms", "candidate_ms"})
    if (auto ms = figure(member_of(result, key))) x.runtime_ms = ms;
  for (const auto* key : {"baseline_runtime_ms", "reference_ms"})
    if (auto ms = figure(member_of(result, key))) x.baseline_ms = ms;
  x.eval_seconds = at_path(line, {"metrics", "time/eval"});
  if (!x.eval_seconds) x.eval_seconds = at_path(result, {"metadata", "timings", "total_eval_s"});
  x.max_turns = count(line, "max_turns");
  if (word(line, "prompt_option") == "raicl" && x.number == 0)
    x.examples = std::min(count(line, "raicl_k"), most_examples);
  x.stop = word(line, "stop_condition");
  x.at = figure(member_of(line, "timestamp")).value_or(0);
  read_breakdown(x, member_of(line, "reward_breakdown"));
  return x;
}

/// What all lines of a file say of how they were made: each value once.
class settings_reader {
public:
  void add(const json& line) {
    for (const auto* key : {"mode", "dataset_src", "prompt_option", "raicl_k", "renderer"}) {
      const auto& value = member_of(line, key);
      if (value.is_null() || value.is_structured()) continue;
      auto& known = settings_[key];
      if (!known.is_array()) known = json::array();
      if (known.size() < most_values && std::find(known.begin(), known.end(), value) == known.end())
        known.push_back(value);
    }
  }

  json take() { return std::move(settings_); }

private:
  static constexpr size_t most_values = 16;
  json settings_ = json::object();
};

/// Puts turns into episodes. A line of kernel_rl does not name its episode, but says the scores of
/// the turns before it; members of one problem are written in any order.
class sorter {
public:
  void add(foreign_turn turn, const json& line) {
    auto [at, fresh] = numbers_.try_emplace(turn.task, groups_.size());
    if (fresh) groups_.push_back({turn.task, {}});
    auto& episodes = groups_[at->second].episodes;
    const auto& name = word(line, "episode");
    auto* into =
        name.empty() ? find(episodes, turn, line) : named(episodes, turn.task + "\n" + name);
    if (!into) into = &episodes.emplace_back();
    turn.number = static_cast<uint32_t>(into->turns.size());
    into->turns.push_back(std::move(turn));
  }

  std::vector<foreign_group> take() { return std::move(groups_); }

private:
  foreign_episode* named(std::vector<foreign_episode>& episodes, const std::string& name) {
    auto [at, fresh] = names_.try_emplace(name, episodes.size());
    return fresh ? nullptr : &episodes[at->second];
  }

  static foreign_episode* find(std::vector<foreign_episode>& episodes, const foreign_turn& turn,
                               const json& line) {
    if (turn.number == 0) return nullptr;
    const auto& scores = member_of(member_of(line, "state"), "step_scores");
    for (auto& x : episodes)
      if (x.turns.size() == turn.number && x.turns.back().stop.empty() && fits(x, scores))
        return &x;
    return nullptr;
  }

  static bool fits(const foreign_episode& x, const json& scores) {
    if (!scores.is_array() || scores.size() < x.turns.size()) return true;
    for (size_t i = 0; i < x.turns.size(); ++i)
      if (auto score = figure(scores[i]);
          score && x.turns[i].reward && std::abs(*score - *x.turns[i].reward) > 1e-9)
        return false;
    return true;
  }

  std::vector<foreign_group> groups_;
  std::map<std::string, size_t> numbers_; ///< of groups, by task
  std::map<std::string, size_t> names_;   ///< of episodes within their group
};

// A turn has some 100 KB, and its JSON takes seven times as much memory as its text.
constexpr size_t longest_line = 64 << 20;

/// A file line by line: it may be larger than the memory.
class line_reader {
public:
  explicit line_reader(const std::string& path) : from_(path, std::ios::binary) {}

  bool is_open() const { return from_.is_open(); }
  bool is_too_long() const { return line_.size() > longest_line; }
  std::string hash() { return hash_.hex(); }

  /// The next one; nothing at the end, and where one is too long.
  std::optional<std::string_view> next() {
    line_.clear();
    for (bool whole = false; !whole && !is_too_long();) {
      if (at_ == filled_ && !fill()) break;
      auto rest = std::string_view{part_}.substr(at_, filled_ - at_);
      auto end = rest.find('\n');
      whole = end != rest.npos;
      line_ += rest.substr(0, whole ? end + 1 : rest.size());
      at_ += whole ? end + 1 : rest.size();
    }
    if (line_.empty() || is_too_long()) return std::nullopt;
    return line_;
  }

private:
  bool fill() {
    part_.resize(1 << 20);
    from_.read(part_.data(), static_cast<std::streamsize>(part_.size()));
    at_ = 0;
    filled_ = static_cast<size_t>(from_.gcount());
    hash_.add({part_.data(), filled_});
    return filled_ > 0;
  }

  std::ifstream from_;
  sha256_stream hash_;
  std::string part_, line_;
  size_t at_ = 0, filled_ = 0;
};

} // namespace

expected<foreign_traces> read_kernel_rl_traces(const std::string& path) {
  if (std::filesystem::is_directory(path))
    return tl::unexpected<error>{file_error(EISDIR, "read", path)};
  line_reader lines{path};
  if (!lines.is_open()) return tl::unexpected<error>{file_error(errno, "read", path)};
  auto bad = [&](size_t line, const std::string& why) {
    return configuration_error(
        "bad_import", "failed to import " + path + ": line " + std::to_string(line) + " " + why,
        "name a traces.jsonl of kernel_rl, or of a run");
  };
  foreign_traces result;
  sorter sorted;
  settings_reader settings;
  size_t number = 1;
  for (; auto next = lines.next(); ++number) {
    auto line = trimmed(*next);
    if (line.empty()) continue;
    auto document = nests_deeper(line) ? json{} : json::parse(line, nullptr, false);
    if (!document.is_object()) return bad(number, "is no JSON object");
    if (auto kind = word(document, "kind"); !kind.empty() && kind != "turn") continue;
    if (!member_of(document, "response").is_object()) return bad(number, "has no `response`");
    auto task = task_of(document);
    if (task.empty()) return bad(number, "has no `problem_id`");
    sorted.add(turn_of(document, task), document);
    settings.add(document);
  }
  if (lines.is_too_long()) return bad(number, "has more than 64 MiB");
  result.sha256 = lines.hash();
  result.settings = settings.take();
  result.groups = sorted.take();
  return result;
}

} // namespace kernelmill
