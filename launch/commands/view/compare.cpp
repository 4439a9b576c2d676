// `kernelmill compare`: what differs between two runs, groups, episodes, turns or candidates.

#include <map>
#include <memory>

#include <fmt/format.h>

#include "launch/analysis/study/comparison.hpp"
#include "launch/analysis/study/turn_query.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/place.hpp"
#include "launch/commands/run_view.hpp"
#include "launch/commands/stored_runs.hpp"
#include "launch/commands/view/compare_text.hpp"
#include "launch/commands/view/number_lists.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

// -- what is compared -----------------------------------------------------------------------------

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

  expected<study::compared_side> open(const std::string& what) {
    auto at = locate(what, root_);
    if (!at && is_digits_of_hash(what)) at = turn_of_candidate(what, root_);
    KM_TRY(at);
    auto& run = runs_[at->run.path];
    if (!run) {
      auto opened = read(at->run);
      KM_TRY(opened);
      run = std::move(*opened);
    }
    return study::compared_side{run, at->name, at->whole_run};
  }

private:
  expected<std::shared_ptr<const study::opened_run>> read(const run_directory& where) {
    auto& from = stores_[where.store];
    if (!from) {
      auto opened = open_for_reading(where);
      KM_TRY(opened);
      from = std::make_shared<const store>(std::move(*opened));
    }
    return study::read_run(where, from);
  }

  std::string root_;
  std::map<std::string, std::shared_ptr<const study::opened_run>> runs_;
  std::map<std::string, std::shared_ptr<const store>> stores_; ///< by their folder
};

expected<study::comparison_options> options_of(const invocation& in) {
  study::comparison_options result;
  auto p = number_list<double>(in, "compare", "--p", 0);
  KM_TRY(p);
  auto k = number_list<uint64_t>(in, "compare", "--k", 1);
  KM_TRY(k);
  auto draws = in.integer("--draws", 1000, 1'000'000);
  KM_TRY(draws);
  auto seed = in.integer("--seed", 0, std::numeric_limits<int64_t>::max());
  KM_TRY(seed);
  result.p = std::move(*p);
  result.k = std::move(*k);
  result.held_out = in.has("--held-out");
  result.how = {static_cast<uint32_t>(*draws), static_cast<uint64_t>(*seed)};
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
  auto document = study::compare_sides(*a, *b, *by);
  KM_TRY(document);
  if (in.json)
    cli::print_json(*document);
  else
    cli::print(comparison_text(*document, in.colour_out, static_cast<size_t>(*limit)));
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
          "with 95 % intervals from six tasks on, and the tasks that B wins and loses. "
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
          {flag("--held-out", "For runs: only tasks of the split dev."),
           {"--p", "LIST", "For runs: values of p for fast_p.", "0,1,1.5,2", false, {}, nothing},
           {"--k", "LIST", "For runs: values of k for pass@k.", "1,2,4", false, {}, nothing},
           {"--draws",
            "N",
            "For runs of more than 13 tasks: subsets that the intervals are made of.",
            "10000",
            false,
            {},
            nothing},
           {"--seed", "N", "For runs: seed of these draws.", "1", false, {}, nothing},
           {"--limit", "N", "For runs: rows of the table of tasks.", "20", false, {}, nothing},
           runs_root()},
          compare};
}

} // namespace kernelmill::commands
