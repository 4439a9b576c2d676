// The first steps of an episode: it reads what it has committed already, or asks for examples.

#include "actors/episode/asking.hpp"
#include "actors/episode/episode_records.hpp"

namespace kernelmill {

void episode_state::open() {
  started = now();
  if (settings->resume)
    recall();
  else
    retrieve(settings->example_count);
}

Message<wire::ReadQuery> episode_state::own_records() const {
  return kernelmill::build<wire::ReadQuery>([this](wire::ReadQuery::Builder x) {
    x.setRun(*where.run);
    x.setGroup(where.group);
    x.setMember(where.member);
  });
}

void episode_state::recall() {
  enter(episode_phase::recalling);
  ask<Message<wire::EpisodeHistory>>(
      services->lineage, settings->commit_deadline,
      [this](const caf::error& why) {
        leave(wire::Outcome::INFRASTRUCTURE,
              {fault_class::infrastructure,
               "lineage_lost",
               "failed to read the committed turns: " + self->system().render(why),
               {}});
      },
      [this](const Message<wire::EpisodeHistory>& history) { restore(*history.open()); },
      atom::read_v, own_records());
}

void episode_state::restore(wire::EpisodeHistory::Reader history) {
  for (auto record : history.getTurns()) {
    turns.push_back(digest_of(record));
    if (record.getTurn() == 0) first_prompt = prompt_of(record);
    mode->restore(record);
    thread = thread_of(record.getCompletion());
    ++turn;
  }
  if (history.getFinished()) {
    self->send(run, atom::finished_v, outcome_message(*this, history.getEpisode()));
    enter(episode_phase::ended);
    self->quit();
    return;
  }
  auto records = history.getTurns();
  if (turn > 0) self->send(run, atom::commit_v, turn, false);
  if (records.size() > 0 && records[records.size() - 1].getTerminal()) {
    close(records[records.size() - 1].getStopReason());
  } else if (records.size() > 0) {
    ask_policy();
  } else {
    retrieve(settings->example_count);
  }
}

void episode_state::open_with(const Message<wire::RetrieveResult>& found) {
  auto result = found.open();
  example_ids.clear();
  for (auto example : result->getExamples()) example_ids.emplace_back(example.getId().cStr());
  if (services->search && !settings->drop) return set_out(found);
  begin_with(services->prompts->open(*where.what, found));
}

void episode_state::begin_with(std::shared_ptr<const prompt_text> prompt) {
  bool begins = !first_prompt;
  first_prompt = std::move(prompt);
  if (begins) mode->begin();
  ask_policy();
}

void episode_state::set_out(const Message<wire::RetrieveResult>& found) {
  enter(episode_phase::retrieving);
  ask<Message<wire::SearchOpening>>(
      services->search, settings->commit_deadline,
      [this](const caf::error& why) {
        leave(wire::Outcome::INFRASTRUCTURE,
              {fault_class::infrastructure,
               "lineage_lost",
               "failed to read what the search has tried: " + self->system().render(why),
               {}});
      },
      [this, found](const Message<wire::SearchOpening>& opening) {
        auto view = opening.open();
        parents.clear();
        for (auto parent : view->getParents()) parents.emplace_back(parent.cStr());
        base = view->getBase().cStr();
        begin_with(services->prompts->open_with(*where.what, found, view->getText().cStr()));
      },
      atom::query_v, own_records());
}

void episode_state::retrieve(uint32_t count) {
  if (count == 0 || settings->drop) return open_with(Message<wire::RetrieveResult>{});
  enter(episode_phase::retrieving);
  auto query =
      kernelmill::build<wire::RetrieveRequest>([this, count](wire::RetrieveRequest::Builder x) {
        x.setQuery(where.what->title + "\n" + where.what->prompt);
        x.setCount(count);
        x.setExcludeTask(where.what->id);
        x.setOperatorFamily(where.what->operator_family);
        x.setBackend(settings->backend);
        x.setReference(where.what->computation());
        if (where.what->terms.language != "any") x.setLanguage(where.what->terms.language);
      });
  auto take = [this](const Message<wire::RetrieveResult>& found) {
    retrieve_seconds = seconds_since(phase_since);
    open_with(found);
  };
  // Examples help; their absence is no reason to lose an episode.
  ask<Message<wire::RetrieveResult>>(
      services->retriever, within_deadline(settings->commit_deadline),
      [take](const caf::error&) { take(Message<wire::RetrieveResult>{}); }, take, atom::query_v,
      make_envelope(), query);
}

} // namespace kernelmill
