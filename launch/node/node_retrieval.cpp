#include "launch/node/node_retrieval.hpp"

#include <set>

#include <fmt/format.h>

#include "launch/config/paths.hpp"
#include "launch/node/node_embedder.hpp"
#include "messages/base/clock.hpp"
#include "messages/folder_file.hpp"
#include "storage/export/split.hpp"

namespace kernelmill {

namespace {

// Two tasks of one family with one declaration ask for the same function under different verbs;
// what solves the one solves the other. A problem in Python has no declaration, but its text.
bool ask_for_the_same(const task& x, const task& y) {
  if (x.operator_family != y.operator_family ||
      (x.contract == contract_kind::torch) != (y.contract == contract_kind::torch))
    return false;
  // Problems in Python and programs ask by their texts.
  if (x.contract == contract_kind::program || y.contract == contract_kind::program)
    return x.contract == y.contract && x.prompt == y.prompt;
  return x.contract == contract_kind::torch ? x.torch.code == y.torch.code
                                            : x.declaration() == y.declaration();
}

// Another run may have had a task in another split: where they differ, dev wins.
void name_held_out(live_lines& lines, const std::vector<std::shared_ptr<const task>>& tasks) {
  std::set<std::string> held_out;
  for (const auto& one : tasks)
    if (exports::split_of(one->id, one->split) == "dev") held_out.insert(one->id);
  for (auto& x : lines.kernels)
    if (held_out.contains(x.example.task)) x.example.split = "dev";
}

expected<void> open_live_kernels(node_retrieval& to, const retrieval_section& config,
                                 const std::vector<std::shared_ptr<const task>>& tasks) {
  auto lines = read_live_kernels(config.index);
  KM_TRY(lines);
  to.warning = warning_of(*lines, config.index);
  name_held_out(*lines, tasks);
  KM_TRY(take_up_live_kernels(*to.index, *lines));
  if (config.live) {
    auto file = live_kernel_writer::open(config.index, *lines);
    KM_TRY(file);
    to.file = std::make_shared<live_kernel_writer>(std::move(*file));
  }
  to.retracted = std::move(lines->retracted);
  return {};
}

} // namespace

std::vector<std::string> baselines_of(const task& x) {
  std::vector<std::string> result;
  for (const char* file : {"baseline.cpp", "baseline.cu", "baseline.hip"})
    if (auto text = read_in_folder(x.directory, file)) result.push_back(std::move(*text));
  return result;
}

void know_tasks(loaded_index& index, const std::vector<std::shared_ptr<const task>>& tasks) {
  std::map<std::string_view, std::string_view> splits; // of tasks: an index may have many more
  for (const auto& one : tasks) splits.emplace(one->id, one->split);
  index.name_splits([&](const index_entry& x) -> std::string {
    auto named = splits.find(x.task);
    if (named != splits.end()) return exports::split_of(x.task, named->second);
    return x.origin.empty() ? exports::split_of(x.task, "") : "train"; // a corpus holds nothing out
  });
  auto& guard = index.guard();
  for (auto& what : tasks) {
    for (const auto& baseline : baselines_of(*what)) guard.add_solution(what->id, baseline);
    for (auto& other : tasks)
      if (other->id < what->id && ask_for_the_same(*other, *what))
        guard.relate(what->id, other->id);
  }
}

expected<node_retrieval> open_retrieval(const retrieval_section& config,
                                        const std::vector<std::shared_ptr<const task>>& tasks) {
  node_retrieval result;
  if (!config.enabled || config.count == 0) return result;
  auto corpus = config.corpus.empty() ? default_corpus() : config.corpus;
  auto embedding = make_embedder(config.embedder);
  KM_TRY(embedding);
  // An index says itself how the built-in embedder made it.
  bool as_built = config.embedder.kind == "hashed" && config.embedder.dimension == 0;
  auto index = config.index.empty() ? loaded_index::in_memory(corpus, {}, *embedding)
                                    : open_index(config.index, as_built ? nullptr : *embedding, {});
  KM_TRY(index);
  result.index = std::make_shared<loaded_index>(std::move(*index));
  result.index->weigh({config.code_weight, config.words_weight});
  know_tasks(*result.index, tasks);
  if (!config.index.empty()) KM_TRY(open_live_kernels(result, config, tasks));
  result.feed = std::make_shared<kernel_feed>();
  result.live = config.live;
  return result;
}

namespace {

std::string language_of(wire::TurnFacts::Reader facts) {
  if (facts.getContract() == to_string(contract_kind::torch)) return "python";
  return facts.getBackend() == "cpu" ? "cpp" : facts.getBackend().cStr();
}

} // namespace

std::optional<kernel_example> verified_of(const artifact_store& artifacts,
                                          wire::TurnRecord::Reader turn) {
  if (turn.getVerdict().getOutcome() != wire::Outcome::ACCEPTED) return std::nullopt;
  auto source = artifacts.candidate(turn);
  if (!source) return std::nullopt;
  auto facts = turn.getFacts();
  kernel_example kernel;
  kernel.task = turn.getEpisode().getTask().cStr();
  kernel.operator_family = facts.getOperatorFamily().cStr();
  kernel.backend = facts.getBackend().cStr();
  kernel.language = language_of(facts);
  kernel.source = std::move(*source);
  kernel.id = turn.getTurnId().cStr();
  kernel.device = facts.getEvaluation().getDevice().cStr();
  if (auto at = turn.getCommittedAt(); at > 0)
    kernel.date = utc_text(static_cast<std::time_t>(at)).substr(0, 10);
  kernel.origin = std::string{"run "} + turn.getEpisode().getRun().cStr();
  kernel.speedup = facts.getEvaluation().getTiming().getSpeedup().getLow();
  return kernel;
}

} // namespace kernelmill
