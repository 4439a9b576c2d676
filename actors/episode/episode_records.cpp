#include "actors/episode/episode_records.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "actors/caf_error.hpp"
#include "actors/episode/episode_score.hpp"
#include "actors/episode/transition.hpp"
#include "actors/governance/judge.hpp"
#include "messages/base/digest.hpp"
#include "messages/judged.hpp"

namespace kernelmill {

namespace {

constexpr size_t inline_limit = 4096; // texts up to this size stay inside their record

const char* transition(const episode_state& state, wire::Verdict::Reader verdict) {
  std::vector<past_candidate> before;
  for (const auto& x : state.turns) before.push_back({x.candidate_sha256, x.accepted});
  return transition_of(before, state.current->candidate_sha256,
                       verdict.getOutcome() == wire::Outcome::ACCEPTED);
}

} // namespace

void set_episode(wire::EpisodeRef::Builder x, const episode_assignment& where) {
  x.setRun(*where.run);
  x.setTask(where.what->id);
  x.setGroup(where.group);
  x.setMember(where.member);
}

// -- artifact_batch -----------------------------------------------------------------------------

void artifact_batch::put(wire::Content::Builder into, const std::string& text) {
  if (text.size() <= inline_limit) {
    into.setInline(capnp::Text::Reader(text.data(), text.size()));
    return;
  }
  auto sha256 = sha256_hex(text);
  auto ref = into.initArtifact();
  ref.setSha256(sha256);
  ref.setSize(text.size());
  entries_.push_back({std::move(sha256), text});
}

void artifact_batch::put_copy(wire::Content::Builder into, std::string text) {
  put(into, copies_.emplace_back(std::move(text)));
}

void artifact_batch::put(wire::Content::Builder into, const std::string& text,
                         const std::string& sha256, bool durable) {
  auto ref = into.initArtifact();
  ref.setSha256(sha256);
  ref.setSize(text.size());
  if (!durable) entries_.push_back({sha256, text});
}

Message<wire::ArtifactBatch> artifact_batch::message() const {
  if (entries_.empty()) return {};
  return build<wire::ArtifactBatch>([this](wire::ArtifactBatch::Builder x) {
    auto list = x.initArtifacts(static_cast<unsigned>(entries_.size()));
    for (unsigned i = 0; i < list.size(); ++i) {
      list[i].setSha256(entries_[i].sha256);
      auto& bytes = entries_[i].bytes;
      list[i].setBytes(kj::arrayPtr(reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()));
    }
  });
}

// -- small things --------------------------------------------------------------------------------

double wall_seconds(std::chrono::steady_clock::time_point x) {
  static const double offset = [] {
    using seconds = std::chrono::duration<double>;
    return seconds(std::chrono::system_clock::now().time_since_epoch()).count() -
           seconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  }();
  return std::chrono::duration<double>(x.time_since_epoch()).count() + offset;
}

error cancellation() {
  return {fault_class::none, "cancelled", "the run was cancelled; committed turns stay", {}};
}

error commit_fault(const caf::error& why) {
  auto result = from_caf(why);
  result.message = "failed to commit a turn: " + result.message;
  return result;
}

// -- requests ------------------------------------------------------------------------------------

namespace {

const char* to_string(chat_role x) noexcept {
  switch (x) {
    case chat_role::user: return "user";
    case chat_role::assistant: return "assistant";
    case chat_role::tool: return "tool";
  }
  return "user";
}

void set_part(wire::ChatMessage::Builder x, const chat_part& part) {
  x.setRole(to_string(part.role));
  x.setContent(*part.text);
  if (!part.call_id.empty()) x.setCallId(part.call_id);
  if (part.calls.empty()) return;
  auto calls = x.initCalls(static_cast<unsigned>(part.calls.size()));
  for (unsigned i = 0; i < calls.size(); ++i) {
    calls[i].setId(part.calls[i].id);
    calls[i].setName(part.calls[i].name);
    calls[i].setArguments(part.calls[i].arguments);
  }
}

} // namespace

Message<wire::CompletionRequest> completion_request(const episode_state& state,
                                                    std::chrono::milliseconds deadline) {
  auto defaults = state.settings->sampling.open();
  return build<wire::CompletionRequest>([&](wire::CompletionRequest::Builder x) {
    x.setSession(*state.where.run + "/" + short_name(state.id()));
    x.setTurn(state.turn);
    x.setDeadlineMs(static_cast<uint32_t>(deadline.count()));
    x.setSampling(defaults->getSampling());
    x.setExactTokens(defaults->getExactTokens());
    if (auto seed = defaults->getSampling().getSeed(); seed >= 0)
      x.getSampling().setSeed(request_seed(state.settings->run_seed, seed, state.id(), state.turn));
    x.setThreadIds(kj::arrayPtr(state.thread.ids.data(), state.thread.ids.size()));
    x.setThreadSampled(state.thread.sampled);
    auto count = static_cast<unsigned>(2 + state.conversation.size());
    auto messages = x.initMessages(count);
    messages[0].setRole("system");
    messages[0].setContent(state.first_prompt->system);
    messages[1].setRole("user");
    messages[1].setContent(state.first_prompt->user);
    for (unsigned i = 2; i < count; ++i) set_part(messages[i], state.conversation[i - 2]);
    if (state.mode) state.mode->add_to(x);
  });
}

std::string limit_reached(const episode_state& state, wire::CompletionResult::Reader answer) {
  auto asked = state.settings->sampling.open()->getSampling().getMaxTokens();
  auto sampled = std::max<uint32_t>(answer.getCompletionTokens(), answer.getTokenIds().size());
  if (sampled == 0 || sampled >= asked) return "max_tokens = " + std::to_string(asked);
  return "the end of the model's context after " + std::to_string(sampled) + " tokens";
}

// Modules in Python and programs take their time: the headers of a framework, whole processes.
bool takes_long(const episode_state& state) {
  auto contract = state.where.what->contract;
  return contract == contract_kind::torch || contract == contract_kind::program;
}

std::chrono::milliseconds build_deadline(const episode_state& state) {
  return takes_long(state) ? state.settings->torch_build_deadline : state.settings->build_deadline;
}

std::chrono::milliseconds evaluate_deadline(const episode_state& state) {
  return takes_long(state) ? state.settings->torch_evaluate_deadline
                           : state.settings->evaluate_deadline;
}

candidate_view candidate_of(const episode_state& state) {
  return {*state.where.what, state.current->parsed, state.current->candidate_sha256};
}

Message<wire::EvaluateRequest> evaluation_request(const episode_state& state) {
  sha256_digest seed;
  const auto& plan = state.current->plan;
  const auto& settings = *state.settings;
  evaluation_terms terms{{}, {}, evaluate_deadline(state), plan.sanitize, settings.sanitize_limit};
  if (settings.evaluation_seed) {
    auto number = plan.number > 0 ? "." + std::to_string(plan.number) : std::string{};
    seed = sha256(*settings.evaluation_seed + turn_id(state.id(), state.turn) + number);
    terms.seed = seed;
  }
  auto timing = (plan.coarse ? settings.coarse_timing : settings.timing).open();
  terms.timing = *timing;
  terms.timed = plan.timed;
  terms.visible_only = plan.visible_only;
  terms.reports = plan.reports;
  return evaluation_request(candidate_of(state), *state.current->build.open(), terms);
}

Message<wire::ProfileResult> no_profile(std::string_view why) {
  return build<wire::ProfileResult>(
      [&](wire::ProfileResult::Builder x) { x.initMissing(1).set(0, std::string{why}); });
}

Message<wire::ProfileRequest> profile_request(const episode_state& state) {
  auto evaluation = state.current->evaluation_request.open();
  auto& what = *state.where.what;
  auto value = [&](const expression& x) {
    auto result = x.evaluate(what.timed.scalars);
    return result ? static_cast<double>(*result) : 0.0;
  };
  return build<wire::ProfileRequest>([&](wire::ProfileRequest::Builder x) {
    x.setEvaluation(*evaluation);
    x.getEvaluation().setProfile(true);
    x.getEvaluation().setSanitize("");
    x.getEvaluation().setSource("");
    x.setBytes(value(what.bytes));
    x.setFlops(value(what.flops));
  });
}

Message<wire::TurnFacts> turn_facts(const episode_state& state) {
  const auto& x = *state.current;
  const turn_course course{x.build, x.evaluation, x.profile,
                           x.fault, state.turn,   state.settings->max_turns};
  const auto& shown = state.shown ? *state.shown : state.first_prompt->shown(*state.where.what);
  return build<wire::TurnFacts>([&](wire::TurnFacts::Builder out) {
    set_turn_facts(out, candidate_of(state), course, shown);
    // They stand in the record beside the facts.
    if (out.hasEvaluation() && out.getEvaluation().hasMemory())
      out.getEvaluation().getMemory().disownReports();
    if (out.hasProfile()) out.getProfile().disownReports();
  });
}

bool keeps_reports(const std::string& turn_id, double share) {
  constexpr size_t digits = 8;
  auto number = std::stoull(turn_id.substr(0, digits), nullptr, 16);
  return static_cast<double>(number) < share * 4294967296.0;
}

std::vector<int32_t> values_of(capnp::List<int32_t>::Reader xs) {
  std::vector<int32_t> result;
  result.reserve(xs.size());
  for (auto x : xs) result.push_back(x);
  return result;
}

// -- records --------------------------------------------------------------------------------------

namespace {

void set_completion(wire::Completion::Builder x, const episode_state& state,
                    artifact_batch& artifacts) {
  auto answer = state.current->completion.open();
  artifacts.put(x.initText(), *state.current->text);
  x.setFinishReason(answer->getFinishReason());
  x.setModel(answer->getModel());
  x.setRequestId(answer->getRequestId());
  x.setAttempts(answer->getAttempts());
  x.setPromptTokens(answer->getPromptTokens());
  x.setCompletionTokens(answer->getCompletionTokens());
  if (answer->hasPromptTokenIds()) x.setPromptTokenIds(answer->getPromptTokenIds());
  if (answer->hasTokenIds()) x.setTokenIds(answer->getTokenIds());
  if (answer->hasLogprobs()) x.setLogprobs(answer->getLogprobs());
  if (answer->hasWeightVersions()) x.setWeightVersions(answer->getWeightVersions());
  x.setRoute(answer->getRoute());
  auto found =
      audit_tokens(state.turn == 0, state.thread.ids, values_of(answer->getPromptTokenIds()),
                   values_of(answer->getTokenIds()));
  auto audit = x.initAudit();
  audit.setState(found.state);
  audit.setPosition(found.position);
  audit.setKept(found.kept);
}

// The kernel is a part of the completion, which is stored already.
void put_candidate(wire::Content::Builder into, const std::string& completion,
                   const parsed_completion& parsed, artifact_batch& artifacts) {
  const auto& kernel = parsed.kernel;
  bool held = !kernel.empty() && parsed.kernel_begin <= completion.size() &&
              completion.compare(parsed.kernel_begin, kernel.size(), kernel) == 0;
  if (!held) return artifacts.put(into, kernel);
  auto span = into.initOfCompletion();
  span.setBegin(static_cast<uint32_t>(parsed.kernel_begin));
  span.setSize(static_cast<uint32_t>(kernel.size()));
}

void set_first_prompt(wire::TurnRecord::Builder x, const prompt_text& text,
                      artifact_batch& artifacts) {
  auto parts = x.initPrompt(2);
  parts[0].setRole("system");
  artifacts.put(parts[0].initContent(), text.system, text.system_sha256, text.durable);
  parts[1].setRole("user");
  artifacts.put(parts[1].initContent(), text.user, text.user_sha256, text.durable);
}

void set_seconds(wire::StageSeconds::Builder x, const episode_state::turn_scratch& current) {
  x.setRetrieve(current.seconds.retrieve);
  x.setPolicy(current.seconds.policy);
  x.setBuild(current.seconds.build);
  x.setEvaluate(current.seconds.evaluate);
  x.setProfile(current.seconds.profile);
  x.setJudge(current.seconds.judge);
}

} // namespace

void set_reports(wire::TurnRecord::Builder x, const episode_state::turn_scratch& current,
                 wire::Verdict::Reader verdict, artifact_batch& artifacts) {
  if (!current.plan.reports || verdict.getOutcome() != wire::Outcome::ACCEPTED) return;
  auto evaluation = current.evaluation.open();
  auto profile = current.profile.open();
  auto looked = evaluation->getMemory().getReports();
  auto counted = profile->getReports();
  auto list = x.initReports(looked.size() + counted.size());
  auto put = [&](unsigned at, wire::Report::Reader from, const char* tool) {
    std::string name = from.getName();
    list[at].setTool(name.starts_with("ncu.") ? "profiler" : tool);
    list[at].setName(name);
    artifacts.put_copy(list[at].initText(), from.getText());
  };
  for (unsigned i = 0; i < looked.size(); ++i) put(i, looked[i], "sanitizer");
  for (unsigned i = 0; i < counted.size(); ++i) put(looked.size() + i, counted[i], "profiler");
}

Message<wire::Record> turn_record(const episode_state& state, wire::Verdict::Reader verdict,
                                  const std::string& feedback, const std::string& stop_reason,
                                  artifact_batch& artifacts) {
  auto& current = *state.current;
  auto facts = current.facts.open();
  auto fill = [&](wire::Record::Builder record) {
    auto x = record.initTurn();
    auto id = state.id();
    x.setTurnId(turn_id(id, state.turn));
    set_episode(x.initEpisode(), state.where);
    x.setTurn(state.turn);
    if (state.turn > 0) x.setParentTurnId(turn_id(id, state.turn - 1));
    x.setTransition(transition(state, verdict));
    if (state.turn == 0) set_first_prompt(x, *state.first_prompt, artifacts);
    set_completion(x.initCompletion(), state, artifacts);
    x.setCandidateSha256(current.candidate_sha256);
    put_candidate(x.initCandidate(), *current.text, current.parsed, artifacts);
    x.setFacts(*facts);
    x.setVerdict(verdict);
    artifacts.put(x.initFeedback(), feedback);
    x.setTerminal(!stop_reason.empty());
    x.setStopReason(stop_reason);
    set_seconds(x.initSeconds(), current);
    x.setStartedAt(current.started_at);
    x.setCommittedAt(wall_seconds(state.now()));
    if (state.turn == 0 && !state.example_ids.empty()) {
      auto examples = x.initExamples(static_cast<unsigned>(state.example_ids.size()));
      for (unsigned i = 0; i < examples.size(); ++i) examples.set(i, state.example_ids[i]);
    }
    if (state.turn == 0 && !state.parents.empty()) {
      auto parents = x.initParents(static_cast<unsigned>(state.parents.size()));
      for (unsigned i = 0; i < parents.size(); ++i) parents.set(i, state.parents[i]);
    }
    set_reports(x, current, verdict, artifacts);
    if (state.mode) state.mode->add_to(x, artifacts);
  };
  return build<wire::Record>(fill);
}

// Of an episode that its speed ended: who holds a fast kernel back gains nothing.
static unsigned unspent_turns(const episode_state& state, const std::string& reason) {
  const auto& settings = *state.settings;
  bool by_speed = reason == "completed" && !settings.stop_on_correct && settings.stop_speedup > 0;
  return by_speed && settings.max_turns > state.turn ? settings.max_turns - state.turn : 0;
}

Message<wire::Record> episode_record(const episode_state& state, const std::string& reason) {
  std::vector<scored_turn> turns;
  for (const auto& x : state.turns)
    turns.push_back({x.reward, x.speedup_low, x.accepted, x.infrastructure, x.paid, x.evidence,
                     x.candidate_sha256});
  return build<wire::Record>([&](wire::Record::Builder record) {
    auto x = record.initEpisode();
    set_episode(x.initEpisode(), state.where);
    x.setStopReason(reason);
    score_episode(x, turns, state.settings->gamma, is_left_out(reason),
                  unspent_turns(state, reason));
    x.setSeconds(state.seconds_since(state.started));
    x.setCommittedAt(wall_seconds(state.now()));
    if (state.mode) state.mode->add_to(x, reason);
  });
}

} // namespace kernelmill
