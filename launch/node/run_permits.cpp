#include "launch/node/run_permits.hpp"

#include <nlohmann/json.hpp>

namespace kernelmill {

namespace {

using permit_json = nlohmann::ordered_json;
using exports::permit;
using exports::permits;

class permit_maker {
public:
  permit_maker(const licence_book& book, purpose wanted, const std::set<std::string>& accepted)
      : book_(book), wanted_(wanted), accepted_(accepted) {}

  permit of(const origin_facts& what) const {
    auto result = of(decide(book_, what, wanted_, accepted_),
                     decide(book_, what, purpose::share, accepted_).allowed);
    result.digest = what.digest;
    return result;
  }

  permit of_answers(const std::string& model, const std::string& named) const {
    return of(*decide_answers(book_, model, named, wanted_, accepted_),
              decide_answers(book_, model, named, purpose::share, accepted_)->allowed);
  }

  void add_examples(permits& to, const permit_json& retrieval) const {
    if (!retrieval.is_object()) return;
    for (const auto& x : retrieval.value("examples", permit_json::array()))
      to.examples[x.value("id", std::string{})] =
          of({x.value("task", std::string{}), {}, x.value("source", std::string{})});
    if (retrieval.contains("of_origin")) add_examples(to, retrieval["of_origin"]);
  }

  /// Of the models that sources name, and of the run's own where its `policy.licence` names one.
  void add_models(permits& to, const std::string& own) const {
    for (const auto& source : book_.all())
      for (const auto& glob : source.models)
        to.models.emplace_back(glob, of_answers(glob, source.source));
    if (book_.find(own)) to.answers = of_answers({}, own);
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

  const licence_book& book_;
  purpose wanted_;
  const std::set<std::string>& accepted_;
};

/// Kernels that a run verified while it went on, and showed: they are of its own tasks.
permit of_own_tasks(const permits& x) {
  permit result;
  result.allowed = true;
  for (const auto& [task, may] : x.tasks) {
    if (result.source.empty() || !may.allowed) result = may;
    if (!may.allowed) break;
  }
  return result;
}

permit of_unknown_index() {
  permit result;
  result.reason = "its prompts show kernels of an index, and the run is of a program that did not "
                  "keep whose they are";
  result.hint = "run it again: manifests keep that now";
  return result;
}

bool showed_live_kernels(const permit_json& retrieval) {
  return retrieval.is_object() &&
         (retrieval.value("live", false) ||
          (retrieval.contains("of_origin") && showed_live_kernels(retrieval["of_origin"])));
}

bool has_unknown_origin(const permit_json& retrieval) {
  if (!retrieval.is_object()) return true;
  return retrieval.contains("of_origin") && has_unknown_origin(retrieval["of_origin"]);
}

} // namespace

expected<permits> permits_of(const run_directory& run, const licence_book& book, purpose wanted,
                             const std::set<std::string>& accepted) {
  auto manifest = read_json(run.manifest_file());
  KM_TRY(manifest);
  auto config = read_json(run.config_file());
  KM_TRY(config);
  permit_maker make{book, wanted, accepted};
  permits result;
  for (const auto& what : origins_of(*manifest)) result.tasks[what.id] = make.of(what);
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
    result.kernels = of_own_tasks(result);
  if (older ? !setting("index", std::string{}).empty() : has_unknown_origin(retrieval))
    result.kernels = of_unknown_index();
  auto cards =
      older || !retrieval.is_object() || !retrieval.value("cards", permit_json()).is_string()
          ? std::string{setting("corpus", std::string{}).empty() ? "kernelmill-cards" : "own-cards"}
          : retrieval["cards"].get<std::string>();
  result.cards = make.of({"a knowledge card", {}, cards});
  make.add_models(result,
                  manifest->value(permit_json::json_pointer{"/policy/licence"}, std::string{}));
  return result;
}

} // namespace kernelmill
