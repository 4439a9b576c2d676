#include "launch/analysis/study/turn_fields.hpp"

#include <algorithm>
#include <functional>
#include <string_view>

#include <fmt/format.h>

#include "launch/analysis/report/speedups.hpp"
#include "launch/analysis/study/wire_values.hpp"
#include "messages/evidence.hpp"
#include "messages/fault.hpp"
#include "messages/identity.hpp"
#include "messages/judged.hpp"
#include "storage/export/split.hpp"

namespace kernelmill::study {

namespace {

using turn = wire::TurnRecord::Reader;
using value = expected<json>;
using reader = value (*)(turn, const turn_source&);

wire::Timing::Reader timing(turn x) {
  return x.getFacts().getEvaluation().getTiming();
}

using reporting::is_timed;
using reporting::passes;

json timed_number(turn x, double of) {
  return is_timed(x) ? number(of) : json(nullptr);
}

/// A part of the reward as it was given: value times weight.
value part(turn x, std::string_view name) {
  for (auto c : x.getVerdict().getComponents())
    if (name == c.getName().cStr()) return number(c.getValue() * c.getWeight());
  return json(nullptr);
}

value long_text(expected<std::string> text) {
  KM_TRY(text);
  return json(std::move(*text));
}

json size_of(wire::Content::Reader x) {
  if (x.isOfCompletion()) return x.getOfCompletion().getSize();
  return x.isArtifact() ? x.getArtifact().getSize() : uint64_t{x.getInline().size()};
}

std::string findings(turn x) {
  std::string result;
  for (auto f : x.getVerdict().getFindings())
    result += (result.empty() ? "" : " ") + text_of(f.getRule());
  return result;
}

uint64_t diagnostics(turn x, std::string_view severity) {
  uint64_t result = 0;
  for (auto d : x.getFacts().getBuild().getDiagnostics())
    result += severity == d.getSeverity().cStr();
  return result;
}

uint64_t cases_passed(turn x) {
  uint64_t result = 0;
  for (auto c : x.getFacts().getEvaluation().getCases()) result += c.getPass();
  return result;
}

double all_seconds(turn x) {
  auto s = x.getSeconds();
  return s.getRetrieve() + s.getPolicy() + s.getBuild() + s.getEvaluate() + s.getProfile() +
         s.getJudge();
}

std::string weights(turn x) {
  auto spans = x.getCompletion().getWeightVersions();
  return spans.size() > 0 ? text_of(spans[spans.size() - 1].getVersion()) : std::string{};
}

std::string split(turn x, const turn_source& of) {
  auto task = text_of(x.getEpisode().getTask());
  auto own = of.splits.find(task);
  return exports::split_of(task, own == of.splits.end() ? "" : own->second);
}

struct entry {
  turn_field field;
  reader read; ///< null: an episode or a group knows it
  bool is_long = false;
};

#define KM_FIELD(name, kind, doc, ...)                                                             \
  entry {                                                                                          \
    {name, kind, doc, known_with::turn},                                                           \
        []([[maybe_unused]] turn x, [[maybe_unused]] const turn_source& of) -> value {             \
          return __VA_ARGS__;                                                                      \
        }                                                                                          \
  }
#define KM_TEXT(name, doc, ...)                                                                    \
  entry {                                                                                          \
    {name, "text", doc, known_with::turn},                                                         \
        [](turn x, const turn_source& of) -> value { return long_text(__VA_ARGS__); }, true        \
  }

const std::vector<entry>& entries() {
  static const std::vector<entry> all{
      KM_FIELD("name", "text", "RUN/g3.e1.t2",
               json(of.run + "/" +
                    short_name({{}, {}, x.getEpisode().getGroup(), x.getEpisode().getMember()},
                               x.getTurn()))),
      KM_FIELD("run", "text", "name of the run", json(of.run)),
      KM_FIELD("task", "text", "id of the task", json(text_of(x.getEpisode().getTask()))),
      KM_FIELD("split", "text", "train or dev, by the task", json(split(x, of))),
      KM_FIELD("verb", "text", "optimize, debug, diagnose, reformulate, synthesize or port",
               json(text_of(x.getFacts().getVerb()))),
      KM_FIELD("operator_family", "text", "of the task",
               json(text_of(x.getFacts().getOperatorFamily()))),
      KM_FIELD("contract", "text", "native, device or torch",
               json(text_of(x.getFacts().getContract()))),
      KM_FIELD("backend", "text", "cpu, cuda, ...", json(text_of(x.getFacts().getBackend()))),
      KM_FIELD("group", "number", "of the run", json(x.getEpisode().getGroup())),
      KM_FIELD("member", "number", "of the group", json(x.getEpisode().getMember())),
      KM_FIELD("turn", "number", "of the episode, from 0", json(x.getTurn())),
      KM_FIELD("turn_id", "text", "64 hex digits", json(text_of(x.getTurnId()))),
      KM_FIELD("parent_turn_id", "text", "of the turn before", json(text_of(x.getParentTurnId()))),
      KM_FIELD("shared", "flag", "a fork's turn that is its origin's too",
               json(x.getTurn() < of.shared_turns)),
      // -- the answer
      KM_FIELD("model", "text", "that answered", json(text_of(x.getCompletion().getModel()))),
      KM_FIELD("weights", "text", "version of the weights at the answer's end", json(weights(x))),
      KM_FIELD("finish_reason", "text", "stop, length, ...",
               json(text_of(x.getCompletion().getFinishReason()))),
      KM_FIELD("prompt_tokens", "number", "as the server counted",
               json(x.getCompletion().getPromptTokens())),
      KM_FIELD("completion_tokens", "number", "as the server counted",
               json(x.getCompletion().getCompletionTokens())),
      KM_FIELD("attempts", "number", "requests that the answer took",
               json(x.getCompletion().getAttempts())),
      KM_FIELD("code_sha256", "text", "of the candidate", json(text_of(x.getCandidateSha256()))),
      KM_FIELD("code_bytes", "number", "of the candidate", size_of(x.getCandidate())),
      KM_FIELD("transition", "text", "edit type: how the code follows from the code before",
               json(text_of(x.getTransition()))),
      KM_FIELD("unchanged", "text", "what the code is a copy of; empty: nothing",
               json(text_of(x.getFacts().getUnchanged()))),
      // -- the verdict
      KM_FIELD("outcome", "text", "accepted, rejected, infrastructure or open",
               json(word(x.getVerdict().getOutcome()))),
      KM_FIELD("category", "text", "success, wrong_result, compile_error, ...",
               json(text_of(x.getVerdict().getCategory()))),
      KM_FIELD("message", "text", "what was wrong",
               json(text_of(x.getVerdict().getFault().getMessage()))),
      KM_FIELD("accepted", "flag", "the outcome",
               json(x.getVerdict().getOutcome() == wire::Outcome::ACCEPTED)),
      KM_FIELD("rejected", "flag", "the outcome",
               json(x.getVerdict().getOutcome() == wire::Outcome::REJECTED)),
      KM_FIELD("lost", "flag", "to the infrastructure",
               json(x.getVerdict().getOutcome() == wire::Outcome::INFRASTRUCTURE)),
      KM_FIELD("open", "flag", "it asked for no verdict",
               json(x.getVerdict().getOutcome() == wire::Outcome::OPEN)),
      KM_FIELD("formatted", "flag", "the answer had the format",
               json(passes(x.getVerdict(), "format"))),
      KM_FIELD("built", "flag", "the code compiled", json(passes(x.getVerdict(), "build"))),
      KM_FIELD("correct", "flag", "all cases were right",
               json(passes(x.getVerdict(), "correctness"))),
      KM_FIELD("timed", "flag", "it is correct, there is a speedup, and it is no copy",
               json(is_timed(x))),
      KM_FIELD("paid", "flag", "the turn is rewarded", json(is_paid(x.getVerdict()))),
      KM_FIELD("terminal", "flag", "the last turn of its episode", json(x.getTerminal())),
      KM_FIELD("stop_reason", "text", "of a terminal turn", json(text_of(x.getStopReason()))),
      KM_FIELD("findings", "text", "rules of the referee's findings", json(findings(x))),
      KM_FIELD("reward", "number", "none when it is not rewarded",
               is_paid(x.getVerdict()) ? number(x.getVerdict().getReward()) : json(nullptr)),
      KM_FIELD("reward.format", "number", "part of the reward, weighted", part(x, "format")),
      KM_FIELD("reward.build", "number", "part of the reward, weighted", part(x, "build")),
      KM_FIELD("reward.partial", "number", "part of the reward, weighted", part(x, "partial")),
      KM_FIELD("reward.correct", "number", "part of the reward, weighted", part(x, "correct")),
      KM_FIELD("reward.speed", "number", "part of the reward, weighted", part(x, "speed")),
      KM_FIELD("reward.diagnosis", "number", "part of the reward, weighted", part(x, "diagnosis")),
      KM_FIELD("reward.integrity", "number", "part of the reward, weighted", part(x, "integrity")),
      KM_FIELD("evidence", "number", "how much of it is there, 0 to 1",
               number(evidence_score(evidence_parts_of(x)))),
      KM_FIELD("quality", "text", "positive, near_miss, negative or unusable",
               json(to_string(quality_of(x)))),
      // -- what was measured
      KM_FIELD("speedup", "number", "estimate, over the baseline",
               timed_number(x, timing(x).getSpeedup().getEstimate())),
      KM_FIELD("speedup.low", "number", "lower end of its 95 % interval",
               timed_number(x, timing(x).getSpeedup().getLow())),
      KM_FIELD("speedup.high", "number", "upper end of its 95 % interval",
               timed_number(x, timing(x).getSpeedup().getHigh())),
      KM_FIELD("candidate_ms", "number", "a call", timed_number(x, timing(x).getCandidateMs())),
      KM_FIELD("baseline_ms", "number", "a call", timed_number(x, timing(x).getReferenceMs())),
      KM_FIELD("samples", "number", "timed calls", json(timing(x).getSamples())),
      KM_FIELD("cases", "number", "that ran", json(x.getFacts().getEvaluation().getCases().size())),
      KM_FIELD("cases.passed", "number", "that were right", json(cases_passed(x))),
      KM_FIELD("errors", "number", "of the compiler", json(diagnostics(x, "error"))),
      KM_FIELD("warnings", "number", "of the compiler", json(diagnostics(x, "warning"))),
      KM_FIELD("toolchain", "text", "that built it",
               json(text_of(x.getFacts().getBuild().getToolchain()))),
      KM_FIELD("device", "text", "that judged it",
               json(text_of(x.getFacts().getEvaluation().getDevice()))),
      // -- time
      KM_FIELD("seconds", "number", "of all stages", number(all_seconds(x))),
      KM_FIELD("seconds.policy", "number", "of a stage", number(x.getSeconds().getPolicy())),
      KM_FIELD("seconds.build", "number", "of a stage", number(x.getSeconds().getBuild())),
      KM_FIELD("seconds.evaluate", "number", "of a stage", number(x.getSeconds().getEvaluate())),
      KM_FIELD("committed_at", "number", "seconds since 1970", number(x.getCommittedAt())),
      // -- long texts
      KM_TEXT("code", "the candidate (long)", of.artifacts->candidate(x)),
      KM_TEXT("answer", "the completion (long)", of.artifacts->text(x.getCompletion().getText())),
      KM_TEXT("feedback", "what the next prompt says of it (long)",
              of.artifacts->text(x.getFeedback())),
      entry{{"log", "text", "the compiler's log (long)", known_with::turn},
            [](turn x, const turn_source&) -> value {
              return json(text_of(x.getFacts().getBuild().getLog()));
            },
            true},
      // -- of its episode and its group, when they have ended
      {{"ended", "flag", "its episode has ended", known_with::episode}, nullptr},
      {{"best", "flag", "the best turn of its episode", known_with::episode}, nullptr},
      {{"return", "number", "discounted, from this turn on", known_with::episode}, nullptr},
      {{"governance", "text", "usable_positive_sft, ... of its episode", known_with::episode},
       nullptr},
      {{"episode.outcome", "text", "of its episode", known_with::episode}, nullptr},
      {{"episode.turns", "number", "of its episode", known_with::episode}, nullptr},
      {{"advantage", "number", "of its episode among its siblings", known_with::group}, nullptr},
  };
  return all;
}

#undef KM_FIELD
#undef KM_TEXT

bool has(const std::vector<std::string>& all, std::string_view x) {
  return std::find(all.begin(), all.end(), x) != all.end();
}

} // namespace

const std::vector<turn_field>& turn_fields() {
  static const auto all = [] {
    std::vector<turn_field> result;
    for (const auto& x : entries()) result.push_back(x.field);
    return result;
  }();
  return all;
}

const watch::condition_keys& turn_keys() {
  static const auto all = [] {
    watch::condition_keys result;
    for (const auto& x : entries()) {
      result.names.emplace_back(x.field.name);
      if (x.field.kind == std::string_view{"flag"}) result.flags.emplace_back(x.field.name);
    }
    result.list = "`kernelmill query --help` lists the fields";
    return result;
  }();
  return all;
}

const std::vector<std::string>& short_fields() {
  static const auto all = [] {
    std::vector<std::string> result;
    for (const auto& x : entries())
      if (!x.is_long) result.emplace_back(x.field.name);
    return result;
  }();
  return all;
}

std::string fields_help() {
  std::string result;
  for (const auto& x : turn_fields())
    result += fmt::format("  {:<18} {:<7} {}\n", x.name, x.kind, x.doc);
  return result;
}

expected<void> add_fields(json& to, wire::TurnRecord::Reader record, const turn_source& of,
                          const std::vector<std::string>& wanted) {
  for (const auto& x : entries()) {
    if (!has(wanted, x.field.name) || to.contains(x.field.name)) continue;
    if (!x.read) {
      to[x.field.name] = nullptr; // its place; the caller fills it in
      continue;
    }
    auto read = x.read(record, of);
    KM_TRY(read);
    to[x.field.name] = std::move(*read);
  }
  return {};
}

void add_fields(json& to, wire::EpisodeRecord::Reader end, uint32_t number_of_turn,
                const std::vector<std::string>& wanted) {
  auto set = [&](const char* name, json x) {
    if (has(wanted, name)) to[name] = std::move(x);
  };
  set("ended", true);
  set("best", end.getBestTurn() == number_of_turn);
  auto returns = end.getReturns();
  set("return", number_of_turn < returns.size() ? number(returns[number_of_turn]) : json(nullptr));
  set("governance", word(end.getReadiness().getKind()));
  set("episode.outcome", word(end.getOutcome()));
  set("episode.turns", end.getTurns());
}

void add_fields(json& to, wire::GroupRecord::Reader end, uint32_t member,
                const std::vector<std::string>& wanted) {
  auto advantages = end.getAdvantages();
  if (has(wanted, "advantage"))
    to["advantage"] = member < advantages.size() ? number(advantages[member]) : json(nullptr);
}

} // namespace kernelmill::study
