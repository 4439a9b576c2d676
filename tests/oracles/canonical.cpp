#include "tests/oracles/canonical.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "messages/base/json_value.hpp"
#include "messages/json.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill {

using nlohmann::ordered_json;

namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Whether `word` stands in `line` by itself, in any case.
bool mentions(std::string_view line, std::string_view word) {
  auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  for (auto from = line.begin();;) {
    auto at = std::search(from, line.end(), word.begin(), word.end(), same);
    if (at == line.end()) return false;
    auto after = at + static_cast<ptrdiff_t>(word.size());
    bool begins = at == line.begin() || !std::isalpha(static_cast<unsigned char>(*(at - 1)));
    bool ends = after == line.end() || !is_word(*after);
    if (begins && ends) return true;
    from = at + 1;
  }
}

// Units may touch their number: "12ms", "1.5x".
bool is_about_time(std::string_view line) {
  constexpr std::array<std::string_view, 22> words{
      "time",   "timed", "timing",   "times",   "speedup",    "speed",   "faster", "slower",
      "fast",   "slow",  "ms",       "us",      "ns",         "seconds", "gb/s",   "gflop/s",
      "median", "clock", "roofline", "counter", "bottleneck", "samples"};
  return std::any_of(words.begin(), words.end(), [&](auto word) { return mentions(line, word); });
}

// A number is a run of digits with what holds one together: sign of an exponent, dot.
std::string without_numbers(std::string_view text) {
  std::string result;
  bool inside_word = false; // the digits of "float32" are no number
  for (size_t i = 0; i < text.size();) {
    inside_word = is_word(text[i]) && (inside_word || !is_digit(text[i]));
    if (!is_digit(text[i]) || inside_word) {
      result += text[i++];
      continue;
    }
    // "-0.1" and "0.1" are the same number of other inputs.
    if (!result.empty() && (result.back() == '-' || result.back() == '+') &&
        (result.size() < 2 || !is_word(result[result.size() - 2])))
      result.pop_back();
    while (i < text.size()) {
      bool exponent =
          (text[i] == '-' || text[i] == '+') && (text[i - 1] == 'e' || text[i - 1] == 'E');
      bool dot = text[i] == '.' && i + 1 < text.size() && is_digit(text[i + 1]);
      bool mark = (text[i] == 'e' || text[i] == 'E') && i + 1 < text.size() &&
                  (is_digit(text[i + 1]) || text[i + 1] == '-' || text[i + 1] == '+');
      if (!is_digit(text[i]) && !exponent && !dot && !mark) break;
      ++i;
    }
    result += '#';
  }
  return result;
}

// -- pruning ------------------------------------------------------------------------------------

void erase(ordered_json& x, std::initializer_list<const char*> keys) {
  if (!x.is_object()) return;
  for (auto key : keys) x.erase(key);
}

void normalize(ordered_json& text) {
  if (text.is_string()) text = without_timing(text.get<std::string>());
}

void normalize_key(ordered_json& x, const char* key) {
  if (x.is_object() && x.contains(key)) normalize(x[key]);
}

bool is_timed_name(const ordered_json& x) {
  auto name = x.value("name", "");
  return name.starts_with("speed") || name.starts_with("performance") || name.starts_with("timing");
}

void erase_timed_entries(ordered_json& list) {
  auto kept = ordered_json::array();
  for (auto& x : list)
    if (!is_timed_name(x)) kept.push_back(std::move(x));
  list = std::move(kept);
}

// A run has now one, now none, of the findings that say how fast something was and reject no
// kernel.
bool says_how_fast(const ordered_json& finding) {
  constexpr std::array<std::string_view, 3> rules{"calls_overlap", "depends_on_contents",
                                                  "slows_baseline"};
  auto rule = finding.value("rule", "");
  return std::find(rules.begin(), rules.end(), rule) != rules.end();
}

void prune_findings(ordered_json& findings) {
  auto kept = ordered_json::array();
  for (auto& x : findings) {
    if (says_how_fast(x)) continue;
    erase(x, {"evidence"});
    kept.push_back(std::move(x));
  }
  if (findings.is_array()) findings = std::move(kept);
}

void prune_facts(ordered_json& facts) {
  erase(facts, {"profile"});
  normalize_key(facts["fault"], "message");
  auto& build = facts["build"];
  erase(build, {"seconds", "cached", "library_path", "library_sha256"});
  normalize_key(build["fault"], "message");
  auto& evaluation = facts["evaluation"];
  erase(evaluation, {"seconds", "seed", "timing", "counters", "device", "layers", "output", "spans",
                     "conditions"});
  normalize_key(evaluation["fault"], "message");
  prune_findings(evaluation["findings"]);
  for (auto& x : evaluation["cases"]) erase(x, {"max_error", "bound", "bad_count", "first_bad"});
}

void prune_verdict(ordered_json& verdict) {
  erase(verdict, {"reward", "unpaid"});
  // Which of these an accepted turn is called is for the clock to say.
  if (verdict["category"] == "slower" || verdict["category"] == "not_timed")
    verdict["category"] = "success";
  // An unpaid verdict has none of them, and what they say follows from gates and cases.
  if (verdict["outcome"] == "accepted") erase(verdict, {"components"});
  erase_timed_entries(verdict["components"]);
  erase_timed_entries(verdict["gates"]);
  for (auto& gate : verdict["gates"]) normalize_key(gate, "reason");
  prune_findings(verdict["findings"]);
  normalize_key(verdict["fault"], "message");
}

void prune_turn(ordered_json& turn) {
  erase(turn, {"seconds", "started_at", "committed_at"});
  erase(turn["completion"],
        {"request_id", "attempts", "prompt_tokens", "prompt_token_ids", "weight_versions"});
  erase(turn["completion"]["audit"], {"position", "kept"});
  prune_facts(turn["facts"]);
  prune_verdict(turn["verdict"]);
}

// How many turns the machine could not time, a run is a better or a worse trace of rewards.
void prune_readiness(ordered_json& text) {
  if (!text.is_string()) return;
  auto uses = ordered_json::parse(text.get<std::string>(), nullptr, false);
  erase(uses, {"unpaid", "rl_reward_trace"});
  if (!uses.is_discarded()) text = uses.dump();
  normalize(text);
}

// Texts in place of artifacts: the hash of a text with a time in it says nothing.
expected<void> resolve(ordered_json& into, wire::Content::Reader content,
                       const artifact_store& artifacts, bool timed) {
  auto text = artifacts.text(content);
  KM_TRY(text);
  into = timed ? without_timing(*text) : *text;
  return {};
}

expected<ordered_json> canonical_turn(wire::TurnRecord::Reader turn,
                                      const artifact_store& artifacts) {
  auto result = to_json(turn);
  prune_turn(result);
  auto prompt = turn.getPrompt();
  for (uint32_t i = 0; i < prompt.size(); ++i) {
    auto ok = resolve(result["prompt"][i]["content"], prompt[i].getContent(), artifacts,
                      turn.getTurn() > 0);
    KM_TRY(ok);
  }
  auto ok = resolve(result["completion"]["text"], turn.getCompletion().getText(), artifacts, false);
  auto candidate = artifacts.candidate(turn);
  KM_TRY(candidate);
  result["candidate"] = *candidate;
  // What is said of an accepted turn is said of its speed; the rest of it stands in the verdict.
  if (turn.getVerdict().getOutcome() == wire::Outcome::ACCEPTED)
    erase(result, {"feedback"});
  else if (ok)
    ok = resolve(result["feedback"], turn.getFeedback(), artifacts, true);
  KM_TRY(ok);
  return result;
}

expected<ordered_json> canonical_record(wire::Record::Reader record,
                                        const artifact_store& artifacts) {
  ordered_json result;
  switch (record.which()) {
    case wire::Record::TURN: {
      auto turn = canonical_turn(record.getTurn(), artifacts);
      if (!turn) return turn;
      result["turn"] = std::move(*turn);
      break;
    }
    case wire::Record::EPISODE: {
      auto& x = result["episode"] = to_json(record.getEpisode());
      erase(x, {"seconds", "committed_at", "best_turn", "best_speedup", "rewards", "returns",
                "not_timed"});
      auto reasons = ordered_json::array(); // without those that were about time alone
      for (auto& reason : x["readiness"]["reasons"]) {
        normalize(reason);
        if (reason != "") reasons.push_back(std::move(reason));
      }
      x["readiness"]["reasons"] = std::move(reasons);
      break;
    }
    case wire::Record::GROUP: {
      auto& x = result["group"] = to_json(record.getGroup());
      erase(x, {"returns", "advantages", "mean", "deviation", "left_out", "committed_at"});
      break;
    }
    case wire::Record::RUN: {
      auto& x = result["run"] = to_json(record.getRun());
      erase(x, {"opening", "at"});
      prune_readiness(x["readiness"]);
      break;
    }
  }
  return result;
}

} // namespace

std::string without_timing(const std::string& text) {
  std::string result;
  for (size_t begin = 0; begin < text.size();) {
    auto end = std::min(text.find('\n', begin), text.size());
    std::string_view line{text.data() + begin, end - begin};
    if (!is_about_time(line)) result.append(without_numbers(line)).push_back('\n');
    begin = end + 1;
  }
  return result;
}

expected<std::string> canonical_lineage(const store& from, const artifact_store& artifacts,
                                        const std::string& run) {
  std::string result;
  std::string ending; // as the latest opening found it
  expected<void> status;
  auto ok = from.scan_run(run, [&](wire::Record::Reader record) {
    // How often it was opened and cut off differs between runs that came to the same end.
    if (record.isRun() && record.getRun().getState() != "finished") return true;
    auto line = canonical_record(record, artifacts);
    if (line && record.isRun())
      ending = json_line(*line) + "\n";
    else if (line)
      result.append(json_line(*line)).push_back('\n');
    if (!line) status = tl::unexpected<error>{line.error()};
    return line.has_value();
  });
  KM_TRY(ok);
  KM_TRY(status);
  return result + ending;
}

} // namespace kernelmill
