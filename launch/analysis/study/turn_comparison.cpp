#include "launch/analysis/study/turn_comparison.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "actors/episode/patch/make_diff.hpp"
#include "launch/analysis/report/speedups.hpp"
#include "launch/analysis/study/wire_values.hpp"
#include "messages/gate_words.hpp"
#include "messages/judged.hpp"

namespace kernelmill::study {

namespace {

using turn = wire::TurnRecord::Reader;

/// One group of the document while it is filled.
class group {
public:
  explicit group(const char* name) { x_ = {{"group", name}, {"equal", true}}; }

  /// Says the values when they differ.
  void differ(const std::string& key, const json& a, const json& b) {
    if (a != b) show(key, a, b, false);
  }

  /// Says them anyhow.
  json& show(const std::string& key, const json& a, const json& b, bool equal) {
    if (!equal) x_["equal"] = false;
    values_.push_back({{"key", key}, {"a", a}, {"b", b}});
    return values_.back();
  }

  void texts(const std::string& a, const std::string& b, const std::string& name_of_a,
             const std::string& name_of_b) {
    if (a == b) return;
    x_["equal"] = false;
    diff_ = unified_diff(a, b, name_of_a, name_of_b);
  }

  void values(json all) {
    for (auto& x : all) show(x["key"], x["a"], x["b"], false);
  }

  json done() {
    x_["values"] = std::move(values_);
    x_["diff"] = std::move(diff_);
    return std::move(x_);
  }

private:
  json x_;
  json values_ = json::array();
  std::string diff_;
};

void flatten(std::map<std::string, json>& to, const json& x, const std::string& name) {
  if (!x.is_object()) {
    to[name] = x;
    return;
  }
  for (const auto& [key, value] : x.items())
    flatten(to, value, name.empty() ? key : name + "." + key);
}

struct pair_of_turns {
  const compared_turn &a, &b;

  /// Both sides of a value.
  template <class F>
  void differ(group& in, const char* key, F f) const {
    in.differ(key, f(a.record), f(b.record));
  }

  expected<void> differ_in_text(group& in, const std::string& what,
                                expected<std::string> (*f)(turn, const artifact_store&)) const {
    auto x = f(a.record, *a.artifacts), y = f(b.record, *b.artifacts);
    KM_TRY(x);
    KM_TRY(y);
    in.texts(*x, *y, a.name + what, b.name + what);
    return {};
  }
};

// -- the groups -------------------------------------------------------------------------------

expected<std::string> prompt_of(const compared_turn& x) {
  std::string result;
  for (auto part : x.record.getPrompt()) {
    auto text = x.artifacts->text(part.getContent());
    KM_TRY(text);
    result += "[" + text_of(part.getRole()) + "]\n" + *text + (text->ends_with('\n') ? "" : "\n");
  }
  return result;
}

expected<json> prompt_group(const pair_of_turns& of) {
  group x{"prompt"};
  of.differ(x, "task", [](turn t) { return json(text_of(t.getEpisode().getTask())); });
  of.differ(x, "examples", [](turn t) {
    auto result = json::array();
    for (auto id : t.getExamples()) result.push_back(text_of(id));
    return result;
  });
  auto a = prompt_of(of.a), b = prompt_of(of.b);
  KM_TRY(a);
  KM_TRY(b);
  x.texts(*a, *b, of.a.name + ".prompt", of.b.name + ".prompt");
  return x.done();
}

json answer_group(const pair_of_turns& of) {
  group x{"answer"};
  of.differ(x, "model", [](turn t) { return json(text_of(t.getCompletion().getModel())); });
  of.differ(x, "weights", [](turn t) {
    auto spans = t.getCompletion().getWeightVersions();
    return spans.size() > 0 ? json(text_of(spans[spans.size() - 1].getVersion())) : json(nullptr);
  });
  of.differ(x, "transition", [](turn t) { return json(text_of(t.getTransition())); });
  of.differ(x, "finish_reason",
            [](turn t) { return json(text_of(t.getCompletion().getFinishReason())); });
  of.differ(x, "prompt_tokens", [](turn t) { return json(t.getCompletion().getPromptTokens()); });
  of.differ(x, "completion_tokens",
            [](turn t) { return json(t.getCompletion().getCompletionTokens()); });
  of.differ(x, "problems", [](turn t) {
    auto result = json::array();
    for (auto p : t.getFacts().getParsed().getProblems()) result.push_back(text_of(p));
    return result;
  });
  return x.done();
}

expected<json> code_group(const pair_of_turns& of) {
  group x{"code"};
  of.differ(x, "sha256", [](turn t) { return json(text_of(t.getCandidateSha256())); });
  KM_TRY(of.differ_in_text(x, ".code",
                           [](turn t, const artifact_store& in) { return in.candidate(t); }));
  return x.done();
}

json resources_of(turn x) {
  json result = json::object();
  for (auto k : x.getFacts().getBuild().getKernels())
    result[text_of(k.getName())] = {{"registers", k.getRegisters()},
                                    {"spill_stores", k.getSpillStores()},
                                    {"spill_loads", k.getSpillLoads()},
                                    {"shared_bytes", k.getSharedBytes()},
                                    {"occupancy", number(k.getOccupancy())}};
  return result;
}

json count_of(turn x, const char* severity) {
  auto all = x.getFacts().getBuild().getDiagnostics();
  return std::count_if(all.begin(), all.end(),
                       [&](auto d) { return text_of(d.getSeverity()) == severity; });
}

json compiler_group(const pair_of_turns& of) {
  group x{"compiler"};
  of.differ(x, "compiled", [](turn t) { return json(t.getFacts().getBuild().getCompiled()); });
  of.differ(x, "toolchain",
            [](turn t) { return json(text_of(t.getFacts().getBuild().getToolchain())); });
  of.differ(x, "errors", [](turn t) { return count_of(t, "error"); });
  of.differ(x, "warnings", [](turn t) { return count_of(t, "warning"); });
  auto a = resources_of(of.a.record), b = resources_of(of.b.record);
  for (const auto& [name, value] : a.items())
    x.differ("kernel " + name, value, b.value(name, json(nullptr)));
  for (const auto& [name, value] : b.items())
    if (!a.contains(name)) x.differ("kernel " + name, nullptr, value);
  auto log = [](turn t) { return text_of(t.getFacts().getBuild().getLog()); };
  x.texts(log(of.a.record), log(of.b.record), of.a.name + ".log", of.b.name + ".log");
  return x.done();
}

json verdict_group(const pair_of_turns& of) {
  group x{"verdict"};
  of.differ(x, "outcome", [](turn t) { return json(word(t.getVerdict().getOutcome())); });
  of.differ(x, "category", [](turn t) { return json(text_of(t.getVerdict().getCategory())); });
  of.differ(x, "message",
            [](turn t) { return json(text_of(t.getVerdict().getFault().getMessage())); });
  auto gates = [](turn t) {
    std::map<std::string, json> result;
    auto outcome = t.getVerdict().getOutcome();
    for (auto g : t.getVerdict().getGates()) result[text_of(g.getName())] = gate_word(outcome, g);
    return result;
  };
  auto a = gates(of.a.record), b = gates(of.b.record);
  for (const auto& [name, status] : a)
    x.differ("gate " + name, status, b.contains(name) ? b[name] : json(nullptr));
  for (const auto& [name, status] : b)
    if (!a.contains(name)) x.differ("gate " + name, nullptr, status);
  return x.done();
}

// Inputs are drawn anew for each evaluation, so errors of cases that both pass always differ: they
// say nothing.
json cases_group(const pair_of_turns& of) {
  group x{"cases"};
  auto cases = [](turn t) {
    std::map<std::string, json> result;
    for (auto c : t.getFacts().getEvaluation().getCases()) {
      auto key = text_of(c.getName());
      if (c.getShape().size() > 0) key += " (" + text_of(c.getShape()) + ")";
      json& to = result[key] = {{"pass", c.getPass()}};
      if (c.getPass()) continue;
      to["bad_count"] = c.getBadCount();
      to["max_error"] = number(c.getMaxError());
      to["first_bad"] = text_of(c.getFirstBad());
    }
    return result;
  };
  auto a = cases(of.a.record), b = cases(of.b.record);
  for (const auto& [name, one] : a) x.differ(name, one, b.contains(name) ? b[name] : json(nullptr));
  for (const auto& [name, one] : b)
    if (!a.contains(name)) x.differ(name, nullptr, one);
  return x.done();
}

/// Times are never equal; the group is, when both have a speedup and the intervals overlap.
json times_group(const pair_of_turns& of) {
  group x{"times"};
  auto timing = [](turn t) { return t.getFacts().getEvaluation().getTiming(); };
  auto a = timing(of.a.record), b = timing(of.b.record);
  of.differ(x, "device",
            [](turn t) { return json(text_of(t.getFacts().getEvaluation().getDevice())); });
  x.differ("clock", text_of(a.getClock()), text_of(b.getClock()));
  auto if_measured = [](wire::Timing::Reader t, json of_it) {
    return t.getMeasured() ? std::move(of_it) : json(nullptr);
  };
  if (a.getMeasured() || b.getMeasured()) {
    bool both = a.getMeasured() && b.getMeasured();
    auto s = reporting::of_interval(a.getSpeedup()), t = reporting::of_interval(b.getSpeedup());
    bool overlap = both && s.overlaps(t);
    auto& speedup = x.show("speedup", if_measured(a, reporting::to_json(s)),
                           if_measured(b, reporting::to_json(t)), overlap);
    speedup["overlap"] = both ? json(overlap) : json(nullptr);
    speedup["faster"] = !both || overlap ? json(nullptr) : json(s.low > t.high ? "a" : "b");
    x.show("candidate_ms", if_measured(a, number(a.getCandidateMs())),
           if_measured(b, number(b.getCandidateMs())), true);
    x.show("baseline_ms", if_measured(a, number(a.getReferenceMs())),
           if_measured(b, number(b.getReferenceMs())), true);
    x.show("samples", a.getSamples(), b.getSamples(), true);
  }
  if (text_of(a.getNote()) != text_of(b.getNote()))
    x.show("note", text_of(a.getNote()), text_of(b.getNote()), true);
  return x.done();
}

json reward_group(const pair_of_turns& of) {
  group x{"reward"};
  auto reward = [](turn t) {
    auto v = t.getVerdict();
    return is_paid(v) ? number(v.getReward()) : json(nullptr);
  };
  auto parts = [](turn t) {
    std::map<std::string, json> result;
    for (auto c : t.getVerdict().getComponents())
      result[text_of(c.getName())] = number(c.getValue() * c.getWeight() + 0.0); // no -0
    return result;
  };
  auto show = [&](const std::string& key, const json& a, const json& b) {
    if (a == b && a == 0.0 && key != "reward") return;
    auto& to = x.show(key, a, b, a == b);
    to["difference"] =
        a.is_number() && b.is_number() ? number(b.get<double>() - a.get<double>()) : json(nullptr);
  };
  show("reward", reward(of.a.record), reward(of.b.record));
  auto a = parts(of.a.record), b = parts(of.b.record);
  for (const auto& [name, value] : a) show(name, value, b.contains(name) ? b[name] : json(nullptr));
  for (const auto& [name, value] : b)
    if (!a.contains(name)) show(name, nullptr, value);
  return x.done();
}

json findings_group(const pair_of_turns& of) {
  group x{"findings"};
  auto findings = [](turn t) {
    std::map<std::string, json> result;
    for (auto f : t.getVerdict().getFindings())
      result[text_of(f.getRule())] = text_of(f.getEvidence());
    return result;
  };
  auto a = findings(of.a.record), b = findings(of.b.record);
  for (const auto& [rule, evidence] : a)
    if (!b.contains(rule)) x.differ(rule, evidence, nullptr);
  for (const auto& [rule, evidence] : b)
    if (!a.contains(rule)) x.differ(rule, nullptr, evidence);
  return x.done();
}

} // namespace

json config_differences(const json& a, const json& b) {
  static const std::set<std::string> names{"$schema", "run.name", "run.dir"};
  std::map<std::string, json> left, right;
  flatten(left, a, {});
  flatten(right, b, {});
  json result = json::array();
  auto add = [&](const std::string& key, const json& x, const json& y) {
    if (x != y && !names.contains(key)) result.push_back({{"key", key}, {"a", x}, {"b", y}});
  };
  for (const auto& [key, value] : left)
    add(key, value, right.contains(key) ? right[key] : json(nullptr));
  for (const auto& [key, value] : right)
    if (!left.contains(key)) add(key, nullptr, value);
  return result;
}

expected<json> compare_turns(const compared_turn& a, const compared_turn& b) {
  pair_of_turns of{a, b};
  json groups = json::array();
  group config{"configuration"};
  config.values(config_differences(*a.config, *b.config));
  groups.push_back(config.done());
  auto prompt = prompt_group(of);
  KM_TRY(prompt);
  groups.push_back(std::move(*prompt));
  groups.push_back(answer_group(of));
  auto code = code_group(of);
  KM_TRY(code);
  groups.push_back(std::move(*code));
  for (auto* make :
       {compiler_group, verdict_group, cases_group, times_group, reward_group, findings_group})
    groups.push_back(make(of));
  return groups;
}

} // namespace kernelmill::study
