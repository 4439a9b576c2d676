#include "launch/node/node_retrieval.hpp"

#include "launch/config/paths.hpp"
#include "launch/node/node_embedder.hpp"
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
  return x.contract == contract_kind::torch ? x.torch.code == y.torch.code
                                            : x.declaration() == y.declaration();
}

void guard_tasks(leak_guard& guard, const std::vector<std::shared_ptr<const task>>& tasks) {
  for (auto& what : tasks) {
    if (auto baseline = read_in_folder(what->directory, "baseline.cpp"))
      guard.add_solution(what->id, *baseline);
    for (auto& other : tasks)
      if (other->id < what->id && ask_for_the_same(*other, *what))
        guard.relate(what->id, other->id);
  }
}

} // namespace

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
  std::map<std::string_view, std::string_view> splits; // of tasks: an index may have many more
  for (const auto& one : tasks) splits.emplace(one->id, one->split);
  result.index->name_splits([&](const index_entry& x) -> std::string {
    auto named = splits.find(x.task);
    if (named != splits.end()) return exports::split_of(x.task, named->second);
    return x.origin.empty() ? exports::split_of(x.task, "") : "train"; // a corpus holds nothing out
  });
  guard_tasks(result.index->guard(), tasks);
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
  kernel.speedup = facts.getEvaluation().getTiming().getSpeedup().getLow();
  return kernel;
}

shown_task_map shown_tasks(const std::vector<std::shared_ptr<const task>>& tasks,
                           const run_rights& rights) {
  shown_task_map result;
  for (const auto& one : tasks) {
    const auto* right = rights.find(one->id);
    bool may = right && right->train.allowed;
    result[one->id] = {exports::split_of(one->id, one->split), may ? right->train.source : "",
                       !may};
  }
  return result;
}

void feed_verified(kernel_feed& feed, const artifact_store& artifacts, const shown_task_map& shown,
                   wire::Record::Reader record) {
  if (!record.isTurn()) return;
  auto kernel = verified_of(artifacts, record.getTurn());
  if (!kernel) return;
  auto task = shown.find(kernel->task);
  auto as = task == shown.end() ? shown_task{} : task->second;
  kernel->split = std::move(as.split);
  kernel->rights_source = std::move(as.source);
  kernel->hidden = as.hidden;
  feed.push(std::move(*kernel));
}

} // namespace kernelmill
