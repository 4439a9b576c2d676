#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "launch/commands/run_view.hpp"
#include "launch/commands/store/index_sources.hpp"
#include "launch/config/paths.hpp"
#include "launch/node/node_retrieval.hpp"
#include "launch/node/run_permits.hpp"
#include "messages/base/json_value.hpp"
#include "storage/artifacts.hpp"
#include "storage/export/licences/licence_gate.hpp"
#include "storage/export/split.hpp"

namespace kernelmill::commands {

namespace {

using run_json = nlohmann::ordered_json;

std::map<std::string, std::string> splits_of(const run_json& manifest) {
  std::map<std::string, std::string> result;
  for (const auto& x : manifest.value("tasks", run_json::array())) {
    auto id = x.value("id", std::string{});
    result[id] = exports::split_of(id, x.value("split", std::string{}));
  }
  return result;
}

/// What the run's tasks compute, of those that are installed as the run had them. The leak guard
/// knows by it what another task of the same computation must not be shown.
expected<std::map<std::string, std::string>> computations_of(const run_directory& run,
                                                             const run_json& manifest) {
  auto config = read_json(run.config_file());
  KM_TRY(config);
  auto root = config->value(run_json::json_pointer{"/tasks/root"}, std::string{});
  auto roots = root.empty() ? default_tasks_roots() : task_roots{root};
  std::map<std::string, std::string> result;
  for (const auto& x : manifest.value("tasks", run_json::array())) {
    auto id = x.value("id", std::string{});
    auto known = load_task(roots, id);
    if (known && (*known)->digest == x.value("digest", std::string{}))
      result[id] = (*known)->computation();
  }
  return result;
}

/// The sources whose terms hold when this kernel is shown again: of its task, of the model that
/// wrote it, and of kernels that its prompt showed.
std::set<std::string> binding_sources(const exports::permits& may, wire::TurnRecord::Reader turn) {
  std::set<std::string> result;
  auto note = [&](const exports::permit& x) {
    if (!x.terms.empty() || !x.shared) result.insert(x.source);
  };
  note(exports::permit_of(may, turn.getEpisode().getTask().cStr()));
  if (const auto* of =
          may.of_model(turn.getCompletion().getModel().cStr(), turn.getTurn() < may.shared_turns))
    note(*of);
  for (std::string id : turn.getExamples())
    if (!id.starts_with("card:")) note(may.of_example(id));
  return result;
}

/// Why a kernel of an admitted group, or of another, stays out.
std::optional<licence_refusal> refusal_of_turn(const std::string& task,
                                               const exports::permit* refused,
                                               const std::set<std::string>& binding) {
  if (refused)
    return licence_refusal{"licence " + task, task + ": " + refused->reason, refused->hint};
  if (binding.size() > 1)
    return licence_refusal{"several " + task,
                           task + ": several sources bind it, and an entry names one",
                           fmt::format("they are {}", fmt::join(binding, ", "))};
  return std::nullopt;
}

} // namespace

expected<void> take_run(kernel_intake& to, const index_source& from, const std::string& root,
                        const licence_table& licences, const std::set<std::string>& accepted) {
  auto run = find_run(from.value, root);
  KM_TRY(run);
  auto store = open_for_reading(*run);
  KM_TRY(store);
  KM_TRY(check_store_of(*run, *store));
  auto may = permits_of(*run, licences, purpose::train, accepted);
  KM_TRY(may);
  auto manifest = read_json(run->manifest_file());
  KM_TRY(manifest);
  const auto splits = splits_of(*manifest);
  const auto computations = computations_of(*run, *manifest);
  KM_TRY(computations);
  artifact_store artifacts{run->artifacts};
  auto& report = to.begin(from.from);
  bool more = true;
  auto add = [&](corpus_kernel x, const exports::permit* refused,
                 const std::set<std::string>& binding) {
    auto split = splits.find(x.kernel.task);
    x.kernel.split = split == splits.end() ? exports::split_of(x.kernel.task, "") : split->second;
    if (auto i = computations->find(x.kernel.task); i != computations->end())
      x.kernel.reference = i->second;
    x.kernel.rights_source =
        binding.empty() ? exports::permit_of(*may, x.kernel.task).source : *binding.begin();
    ++report.rows;
    auto why = refusal_of_turn(x.kernel.task, refused, binding);
    more = to.take(std::move(x), why);
  };
  const exports::licence_gate gate{{&*may}};
  auto done = for_each_group(*store, run->name, [&](const stored_group& group) -> expected<void> {
    auto admitted = gate.admit(*may, group);
    for (const auto& episode : group.episodes) {
      std::set<std::string> binding; // what an earlier turn read, a later one has read, too
      for (const auto& record : episode.turns) {
        auto view = record.open();
        binding.merge(binding_sources(*may, view->getTurn()));
        if (auto kernel = verified_of(artifacts, view->getTurn()); kernel && more)
          add({std::move(*kernel), true, view->getTurn().getCompletion().getModel().cStr()},
              admitted ? nullptr : &admitted.error().may, binding);
      }
    }
    return {};
  });
  KM_TRY(done);
  return to.end();
}

} // namespace kernelmill::commands
