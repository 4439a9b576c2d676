#include "launch/server/api/evaluation_service.hpp"

#include <caf/all.hpp>

#include "actors/caf_error.hpp"
#include "actors/episode/prompt.hpp"
#include "actors/snapshots.hpp"
#include "launch/judging/verdict_text.hpp"
#include "launch/server/api/evaluation_documents.hpp"
#include "messages/judged.hpp"

namespace kernelmill::services {

namespace {

using service_pointer = evaluation_service_actor::stateful_pointer<evaluation_service_state>;

steady_time now() {
  return std::chrono::steady_clock::now();
}

/// What is known of a candidate so far.
struct course {
  std::string id;
  std::shared_ptr<const offered_candidate> candidate;
  Message<wire::BuildResult> built;
  Message<wire::EvaluateResult> evaluated;
  std::optional<error> fault;
};
using course_ptr = std::shared_ptr<course>;

void begin_more(service_pointer self);

std::shared_ptr<const judged_evaluation> judge_course(const course& x,
                                                      const governance_config& rules) {
  auto facts = facts_of(*x.candidate, x.built, x.evaluated, x.fault);
  auto opened = facts.open();
  auto verdict = judge(*opened, rules);
  auto judged = verdict.open();
  auto result = std::make_shared<judged_evaluation>();
  result->verdict = verdict_json(*opened, *judged);
  result->feedback = feedback_text(*opened, *judged);
  result->lasting = is_paid(*judged);
  return result;
}

/// Called before any answer, so that the next request sees counts that include that answer.
void note_load(evaluation_service_state& s) {
  s.options.load->waiting = s.table->waiting();
  s.options.load->running = s.table->running();
  s.options.load->full = s.table->full();
}

/// Answers the requests with no unfinished evaluation.
void tell(service_pointer self) {
  auto& s = self->state;
  note_load(s);
  for (const auto& id : s.table->take_ended())
    for (auto& [waiter, request] : s.requests)
      for (const auto& one : request.ids)
        if (one == id) --request.left;
  for (auto i = s.requests.begin(); i != s.requests.end();) {
    if (i->second.left > 0) {
      ++i;
      continue;
    }
    auto request = std::move(i->second);
    i = s.requests.erase(i);
    std::vector<nlohmann::ordered_json> all;
    for (const auto& id : request.ids)
      if (const auto* x = s.table->find(id))
        all.push_back(evaluation_document(*s.table, *x, now()));
    request.reply(std::move(all));
  }
}

void count(evaluation_load& load, const judged_evaluation& x) {
  ++load.done;
  if (x.verdict["outcome"] == "accepted") ++load.accepted;
  if (x.verdict["outcome"] == "infrastructure") ++load.faults;
}

void finish(service_pointer self, const course_ptr& x, bool judged = true) {
  auto& s = self->state;
  auto result = judged ? judge_course(*x, s.options.rules) : nullptr;
  if (result != nullptr) count(*s.options.load, *result);
  s.table->finish(x->id, std::move(result), now());
  begin_more(self);
}

void evaluate(service_pointer self, const course_ptr& x) {
  auto& s = self->state;
  auto request = evaluate_request_of(s.options.judging, *x->candidate, *x->built.open());
  if (!request) {
    x->fault = request.error();
    return finish(self, x);
  }
  s.table->evaluating(x->id);
  self->request(s.cluster, s.options.patience, atom::evaluate_v, envelope{}, *request)
      .then(
          [self, x](const Message<wire::EvaluateResult>& result) {
            x->evaluated = result;
            finish(self, x);
          },
          [self, x](caf::error& why) {
            x->fault = from_caf(why);
            finish(self, x);
          });
}

void build(service_pointer self, const course_ptr& x) {
  auto& s = self->state;
  self->request(s.cluster, s.options.patience, atom::build_v, envelope{},
                build_request_of(*x->candidate))
      .then(
          [self, x](const Message<wire::BuildResult>& result) {
            x->built = result;
            const auto* entry = self->state.table->find(x->id);
            if (entry == nullptr || entry->over()) return finish(self, x, false);
            if (!result.open()->getCompiled()) return finish(self, x);
            evaluate(self, x);
          },
          [self, x](caf::error& why) {
            x->fault = from_caf(why);
            finish(self, x);
          });
}

void begin_more(service_pointer self) {
  while (auto* x = self->state.table->begin(now())) {
    auto next = std::make_shared<course>();
    next->id = x->id;
    next->candidate = x->order.candidate;
    if (next->candidate->parsed.ok)
      build(self, next);
    else {
      auto result = judge_course(*next, self->state.options.rules);
      count(*self->state.options.load, *result);
      self->state.table->finish(next->id, std::move(result), now());
    }
  }
  tell(self);
}

/// Keeps a request until its evaluations are over.
void wait_for(service_pointer self, uint64_t waiter, std::vector<std::string> ids,
              std::function<void(documents)> reply) {
  auto& s = self->state;
  size_t left = 0;
  for (const auto& id : ids)
    if (const auto* x = s.table->find(id); x != nullptr && !x->over()) ++left;
  s.requests[waiter] = {std::move(ids), left, std::move(reply)};
}

void answer_now(service_pointer self, const std::vector<std::string>& ids,
                const std::function<void(documents)>& reply) {
  auto& s = self->state;
  std::vector<nlohmann::ordered_json> all;
  for (const auto& id : ids)
    if (const auto* x = s.table->find(id)) all.push_back(evaluation_document(*s.table, *x, now()));
  reply(std::move(all));
}

tl::unexpected<error> no_such(const std::string& id) {
  return configuration_error("not_found", "there is no evaluation \"" + id + "\"",
                             "only the latest that ended are remembered");
}

/// What a question is about; null where there is none, or another client's.
const evaluation* asked(service_pointer self, const evaluation_query& x) {
  const auto* one = self->state.table->find(x.id);
  return one != nullptr && one->order.client == x.client ? one : nullptr;
}

void enter(service_pointer self, const evaluation_entry_ptr& x) {
  auto waiter = x->entry.waiter;
  auto ids = self->state.table->enter(std::move(x->entry), now());
  if (!ids) return x->reply(tl::unexpected<error>{ids.error()});
  note_load(self->state);
  (void)self->state.table->take_ended(); // answered from the cache: no request waits for them yet
  if (waiter == 0)
    answer_now(self, *ids, x->reply);
  else
    wait_for(self, waiter, *ids, std::move(x->reply));
  begin_more(self);
}

void look(service_pointer self, const evaluation_query_ptr& x) {
  const auto* one = asked(self, *x);
  if (one == nullptr) return x->reply(no_such(x->id));
  if (one->over() || x->wait.count() == 0) return answer_now(self, {x->id}, x->reply);
  wait_for(self, x->waiter, {x->id}, std::move(x->reply));
  self->delayed_send(self, x->wait, atom::tick_v, x->waiter);
}

} // namespace

evaluation_service_actor::behavior_type evaluation_service(service_pointer self,
                                                           evaluation_service_options options,
                                                           cluster_actor cluster) {
  auto& s = self->state;
  s.table = std::make_unique<evaluation_table>(options.limits);
  s.options = std::move(options);
  s.cluster = std::move(cluster);
  return {
      [self](atom::status) {
        const auto& table = *self->state.table;
        return snapshot_of("evaluation-desk", "desk", table.running() > 0 ? "evaluating" : "idle",
                           "", {{"waiting", table.waiting()}, {"running", table.running()}});
      },
      [self](atom::evaluate, const evaluation_entry_ptr& x) { enter(self, x); },
      [self](atom::read, const evaluation_query_ptr& x) { look(self, x); },
      [self](atom::cancel, const evaluation_query_ptr& x) {
        if (asked(self, *x) == nullptr) return x->reply(no_such(x->id));
        self->state.table->cancel(x->id, now());
        note_load(self->state);
        answer_now(self, {x->id}, x->reply);
        begin_more(self);
      },
      [self](atom::drop, uint64_t waiter) {
        self->state.requests.erase(waiter);
        self->state.table->leave(waiter, now());
        begin_more(self);
      },
      [self](atom::tick, uint64_t waiter) {
        auto i = self->state.requests.find(waiter);
        if (i == self->state.requests.end()) return;
        auto request = std::move(i->second);
        self->state.requests.erase(i);
        answer_now(self, request.ids, request.reply);
      },
  };
}

} // namespace kernelmill::services
