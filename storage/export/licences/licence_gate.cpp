#include "storage/export/licences/licence_gate.hpp"

#include "messages/base/counted.hpp"

namespace kernelmill::exports {

void note(refusals& to, const denial& why) {
  auto& x = to[why.key];
  x.may = why.may;
  x.what = why.what;
  ++x.groups;
}

expected<void> check_any_left(const refusals& x, bool any_left) {
  if (any_left || x.empty()) return {};
  const auto& first = x.begin()->second;
  uint64_t groups = 0;
  for (const auto& [unused, why] : x) groups += why.groups;
  return configuration_error("licence_forbids",
                             "failed to export: licences keep all of " + counted(groups, "group") +
                                 " in, the first for " + first.what + ": " + first.may.reason,
                             first.may.hint);
}

error to_error(const denial& why, const std::string& failed) {
  return configuration_error("licence_forbids", failed + ": " + why.may.reason, why.may.hint)
      .value();
}

licence_gate::licence_gate(std::vector<const permits*> all) : all_(std::move(all)) {
  for (const auto* x : all_)
    for (const auto& [task, may] : x->tasks)
      if (!may.allowed && !may.digest.empty()) refused_.emplace(may.digest, may);
}

permit licence_gate::of_task(const permits& may, const std::string& task) const {
  auto result = permit_of(may, task);
  auto twin = refused_.find(result.digest);
  return result.allowed && twin != refused_.end() ? twin->second : result;
}

expected<void> licence_gate::check() const {
  std::optional<permit> first;
  for (const auto* x : all_)
    for (const auto& [task, unused] : x->tasks) {
      auto may = of_task(*x, task);
      if (may.allowed) return {};
      if (!first) first = std::move(may);
    }
  if (!first) return {}; // no run has a task
  return configuration_error("licence_forbids", "failed to export: " + first->reason, first->hint);
}

std::optional<denial> licence_gate::of_turn(const permits& may,
                                            wire::TurnRecord::Reader turn) const {
  for (auto id : turn.getExamples())
    if (const auto& of = may.of_example(id.cStr()); !of.allowed)
      return denial{of, id.cStr(), std::string{"the example "} + id.cStr(),
                    "groups_with_forbidden_examples"};
  std::string model = turn.getCompletion().getModel();
  bool shared = turn.getTurn() < may.shared_turns;
  if (const auto* of = may.of_model(model, shared); of && !of->allowed)
    return denial{*of, "model " + model, "answers of the model " + model,
                  "groups_of_forbidden_models"};
  return std::nullopt;
}

// A prompt with an example that may not be used spoils its episode, and a group without one of its
// episodes is another comparison: it stays as a whole.
tl::expected<admitted_group, denial> licence_gate::admit(const permits& may,
                                                         const stored_group& x) const {
  std::string known; // turns of a group are of one task
  for (const auto& episode : x.episodes)
    for (const auto& record : episode.turns) {
      auto view = record.open();
      auto turn = view->getTurn();
      std::string task = turn.getEpisode().getTask();
      if (task != known || known.empty()) {
        auto of = of_task(may, task);
        if (!of.allowed)
          return tl::unexpected<denial>{
              {std::move(of), task, "the task " + task, "groups_forbidden_by_licence"}};
        known = std::move(task);
      }
      if (auto why = of_turn(may, turn)) return tl::unexpected<denial>{std::move(*why)};
    }
  return admitted_group{x};
}

} // namespace kernelmill::exports
