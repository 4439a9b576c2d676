#include "launch/commands/export_permits.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace kernelmill::commands {

namespace {

using stored_json = nlohmann::ordered_json;
using exports::permit;
using exports::permits;

class permit_maker {
public:
  permit_maker(const licence_book& book, purpose wanted, const std::set<std::string>& accepted)
      : book_(book), wanted_(wanted), accepted_(accepted) {}

  permit of(const origin_facts& what) const {
    auto x = decide(book_, what, wanted_, accepted_);
    permit result;
    result.allowed = x.allowed;
    result.source = std::move(x.source);
    result.licence = std::move(x.licence);
    result.url = std::move(x.url);
    result.terms = std::move(x.terms);
    result.reason = std::move(x.reason);
    result.hint = std::move(x.hint);
    result.digest = what.digest;
    result.shared = decide(book_, what, purpose::share, accepted_).allowed;
    return result;
  }

  void add_examples(permits& to, const stored_json& retrieval) const {
    if (!retrieval.is_object()) return;
    for (const auto& x : retrieval.value("examples", stored_json::array()))
      to.examples[x.value("id", std::string{})] =
          of({x.value("task", std::string{}), {}, x.value("source", std::string{})});
    if (retrieval.contains("of_origin")) add_examples(to, retrieval["of_origin"]);
  }

private:
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

bool showed_live_kernels(const stored_json& retrieval) {
  return retrieval.is_object() &&
         (retrieval.value("live", false) ||
          (retrieval.contains("of_origin") && showed_live_kernels(retrieval["of_origin"])));
}

bool has_unknown_origin(const stored_json& retrieval) {
  if (!retrieval.is_object()) return true;
  return retrieval.contains("of_origin") && has_unknown_origin(retrieval["of_origin"]);
}

} // namespace

cli::option_spec accept_terms_option() {
  return {"--accept-terms",
          "ID,...",
          "Terms of sources that you accept; docs/reference/licences.md lists them.",
          "",
          false,
          {},
          cli::completes::nothing};
}

expected<std::set<std::string>> accepted_terms(const cli::invocation& in,
                                               const licence_book& book) {
  std::set<std::string> result;
  if (in.has("--accept-terms")) {
    const auto& text = in.value("--accept-terms");
    for (size_t at = 0; at <= text.size();) {
      auto comma = std::min(text.find(',', at), text.size());
      result.insert(text.substr(at, comma - at));
      at = comma + 1;
    }
  }
  KM_TRY(book.check_terms(result));
  return result;
}

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
    return config->value(stored_json::json_pointer{std::string{"/retrieval/"} + key}, otherwise);
  };
  const auto retrieval = manifest->value("retrieval", stored_json());
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
      older || !retrieval.is_object() || !retrieval.value("cards", stored_json()).is_string()
          ? std::string{setting("corpus", std::string{}).empty() ? "kernelmill-cards" : "own-cards"}
          : retrieval["cards"].get<std::string>();
  result.cards = make.of({"a knowledge card", {}, cards});
  return result;
}

} // namespace kernelmill::commands
