#include "actors/retriever/indexed_retriever.hpp"

#include "actors/snapshots.hpp"
#include "messages/fault.hpp"

#include <algorithm>
#include <chrono>

#include <caf/actor_system.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <fmt/format.h>

namespace kernelmill {

namespace {

// Of 100 KB at most each. A run's tasks come round and round: more of them are rare.
constexpr size_t most_answers = 512;

double now() {
  using namespace std::chrono;
  return duration<double>(system_clock::now().time_since_epoch()).count();
}

std::string text_of(capnp::Text::Reader x) {
  return {x.begin(), x.size()};
}

/// Into the message itself: a text may have 100 KB.
void copy_to(capnp::Text::Builder to, const shared_text& from) {
  std::copy(from.view().begin(), from.view().end(), to.begin());
}

void fill(wire::Example::Builder to, const retrieved& from) {
  to.setId(from.entry.id);
  to.setKind(from.entry.kind);
  to.setTitle(from.entry.title);
  const auto &text = from.entry.text, &reference = from.entry.reference;
  copy_to(to.initText(static_cast<unsigned>(text.size())), text);
  to.setSource(from.entry.source);
  to.setTask(from.entry.task);
  to.setLanguage(from.entry.language);
  to.setScore(from.score);
  copy_to(to.initReference(static_cast<unsigned>(reference.size())), reference);
  to.setSpeedup(from.entry.speedup);
  to.setDevice(from.entry.device);
  to.setDate(from.entry.date);
  to.setOrigin(from.entry.origin);
  to.setRightsSource(from.entry.rights_source);
}

Message<wire::RetrieveResult> result_of(const retrieval_answer& x) {
  return build<wire::RetrieveResult>([&](wire::RetrieveResult::Builder to) {
    auto examples = to.initExamples(static_cast<unsigned>(x.results.size()));
    for (unsigned i = 0; i < examples.size(); ++i) fill(examples[i], x.results[i]);
    to.setWithheld(x.withheld);
  });
}

Message<wire::RetrieveResult> result_of(const error& x) {
  return build<wire::RetrieveResult>(
      [&](wire::RetrieveResult::Builder to) { set_fault(to.initFault(), x); });
}

/// The one place where Cap'n Proto's exceptions about a malformed request become values.
expected<retrieval_answer> ask(const loaded_index& index,
                               const Message<wire::RetrieveRequest>& request) {
  try {
    auto x = request.open();
    retrieval_query query;
    query.text = text_of(x->getQuery());
    query.reference = text_of(x->getReference());
    query.count = x->getCount();
    query.exclude_task = text_of(x->getExcludeTask());
    query.exclude_reference = text_of(x->getExcludeReference());
    query.family = text_of(x->getOperatorFamily());
    query.backend = text_of(x->getBackend());
    query.language = text_of(x->getLanguage());
    return index.query(query);
  } catch (const kj::Exception& e) {
    return infrastructure_error(
        "malformed_message", fmt::format("failed to read a query: {}", e.getDescription().cStr()));
  }
}

void set(wire::Quantity::Builder to, const char* name, double value, const char* unit = "") {
  to.setName(name);
  to.setValue(value);
  to.setUnit(unit);
}

} // namespace

void indexed_retriever_state::take_up_feed() {
  if (!feed) return;
  for (const auto& kernel : feed->take()) {
    answers.clear();
    auto added = index->add_kernel(kernel);
    if (added) continue;
    ++counters.failures;
    counters.last_fault = added.error().message;
  }
}

Message<wire::RetrieveResult>
indexed_retriever_state::query(const Message<wire::RetrieveRequest>& request) {
  auto start = std::chrono::steady_clock::now();
  take_up_feed();
  auto answer = answer_to(request);
  ++counters.queries;
  counters.seconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  auto x = answer.open();
  counters.results += x->getExamples().size();
  counters.withheld += x->getWithheld();
  return answer;
}

Message<wire::RetrieveResult>
indexed_retriever_state::answer_to(const Message<wire::RetrieveRequest>& request) {
  std::string words{request.data(), request.size()};
  if (auto known = answers.find(words); known != answers.end()) return known->second;
  auto found = ask(*index, request);
  if (!found) {
    ++counters.failures;
    counters.last_fault = found.error().message;
    return result_of(found.error());
  }
  if (answers.size() >= most_answers) answers.clear();
  return answers.emplace(std::move(words), result_of(*found)).first->second;
}

Message<wire::Snapshot> indexed_retriever_state::snapshot() const {
  return build<wire::Snapshot>([&](wire::Snapshot::Builder to) {
    to.setActor("retriever");
    to.setState(counters.failures == 0 ? "ready" : "degraded");
    to.setSince(since);
    to.setDetail(counters.failures == 0 ? index->manifest().embedder
                                        : "last fault: " + counters.last_fault);
    auto numbers = to.initNumbers(7);
    set(numbers[0], "entries", static_cast<double>(index->size()));
    set(numbers[1], "kernels", static_cast<double>(index->kernels()));
    set(numbers[2], "queries", static_cast<double>(counters.queries));
    set(numbers[3], "results", static_cast<double>(counters.results));
    set(numbers[4], "withheld", static_cast<double>(counters.withheld));
    set(numbers[5], "failures", static_cast<double>(counters.failures));
    auto queries = static_cast<double>(counters.queries);
    set(numbers[6], "mean_query", queries > 0 ? 1e6 * counters.seconds / queries : 0, "us");
  });
}

retriever_actor::behavior_type
indexed_retriever(retriever_actor::stateful_pointer<indexed_retriever_state> self,
                  std::shared_ptr<loaded_index> index, std::shared_ptr<kernel_feed> feed) {
  self->state.index = std::move(index);
  self->state.feed = std::move(feed);
  self->state.since = now();
  return {
      [self](atom::status) { return signed_by(self, self->state.snapshot()); },
      [self](atom::query, const envelope&, const Message<wire::RetrieveRequest>& request) {
        return self->state.query(request);
      },
  };
}

retriever_actor spawn_indexed_retriever(caf::actor_system& system,
                                        std::shared_ptr<loaded_index> index,
                                        std::shared_ptr<kernel_feed> feed) {
  if (index->blocking())
    return system.spawn<caf::detached>(indexed_retriever, std::move(index), std::move(feed));
  return system.spawn(indexed_retriever, std::move(index), std::move(feed));
}

} // namespace kernelmill
