#include "launch/node/verified_kernels.hpp"

#include "messages/base/clock.hpp"
#include "messages/base/json_value.hpp"
#include "storage/export/split.hpp"

namespace kernelmill {

shown_task_map shown_tasks(const std::vector<std::shared_ptr<const task>>& tasks,
                           const run_rights& rights) {
  shown_task_map result;
  for (const auto& one : tasks) {
    auto& x = result[one->id];
    x.split = exports::split_of(one->id, one->split);
    x.reference = one->computation();
    const auto* right = rights.find(one->id);
    if (!right || !right->train.allowed) continue;
    x.hidden = false;
    x.source = right->train.source;
    x.bound = !right->train.terms.empty() || !right->share.allowed;
  }
  return result;
}

void kernel_terms::add(const kernel_terms& x) {
  sources.insert(x.sources.begin(), x.sources.end());
  refused |= x.refused;
}

void kernel_terms::add(const licence_decision& train, const licence_decision& share) {
  refused |= !train.allowed;
  if (!train.allowed || !train.terms.empty() || !share.allowed) sources.insert(train.source);
}

kernel_terms terms_of_run::of_answers(const std::string& model) const {
  kernel_terms result;
  auto train = decide_answers(licences, model, policy_licence, purpose::train, accepted);
  auto share = decide_answers(licences, model, policy_licence, purpose::share, accepted);
  if (train && share) result.add(*train, *share);
  return result;
}

void terms_of_run::take_examples(const nlohmann::ordered_json& retrieval) {
  using json = nlohmann::ordered_json;
  if (!retrieval.is_object()) return;
  for (const auto& x : retrieval.value("examples", json::array())) {
    origin_facts what{x.value("task", std::string{}), {}, x.value("source", std::string{})};
    examples[x.value("id", std::string{})].add(decide(licences, what, purpose::train, accepted),
                                               decide(licences, what, purpose::share, accepted));
  }
}

verified_kernels::verified_kernels(node_retrieval to, shown_task_map shown, terms_of_run terms,
                                   std::shared_ptr<artifact_store> artifacts,
                                   trouble_listener on_trouble)
    : to_(std::move(to)), shown_(std::move(shown)), terms_(std::move(terms)),
      artifacts_(std::move(artifacts)), on_trouble_(std::move(on_trouble)) {}

void verified_kernels::settle() {
  if (!to_.file) return;
  if (auto synced = to_.file->sync(); !synced && on_trouble_)
    std::exchange(on_trouble_, {})(synced.error());
}

kernel_terms verified_kernels::terms_of(wire::TurnRecord::Reader turn) {
  auto episode = turn.getEpisode();
  std::pair<uint32_t, uint32_t> place{episode.getGroup(), episode.getMember()};
  kernel_terms result;
  if (auto i = read_.find(place); i != read_.end()) result = i->second;
  for (auto id : turn.getExamples())
    if (auto i = terms_.examples.find(id.cStr()); i != terms_.examples.end()) result.add(i->second);
  if (turn.getTerminal())
    read_.erase(place);
  else if (!result.sources.empty())
    read_[place] = result;
  result.add(terms_.of_answers(turn.getCompletion().getModel().cStr()));
  if (auto task = shown_.find(episode.getTask().cStr()); task != shown_.end() && task->second.bound)
    result.sources.insert(task->second.source);
  return result;
}

std::optional<verified_kernels::verified> verified_kernels::verify(wire::TurnRecord::Reader turn) {
  auto terms = terms_of(turn);
  auto kernel = verified_of(*artifacts_, turn);
  if (!kernel) return std::nullopt;
  auto task = shown_.find(kernel->task);
  auto as = task == shown_.end() ? shown_task{} : task->second;
  kernel->split = as.split;
  kernel->rights_source = as.source;
  kernel->hidden = as.hidden;
  kernel->reference = as.reference;
  if (kernel->date.empty()) kernel->date = utc_text(std::time(nullptr)).substr(0, 10);
  verified result{*kernel, std::move(*kernel), turn.getEpisode().getRun().cStr(),
                  turn.getCommittedAt() > 0 ? turn.getCommittedAt() : seconds_since_1970()};
  if (is_retracted(to_.retracted, result.here.id, result.here.source)) result.here.hidden = true;
  // An entry names one source.
  if (terms.refused || terms.sources.size() > 1) result.elsewhere.hidden = true;
  if (!terms.sources.empty()) {
    result.elsewhere.rights_source = *terms.sources.begin();
    terms_.examples["kernel:" + result.here.id] = std::move(terms);
  }
  return result;
}

void verified_kernels::keep(verified x) {
  if (!to_.file) return;
  if (is_retracted(to_.retracted, x.elsewhere.id, x.elsewhere.source)) return;
  auto kept = to_.file->append({std::move(x.elsewhere), std::move(x.run), x.at});
  if (!kept && on_trouble_) std::exchange(on_trouble_, {})(kept.error());
}

void verified_kernels::follow(wire::Record::Reader record) {
  if (!record.isTurn()) return;
  auto x = verify(record.getTurn());
  if (!x) return;
  to_.feed->push(x->here);
  keep(std::move(*x));
}

expected<void> verified_kernels::take_up(const store& records, const std::string& run) {
  std::vector<kernel_example> all;
  KM_TRY(records.scan_run(run, [&](wire::Record::Reader record) {
    if (!record.isTurn()) return true;
    if (auto x = verify(record.getTurn())) {
      all.push_back(x->here);
      keep(std::move(*x));
    }
    return true;
  }));
  return add_live_kernels(*to_.index, std::move(all));
}

} // namespace kernelmill
