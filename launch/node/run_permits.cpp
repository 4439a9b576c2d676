#include "launch/node/run_permits.hpp"

#include <limits>
#include <optional>
#include <vector>

#include "messages/base/json_value.hpp"
#include "storage/lineage/fork.hpp"

namespace kernelmill {

namespace {

using permit_json = nlohmann::ordered_json;
using exports::permit;
using exports::permits;

class permit_maker {
public:
  permit_maker(const licence_table& licences, purpose wanted, const std::set<std::string>& accepted)
      : licences_(licences), wanted_(wanted), accepted_(accepted) {}

  permit of(const origin_facts& what) const {
    auto result = of(decide(licences_, what, wanted_, accepted_),
                     decide(licences_, what, purpose::share, accepted_).allowed);
    result.digest = what.digest;
    return result;
  }

  permit of_answers(const std::string& model, const std::string& named) const {
    return of(*decide_answers(licences_, model, named, wanted_, accepted_),
              decide_answers(licences_, model, named, purpose::share, accepted_)->allowed);
  }

  /// Of answers of any of them: the strictest. Nothing: no source speaks of them.
  std::optional<permit> of_policies(const std::vector<asked_policy>& all) const {
    std::optional<permit> result;
    for (const auto& x : all)
      if (decide_answers(licences_, x.model, x.licence, wanted_, accepted_))
        if (!result || result->allowed) result = of_answers(x.model, x.licence);
    return result;
  }

  void add_examples(permits& to, const permit_json& retrieval) const {
    if (!retrieval.is_object()) return;
    for (const auto& x : retrieval.value("examples", permit_json::array()))
      to.examples[x.value("id", std::string{})] =
          of({x.value("task", std::string{}), {}, x.value("source", std::string{})});
    if (retrieval.contains("of_origin")) add_examples(to, retrieval["of_origin"]);
  }

  void add_models(permits& to) const {
    for (const auto& source : licences_.all())
      for (const auto& glob : source.models)
        to.models.emplace_back(glob, of_answers(glob, source.source));
  }

private:
  static permit of(licence_decision x, bool shared) {
    permit result;
    result.allowed = x.allowed;
    result.source = std::move(x.source);
    result.licence = std::move(x.licence);
    result.url = std::move(x.url);
    result.terms = std::move(x.terms);
    result.reason = std::move(x.reason);
    result.hint = std::move(x.hint);
    result.confirmed = x.confirmed;
    result.shared = shared;
    return result;
  }

  const licence_table& licences_;
  purpose wanted_;
  const std::set<std::string>& accepted_;
};

/// Kernels that a run verified while it went on, and showed: they are of its own tasks, and in the
/// prompts of a fork of its origin's.
permit of_live_kernels(const permit_maker& make, const permits& of_run,
                       const permit_json& retrieval) {
  auto tasks = of_run.tasks;
  for (const auto* at = &retrieval; at->is_object() && at->contains("of_origin");) {
    at = &(*at)["of_origin"];
    for (const auto& what : origins_of(*at)) {
      auto may = make.of(what);
      if (auto& known = tasks[what.id]; known.source.empty() || !may.allowed)
        known = std::move(may);
    }
  }
  permit result;
  result.allowed = true;
  for (const auto& [task, may] : tasks) {
    if (result.source.empty() || !may.allowed) result = may;
    if (!may.allowed) break;
  }
  return result;
}

permit of_unknown_index() {
  permit result;
  result.reason = "its prompts show kernels of an index, and the run is of a program that did not "
                  "record their sources";
  result.hint = "run it again: manifests keep that now";
  return result;
}

bool showed_live_kernels(const permit_json& retrieval) {
  return retrieval.is_object() &&
         (retrieval.value("live", false) ||
          (retrieval.contains("of_origin") && showed_live_kernels(retrieval["of_origin"])));
}

// A fork by an older program has no record of the tasks that its origin's live kernels solve.
bool has_unknown_origin(const permit_json& retrieval) {
  if (!retrieval.is_object()) return true;
  if (!retrieval.contains("of_origin")) return false;
  const auto& origin = retrieval["of_origin"];
  return has_unknown_origin(origin) || (showed_live_kernels(origin) && !origin.contains("tasks"));
}

/// A file's own statement can forbid, but not allow: the user who imports it names the source.
void distrust_imported(permits& to, const std::vector<origin_facts>& tasks) {
  for (const auto& what : tasks) {
    auto& may = to.tasks[what.id];
    if (!may.allowed || !what.source.empty()) continue;
    may.allowed = may.shared = false;
    may.reason = what.id + " was imported without a source: it must not leave";
    may.hint = "import it again with --source NAME; \"own\" says that you hold the rights in it";
  }
}

permit of_forgotten_answers() {
  permit result;
  result.reason = "its first turns are of a run that is gone, so the source of their answers is "
                  "unknown: they must not leave";
  result.hint = "put that run back where `fork` of the manifest names it";
  return result;
}

void add_answers(permits& to, const permit_maker& make, const permit_json& manifest) {
  const auto policy = manifest.value("policy", permit_json::object());
  to.answers = make.of_policies(
      {{policy.value("model", std::string{}), policy.value("licence", std::string{})}});
  make.add_models(to);
  if (!manifest.contains("fork")) return;
  auto fork = fork_of(manifest);
  auto policies = policies_of_shared_turns(manifest);
  to.shared_turns = fork ? fork->turns : std::numeric_limits<uint32_t>::max();
  to.shared_answers = fork && policies ? make.of_policies(*policies) : of_forgotten_answers();
}

} // namespace

expected<permits> permits_of(const run_directory& run, const licence_table& licences,
                             purpose wanted, const std::set<std::string>& accepted) {
  auto manifest = read_json(run.manifest_file());
  KM_TRY(manifest);
  auto config = read_json(run.config_file());
  KM_TRY(config);
  permit_maker make{licences, wanted, accepted};
  permits result;
  const auto tasks = origins_of(*manifest);
  for (const auto& what : tasks) result.tasks[what.id] = make.of(what);
  if (manifest->contains("imported")) distrust_imported(result, tasks);
  auto setting = [&](const char* key, auto otherwise) {
    return config->value(permit_json::json_pointer{std::string{"/retrieval/"} + key}, otherwise);
  };
  const auto retrieval = manifest->value("retrieval", permit_json());
  bool older = !manifest->contains("retrieval");
  make.add_examples(result, retrieval);
  result.kernels.allowed = true;
  result.kernels.source = "retrieved-kernels";
  result.kernels.licence = "that of their tasks; what limits training or sharing is named apart";
  if (older ? setting("live", false) : showed_live_kernels(retrieval))
    result.kernels = of_live_kernels(make, result, retrieval);
  if (older ? !setting("index", std::string{}).empty() : has_unknown_origin(retrieval))
    result.kernels = of_unknown_index();
  auto cards =
      older || !retrieval.is_object() || !retrieval.value("cards", permit_json()).is_string()
          ? std::string{setting("corpus", std::string{}).empty() ? "kernelmill-cards" : "own-cards"}
          : retrieval["cards"].get<std::string>();
  result.cards = make.of({"a knowledge card", {}, cards});
  add_answers(result, make, *manifest);
  return result;
}

expected<void> check_store_of(const run_directory& run, const store& from) {
  auto manifest = read_json(run.manifest_file());
  KM_TRY(manifest);
  auto wanted = manifest->value("config_digest", std::string{});
  std::optional<std::string> found;
  KM_TRY(from.scan_openings(run.name, [&](wire::Record::Reader record) {
    if (record.getRun().getOpening() == 0 && !found)
      found = record.getRun().getConfigDigest().cStr();
    return true;
  }));
  if (!found || *found == wanted) return {};
  return configuration_error(
      "licence_forbids",
      "failed to read " + run.path + ": its manifest is not of the run in " + run.store +
          ", so the sources of its tasks are unknown, and what must not leave",
      "restore the run's manifest.json and its store from one copy");
}

} // namespace kernelmill
