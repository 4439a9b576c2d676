// `kernelmill compare`: what differs between two runs, groups, episodes, turns or candidates.

#include <map>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "launch/cli/terminal.hpp"
#include "launch/commands/compare_text.hpp"
#include "launch/commands/number_lists.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/place.hpp"
#include "launch/commands/run_view.hpp"
#include "launch/commands/stored_runs.hpp"
#include "launch/study/episode_comparison.hpp"
#include "launch/study/run_comparison.hpp"
#include "launch/study/turn_query.hpp"
#include "storage/fork.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

tl::unexpected<error> compare_usage(std::string message, std::string hint) {
  return configuration_error("usage", "failed to run 'compare': " + std::move(message),
                             std::move(hint));
}

// -- what is compared -----------------------------------------------------------------------------

/// A run that is read; both sides may be of one, and two runs may share a store.
struct opened_run {
  run_directory where;
  std::shared_ptr<const store> lineage;
  artifact_store artifacts;
  json config, manifest;

  study::compared_source source() const { return {where.name, &artifacts, &config}; }
};

struct side_of_pair {
  std::shared_ptr<opened_run> run;
  place at;
  std::string name;
};

const char* kind_of(const place& x) {
  if (x.whole_run) return "runs";
  if (!x.name.member) return "groups";
  return x.name.turn ? "turns" : "episodes";
}

bool is_digits_of_hash(const std::string& x) {
  return x.size() >= 6 && x.size() <= 64 &&
         x.find_first_not_of("0123456789abcdef") == std::string::npos;
}

/// The first turn below the root whose candidate has such a SHA-256.
expected<place> turn_of_candidate(const std::string& prefix, const std::string& root) {
  auto by = study::turn_query::parse(
      {"code_sha256 ~ \"" + prefix + "*\"", {"name", "code_sha256"}, "", 0});
  KM_TRY(by);
  std::string name, sha256;
  for (const auto& run_name : list_runs(root)) {
    auto run = find_run(root + "/" + run_name, root);
    if (!run) continue; // another command says what is wrong with it
    auto from = open_for_reading(*run);
    if (!from) continue;
    auto read = by->read(*from, {run->name, nullptr, {}, 0}, [&](json row) -> expected<void> {
      auto found = row["code_sha256"].get<std::string>();
      if (sha256.empty()) {
        sha256 = found;
        auto full = row["name"].get<std::string>();
        name = run->path + full.substr(full.rfind('/'));
      }
      if (found == sha256) return {};
      return configuration_error("ambiguous",
                                 "failed to choose a candidate: " + prefix + " begins " + sha256 +
                                     " and " + found,
                                 "give more digits");
    });
    KM_TRY(read);
  }
  if (name.empty())
    return configuration_error("not_found",
                               "failed to find a candidate whose SHA-256 begins with " + prefix,
                               "`kernelmill query '' RUN --fields name,code_sha256` lists them");
  return locate(name, root);
}

class opener {
public:
  explicit opener(std::string root) : root_(std::move(root)) {}

  expected<side_of_pair> open(const std::string& what) {
    auto at = locate(what, root_);
    if (!at && is_digits_of_hash(what)) at = turn_of_candidate(what, root_);
    KM_TRY(at);
    side_of_pair result{nullptr, std::move(*at), {}};
    auto& run = runs_[result.at.run.path];
    if (!run) {
      auto opened = read_run(result.at.run);
      KM_TRY(opened);
      run = std::move(*opened);
    }
    result.run = run;
    result.name = run->where.name;
    const auto& name = result.at.name;
    if (!result.at.whole_run) result.name += fmt::format("/g{}", name.group);
    if (name.member) result.name += fmt::format(".e{}", *name.member);
    if (name.turn) result.name += fmt::format(".t{}", *name.turn);
    return result;
  }

private:
  expected<std::shared_ptr<opened_run>> read_run(const run_directory& where) {
    auto& from = stores_[where.store];
    if (!from) {
      auto opened = open_for_reading(where);
      KM_TRY(opened);
      from = std::make_shared<const store>(std::move(*opened));
    }
    auto config = read_json(where.config_file());
    KM_TRY(config);
    auto manifest = read_json(where.manifest_file());
    KM_TRY(manifest);
    return std::make_shared<opened_run>(opened_run{where, from, artifact_store{where.artifacts},
                                                   std::move(*config), std::move(*manifest)});
  }

  std::string root_;
  std::map<std::string, std::shared_ptr<opened_run>> runs_;
  std::map<std::string, std::shared_ptr<const store>> stores_; ///< by their folder
};

tl::unexpected<error> nothing_there(const side_of_pair& x) {
  return configuration_error("not_found",
                             "failed to find '" + x.name + "': nothing of that name is stored",
                             "`kernelmill show " + x.at.run.path + "` lists what is there");
}

// -- the documents --------------------------------------------------------------------------------

expected<study::compared_run> scores_of(const opened_run& x) {
  study::compared_run result;
  auto fork = fork_of(x.manifest);
  auto scores = study::read_scores(*x.lineage, x.where.name, fork ? fork->turns : 0);
  KM_TRY(scores);
  result.scores = std::move(*scores);
  for (const auto& task : x.manifest.value("tasks", json::array()))
    result.tasks[task.value("id", std::string{})] = {task.value("digest", std::string{}),
                                                     task.value("split", std::string{})};
  return result;
}

json environment_of(const opened_run& x) {
  json result = json::object();
  for (const auto* key : {"toolchain", "slots", "fork"})
    result[key] = x.manifest.value(key, json(nullptr));
  for (const auto& layer : x.manifest.value("sandbox", json::array()))
    result["sandbox." + layer.value("name", std::string{})] = layer.value("state", std::string{});
  return result;
}

/// What makes figures of the two mean different things.
json notes_on(const json& configuration, const json& result) {
  json notes = json::array();
  auto any = [&](std::initializer_list<const char*> sections) {
    for (const auto& x : configuration)
      for (const auto* section : sections)
        if (x["key"].get<std::string>().starts_with(section)) return true;
    return false;
  };
  if (any({"reward.", "governance."}))
    notes.push_back(
        "the runs were rewarded by different rules: `kernelmill rescore` gives both the "
        "same ones");
  if (any({"evaluation.", "compile."}))
    notes.push_back("the runs were built or evaluated in different ways");
  if (result["tasks"]["compared"] == 0)
    notes.push_back("no task is in both runs: there is nothing to compare");
  else if (result["tasks"]["compared"] == 1)
    notes.push_back("one task has no interval: intervals are made by drawing tasks");
  return notes;
}

expected<json> runs_document(const side_of_pair& a, const side_of_pair& b,
                             const study::comparison_options& by) {
  auto x = scores_of(*a.run);
  KM_TRY(x);
  auto y = scores_of(*b.run);
  KM_TRY(y);
  json result = {
      {"configuration", study::config_differences(a.run->config, b.run->config)},
      {"environment", study::config_differences(environment_of(*a.run), environment_of(*b.run))}};
  auto scores = study::compare_scores(*x, *y, by);
  for (auto& [key, value] : scores.items()) result[key] = std::move(value);
  result["notes"] = notes_on(result["configuration"], result);
  return result;
}

expected<json> groups_document(const side_of_pair& a, const side_of_pair& b) {
  auto read = [](const side_of_pair& x) -> expected<stored_group> {
    auto group = read_group(*x.run->lineage, x.run->where.name, x.at.name.group);
    KM_TRY(group);
    if (group->episodes.empty()) return nothing_there(x);
    return group;
  };
  auto x = read(a);
  KM_TRY(x);
  auto y = read(b);
  KM_TRY(y);
  return study::compare_groups(*x, a.run->source(), *y, b.run->source());
}

expected<stored_episode> read_side(const side_of_pair& x) {
  auto episode =
      read_episode(*x.run->lineage, x.run->where.name, x.at.name.group, *x.at.name.member);
  KM_TRY(episode);
  if (episode->turns.empty() && !episode->end) return nothing_there(x);
  episode->member = *x.at.name.member;
  return episode;
}

expected<json> episodes_document(const side_of_pair& a, const side_of_pair& b) {
  auto x = read_side(a);
  KM_TRY(x);
  auto y = read_side(b);
  KM_TRY(y);
  return study::compare_episodes(a.at.name.group, *x, a.run->source(), b.at.name.group, *y,
                                 b.run->source());
}

expected<Message<wire::Record>> read_turn(const side_of_pair& x) {
  auto episode = read_side(x);
  KM_TRY(episode);
  for (auto& record : episode->turns)
    if (record.open()->getTurn().getTurn() == *x.at.name.turn) return std::move(record);
  return nothing_there(x);
}

expected<json> turns_document(const side_of_pair& a, const side_of_pair& b) {
  auto x = read_turn(a);
  KM_TRY(x);
  auto y = read_turn(b);
  KM_TRY(y);
  auto left = x->open(), right = y->open();
  auto groups = study::compare_turns({a.name, left->getTurn(), &a.run->artifacts, &a.run->config},
                                     {b.name, right->getTurn(), &b.run->artifacts, &b.run->config});
  KM_TRY(groups);
  return json{{"groups", std::move(*groups)}};
}

expected<study::comparison_options> options_of(const invocation& in) {
  study::comparison_options result;
  auto p = number_list<double>(in, "compare", "--p", 0);
  KM_TRY(p);
  auto k = number_list<uint64_t>(in, "compare", "--k", 1);
  KM_TRY(k);
  auto resamples = in.integer("--resamples", 100, 1'000'000);
  KM_TRY(resamples);
  auto seed = in.integer("--seed", 0, std::numeric_limits<int64_t>::max());
  KM_TRY(seed);
  result.p = std::move(*p);
  result.k = std::move(*k);
  result.held_out = in.has("--held-out");
  result.how = {static_cast<uint32_t>(*resamples), static_cast<uint64_t>(*seed)};
  return result;
}

expected<int> compare(const invocation& in) {
  auto by = options_of(in);
  KM_TRY(by);
  auto limit = in.integer("--limit", 0, 1'000'000);
  KM_TRY(limit);
  opener open{in.value("--root")};
  auto a = open.open(in.value("A"));
  KM_TRY(a);
  auto b = open.open(in.value("B"));
  KM_TRY(b);
  std::string kind = kind_of(a->at);
  if (kind != kind_of(b->at))
    return compare_usage(
        fmt::format("A is one of the {} and B one of the {}", kind, kind_of(b->at)),
        "compare two runs, two groups, two episodes, or two turns");
  if (by->held_out && kind != "runs")
    return compare_usage("--held-out belongs to runs", "leave it out");
  json document = {{"kind", kind}, {"a", {{"name", a->name}}}, {"b", {{"name", b->name}}}};
  for (auto* x : {&*a, &*b}) document[x == &*a ? "a" : "b"]["directory"] = x->run->where.path;
  auto found = kind == "runs"       ? runs_document(*a, *b, *by)
               : kind == "groups"   ? groups_document(*a, *b)
               : kind == "episodes" ? episodes_document(*a, *b)
                                    : turns_document(*a, *b);
  KM_TRY(found);
  for (auto& [key, value] : found->items()) document[key] = std::move(value);
  if (a->name == b->name) // two runs of one name: their folders tell them apart
    for (const auto* side : {"a", "b"})
      document[side]["name"] = document[side]["directory"].get<std::string>() +
                               a->name.substr(a->run->where.name.size());
  if (in.json)
    cli::print_json(document);
  else
    cli::print(comparison_text(document, in.colour_out, static_cast<size_t>(*limit)));
  return 0;
}

} // namespace

cli::command compare_row() {
  return {"compare",
          "Shows what differs between two runs, groups, episodes, turns or candidates.",
          "kernelmill compare runs/base runs/checkpoint --held-out\n"
          "kernelmill compare first/g3.e0 first/g3.e1\n"
          "kernelmill compare first/g3.e1.t0 first/g3.e1.t2 --json",
          "Runs are compared task by task: the mean difference of B from A in reward, fast_p, "
          "pass@k and "
          "speedup,\n"
          "with 95 % intervals by a bootstrap over the tasks, and the tasks that B wins and loses. "
          "Turns "
          "are compared in\n"
          "groups: configuration, prompt, answer, code, compiler, verdict, cases, times, reward, "
          "findings. Of episodes and\n"
          "groups the best turns are compared.",
          {{"A",
            "RUN, RUN/g3, RUN/g3.e1, RUN/g3.e1.t2, or the first digits of a candidate's SHA-256.",
            true,
            false,
            completes::run,
            {}},
           {"B", "The same.", true, false, completes::run, {}}},
          {flag("--held-out", "Of runs: tasks of the split dev alone."),
           {"--p", "LIST", "Of runs: values of p for fast_p.", "0,1,1.5,2", false, {}, nothing},
           {"--k", "LIST", "Of runs: values of k for pass@k.", "1,2,4", false, {}, nothing},
           {"--resamples", "N", "Of runs: draws of the bootstrap.", "10000", false, {}, nothing},
           {"--seed", "N", "Of runs: seed of the bootstrap.", "1", false, {}, nothing},
           {"--limit", "N", "Of runs: rows of the table of tasks.", "20", false, {}, nothing},
           runs_root()},
          compare};
}

} // namespace kernelmill::commands
