#include "actors/episode/episode.hpp"

#include <string>

#include <caf/all.hpp>

#include "actors/episode/asking.hpp"
#include "actors/episode/episode_records.hpp"
#include "actors/episode/prompt.hpp"
#include "actors/episode/unprofiled.hpp"
#include "messages/base/digest.hpp"
#include "messages/fault.hpp"
#include "messages/judged.hpp"

namespace kernelmill {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

// -- helpers ------------------------------------------------------------------------------------

episode_state::clock::time_point episode_state::now() const {
  return clock::time_point{self->clock().now().time_since_epoch()};
}

double episode_state::seconds_since(clock::time_point start) const {
  return std::chrono::duration<double>(now() - start).count();
}

void episode_state::enter(episode_phase next) {
  phase = next;
  phase_since = now();
}

episode_id episode_state::id() const {
  return {*where.run, where.what->id, where.group, where.member};
}

envelope episode_state::make_envelope() const {
  envelope result;
  result.run = run_hash;
  result.episode = where.ordinal;
  result.trace = where.ordinal << 16 | turn;
  result.priority = settings->priority;
  result.layers = settings->required_layers;
  return result;
}

bool episode_state::over_deadline() const {
  return now() - started >= settings->episode_deadline;
}

milliseconds episode_state::within_deadline(milliseconds wanted) const {
  auto left = duration_cast<milliseconds>(settings->episode_deadline - (now() - started));
  return std::max(milliseconds{1}, std::min(wanted, left));
}

episode_state::loss_handler episode_state::turn_lost_to(const char* whom) {
  return [this, whom](const caf::error& why) {
    fail_turn(
        {fault_class::infrastructure,
         std::string{whom} + "_lost",
         std::string{"failed to get an answer of the "} + whom + ": " + self->system().render(why),
         {}});
  };
}

episode_state::loss_handler episode_state::commit_lost() {
  return [this](const caf::error& why) {
    leave(wire::Outcome::INFRASTRUCTURE, commit_fault(why), "commit_failed");
  };
}

// A fault of ours or of the configuration ends the turn. A turn with a completion is recorded as it
// is. A turn without one has nothing to record, and resume takes it again.
void episode_state::fail_turn(error why) {
  if (!current || phase == episode_phase::committing || phase == episode_phase::closing) {
    leave(wire::Outcome::INFRASTRUCTURE, std::move(why));
    return;
  }
  current->fault = std::move(why);
  if (current->fault.cls == fault_class::configuration || !current->text ||
      phase == episode_phase::judging)
    leave(wire::Outcome::INFRASTRUCTURE, std::move(current->fault));
  else
    ask_verdict();
}

namespace {

error first_prompt_too_long(const std::string& task, const std::string& cause) {
  return {fault_class::configuration, "context_overflow",
          "failed to ask for a kernel: the first prompt of " + task +
              " and its answer do not fit into the model's context: " + cause,
          "lower policy.sampling.max_tokens, serve the model with a longer context, or leave the "
          "task out of tasks.ids"};
}

} // namespace

// -- the steps ------------------------------------------------------------------------------------

void episode_state::ask_policy() {
  if (cancelled) return leave(wire::Outcome::INFRASTRUCTURE, cancellation());
  if (settings->drop) return close(stopped_by_infrastructure);
  if (dropped) return close(stopped_by_quorum);
  if (over_deadline()) return close("rollout_timeout");
  enter(episode_phase::thinking);
  current = std::make_unique<turn_scratch>();
  current->started = current->stage_started = phase_since;
  current->started_at = wall_seconds(phase_since);
  current->seconds.retrieve = turn == 0 ? retrieve_seconds : 0;
  auto deadline = within_deadline(settings->policy_deadline);
  ask<Message<wire::CompletionResult>>(
      services->policy, deadline + std::chrono::seconds{5}, turn_lost_to("policy_client"),
      [this](const Message<wire::CompletionResult>& result) { take_completion(result); },
      atom::complete_v, make_envelope(), completion_request(*this, deadline));
}

void episode_state::take_completion(const Message<wire::CompletionResult>& result) {
  current->seconds.policy = seconds_since(phase_since);
  auto answer = result.open();
  auto fault = answer->getFault();
  if (fault.getClass() == wire::FaultClass::INFRASTRUCTURE ||
      fault.getClass() == wire::FaultClass::CONFIGURATION) {
    fail_turn(fault_of(fault));
    return;
  }
  if (fault.getCategory() == "context_overflow") {
    // Half of the examples are better than no episode.
    if (turn == 0 && !example_ids.empty())
      return retrieve(static_cast<uint32_t>(example_ids.size() / 2));
    // The first prompt holds no text of the model, so its length is the task's.
    if (turn == 0)
      return leave(wire::Outcome::INFRASTRUCTURE,
                   first_prompt_too_long(where.what->id, fault.getMessage().cStr()));
    return end_unsampled("context_overflow");
  }
  // What cut the time short is the episode's own limit, not the answer's.
  if (fault.getCategory() == "answer_overdue" && over_deadline())
    return end_unsampled("rollout_timeout");
  current->completion = result;
  auto text = answer->getText();
  current->text = std::make_shared<const std::string>(text.begin(), text.size());
  if (fault.getClass() == wire::FaultClass::POLICY)
    current->fault = {fault_class::policy, fault.getCategory(), fault.getMessage(), {}};
  mode->take_answer();
}

// A turn that was never sampled is none: the episode ends with those that it has.
void episode_state::end_unsampled(const char* reason) {
  current.reset();
  close(reason);
}

trial_plan episode_state::full_trial() const {
  trial_plan result;
  result.profile = settings->profile_accepted;
  result.sanitize = settings->sanitize;
  result.reports = keeps_reports(turn_id(id(), turn), settings->report_share);
  return result;
}

void episode_state::begin_trial(trial_plan plan) {
  current->plan = std::move(plan);
  ask_build();
}

void episode_state::ask_build() {
  enter(episode_phase::building);
  ask<Message<wire::BuildResult>>(
      services->compiler, build_deadline(*this) + settings->lease_slack, turn_lost_to("compiler"),
      [this](const Message<wire::BuildResult>& result) {
        current->seconds.build += seconds_since(phase_since);
        current->build = result;
        if (!result.open()->getCompiled())
          ask_verdict();
        else if (current->plan.evaluate)
          ask_evaluation();
        else
          mode->end_trial(nullptr);
      },
      atom::build_v, make_envelope(), build_request(candidate_of(*this), build_deadline(*this)));
}

void episode_state::ask_evaluation() {
  enter(episode_phase::evaluating);
  current->evaluation_request = evaluation_request(*this);
  ask<Message<wire::EvaluateResult>>(
      services->runner, evaluate_deadline(*this) + settings->sanitize_limit + settings->lease_slack,
      turn_lost_to("gpu_runner"),
      [this](const Message<wire::EvaluateResult>& result) {
        current->seconds.evaluate += seconds_since(phase_since);
        current->evaluation = result;
        for (auto span : result.open()->getSpans())
          slot_seconds[span.getName().cStr()] += span.getValue();
        if (current->plan.profile && is_acceptable(*result.open()))
          ask_profile();
        else
          ask_verdict();
      },
      atom::evaluate_v, make_envelope(), current->evaluation_request);
}

void episode_state::ask_profile() {
  auto contract = where.what->contract;
  bool of_others = contract == contract_kind::torch || contract == contract_kind::program;
  if (auto why = unprofiled_reason(settings->backend, of_others); !why.empty()) {
    current->profile = no_profile(why);
    return ask_verdict();
  }
  enter(episode_phase::profiling);
  auto proceed = [this](const Message<wire::ProfileResult>& result) {
    current->seconds.profile += seconds_since(phase_since);
    current->profile = result;
    ask_verdict();
  };
  // A profile is advice: a turn without one is judged all the same.
  ask<Message<wire::ProfileResult>>(
      services->profiler, settings->evaluate_deadline + settings->lease_slack,
      [proceed](const caf::error&) { proceed(Message<wire::ProfileResult>{}); }, proceed,
      atom::profile_v, make_envelope(), profile_request(*this));
}

void episode_state::ask_verdict() {
  enter(episode_phase::judging);
  current->facts = turn_facts(*this);
  const auto& parsed = current->parsed;
  auto judged = reads_answer(settings->rewards)
                    ? with_answer(*current->facts.open(), parsed.thought, parsed.kernel)
                    : current->facts;
  ask<Message<wire::Verdict>>(
      services->governance, settings->commit_deadline, turn_lost_to("governance"),
      [this](const Message<wire::Verdict>& verdict) {
        current->seconds.judge += seconds_since(phase_since);
        mode->end_trial(&verdict);
      },
      atom::judge_v, make_envelope(), judged);
}

void episode_state::commit_turn(const Message<wire::Verdict>& verdict, std::string feedback,
                                std::string stop_reason) {
  enter(episode_phase::committing);
  auto view = verdict.open();
  tell_verdict(*view);
  auto told = std::make_shared<const std::string>(std::move(feedback));
  artifact_batch artifacts;
  auto record = turn_record(*this, *view, *told, stop_reason, artifacts);
  ask<bool>(
      services->lineage, settings->commit_deadline, commit_lost(),
      [this, record, told, stop_reason = std::move(stop_reason)](bool) {
        total.commit += seconds_since(phase_since);
        first_prompt->durable = true;
        {
          auto committed = record.open();
          turns.push_back(digest_of(committed->getTurn()));
          thread = thread_of(committed->getTurn().getCompletion());
        }
        mode->committed(told);
        after_commit();
        if (stop_reason.empty())
          ask_policy();
        else
          close(stop_reason);
      },
      atom::commit_v, make_envelope(), record, artifacts.message());
}

void episode_state::after_commit() {
  total.policy += current->seconds.policy;
  total.build += current->seconds.build;
  total.evaluate += current->seconds.evaluate;
  total.profile += current->seconds.profile;
  total.judge += current->seconds.judge;
  current.reset();
  ++turn;
  self->send(run, atom::commit_v, turn, true);
}

void episode_state::close(std::string reason) {
  enter(episode_phase::closing);
  auto record = episode_record(*this, reason);
  ask<bool>(
      services->lineage, settings->commit_deadline, commit_lost(),
      [this, record](bool) {
        auto view = record.open();
        self->send(run, atom::finished_v, outcome_message(*this, view->getEpisode()));
        enter(episode_phase::ended);
        self->quit();
      },
      atom::commit_v, make_envelope(), record, Message<wire::ArtifactBatch>{});
}

// Ends the episode without a record of its own: what is committed stays, and resume goes on.
void episode_state::leave(wire::Outcome outcome, error why, std::string reason) {
  if (reason.empty()) reason = why.category;
  self->send(run, atom::finished_v, departure_message(*this, outcome, why, reason));
  enter(episode_phase::ended);
  self->quit();
}

// -- behavior -----------------------------------------------------------------------------------

episode_actor::behavior_type agent_episode(episode_actor::stateful_pointer<episode_state> self,
                                           std::shared_ptr<const episode_settings> settings,
                                           std::shared_ptr<const episode_services> services,
                                           episode_assignment where, run_actor run) {
  auto& state = self->state;
  state.settings = std::move(settings);
  state.services = std::move(services);
  state.where = std::move(where);
  state.run_hash = run_number(*state.where.run);
  state.run = std::move(run);
  state.mode =
      state.settings->mode == mode_kind::tools ? make_tools_mode(state) : make_refine_mode(state);
  self->send(self, atom::proceed_v);
  return {
      [self](atom::status) { return self->state.snapshot(); },
      [self](atom::cancel) {
        auto& x = self->state;
        if (!x.cancelled) x.cancelled_at = x.now();
        x.cancelled = true;
        // The policy may take minutes. The later steps are short as a rule, and worth finishing.
        if (x.phase == episode_phase::thinking)
          x.leave(wire::Outcome::INFRASTRUCTURE, cancellation());
      },
      [self](atom::drop) {
        self->state.dropped = true;
        if (self->state.phase != episode_phase::thinking) return;
        self->state.end_unsampled(stopped_by_quorum);
      },
      [self](atom::tick) { self->state.look_at_clock(); },
      [self](atom::proceed) { self->state.open(); },
  };
}

} // namespace kernelmill
