#include "launch/node/run_rights.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "launch/config/paths.hpp"
#include "retrieval/corpora/knowledge.hpp"
#include "storage/files.hpp"

namespace kernelmill {

namespace {

namespace fs = std::filesystem;
using rights_json = nlohmann::ordered_json;

std::vector<std::string> licence_folders() {
  std::vector<std::string> result;
  if (auto home = data_directory(); !home.empty()) result.push_back(home + "/configs/licences");
  // Beside the user's tasks.
  if (auto own = user_tasks_root(); !own.empty())
    result.push_back(fs::path{own}.parent_path().string() + "/licences");
  return result;
}

const char* word_of(const licence_decision& x) {
  if (x.allowed) return x.terms.empty() ? "yes" : "yes, on its terms";
  return x.terms.empty() ? "no" : "once its terms are accepted";
}

std::string refusal_line(const licence_decision& x) {
  return "exports for training will be refused: " + x.reason + " (" + x.hint + ")";
}

std::string source_of_cards(const loaded_index& index) {
  static const auto ours = [] {
    auto cards = load_cards(default_corpus());
    return cards ? corpus_digest(*cards) : std::string{};
  }();
  return !ours.empty() && index.manifest().corpus_digest == ours ? "kernelmill-cards" : "own-cards";
}

} // namespace

expected<licence_table> installed_licences() {
  std::vector<licence> all;
  for (const auto& folder : licence_folders()) {
    std::error_code code;
    std::vector<std::string> files;
    for (const auto& x : fs::directory_iterator{folder, code})
      if (x.path().extension() == ".json") files.push_back(x.path().string());
    std::sort(files.begin(), files.end());
    for (const auto& file : files) {
      auto text = read_file(file);
      KM_TRY(text);
      auto one = parse_licence(*text, file);
      KM_TRY(one);
      all.push_back(std::move(*one));
    }
  }
  return licence_table::of(std::move(all));
}

const task_rights* run_rights::find(const std::string& task) const {
  auto i = std::find_if(tasks.begin(), tasks.end(),
                        [&](const task_rights& x) { return x.what.id == task; });
  return i == tasks.end() ? nullptr : &*i;
}

run_rights rights_of(const licence_table& licences, const std::vector<origin_facts>& tasks,
                     std::set<std::string> accepted) {
  run_rights result;
  for (const auto& x : tasks)
    result.tasks.push_back({x, decide(licences, x, purpose::evaluate, accepted),
                            decide(licences, x, purpose::train, accepted),
                            decide(licences, x, purpose::share, accepted)});
  result.accepted = std::move(accepted);
  return result;
}

std::optional<answer_rights> rights_of_answers(const licence_table& licences,
                                               const std::string& model, const std::string& named,
                                               const std::set<std::string>& accepted) {
  auto train = decide_answers(licences, model, named, purpose::train, accepted);
  auto share = decide_answers(licences, model, named, purpose::share, accepted);
  if (!train || !share) return std::nullopt;
  return answer_rights{model, std::move(*train), std::move(*share)};
}

origin_facts origin_of(const task& x) {
  return {x.id, x.digest, x.source};
}

std::vector<origin_facts> origins_of(const rights_json& manifest) {
  std::vector<origin_facts> result;
  for (const auto& x : manifest.value("tasks", rights_json::array()))
    result.push_back({x.value("id", std::string{}), x.value("digest", std::string{}),
                      x.value("source", std::string{})});
  return result;
}

expected<void> may_run(const run_rights& x) {
  for (const auto& one : x.tasks)
    if (!one.evaluate.allowed)
      return configuration_error(
          "licence_forbids", "failed to start the run: " + one.evaluate.reason, one.evaluate.hint);
  return {};
}

// A corpus has thousands of rows: one line stands for all whose ids begin with their source, but
// for those of which their tasks say more.
rights_json retrieval_json(const licence_table& licences, const loaded_index* index, bool live) {
  rights_json result = {{"live", live}, {"cards", nullptr}, {"examples", rights_json::array()}};
  if (!index) return result;
  if (index->manifest().cards > 0) result["cards"] = source_of_cards(*index);
  std::set<std::string> corpora;
  auto& examples = result["examples"];
  for (size_t i = 0; i < index->size(); ++i) {
    const auto& x = index->entry(i);
    if (x.kind != "kernel") continue;
    auto start = "kernel:" + x.rights_source + "/";
    bool of_corpus = !x.rights_source.empty() && x.id.starts_with(start);
    if (of_corpus && corpora.insert(start).second)
      examples.push_back({{"id", start + "*"}, {"task", ""}, {"source", x.rights_source}});
    origin_facts what{x.task, {}, x.rights_source};
    auto train = decide(licences, what, purpose::train, {});
    auto share = decide(licences, what, purpose::share, {});
    auto said = [&](const licence_decision& may) {
      return may.allowed || (of_corpus && may.source == x.rights_source);
    };
    if (said(train) && said(share)) continue;
    examples.push_back({{"id", x.id}, {"task", x.task}, {"source", x.rights_source}});
  }
  return result;
}

namespace {

/// Tasks of one source and one answer, in the order of the first.
std::vector<std::pair<const task_rights*, size_t>> by_source(const run_rights& x) {
  std::vector<std::pair<const task_rights*, size_t>> result;
  for (const auto& one : x.tasks) {
    auto i = std::find_if(result.begin(), result.end(), [&](const auto& known) {
      const auto& a = *known.first;
      return a.train.source == one.train.source && a.train.allowed == one.train.allowed &&
             a.share.allowed == one.share.allowed;
    });
    if (i == result.end())
      result.emplace_back(&one, 1);
    else
      ++i->second;
  }
  return result;
}

} // namespace

rights_json to_json(const run_rights& x) {
  auto result = rights_json::array();
  for (const auto& [one, tasks] : by_source(x))
    result.push_back({{"source", one->train.source},
                      {"licence", one->train.licence},
                      {"tasks", tasks},
                      {"evaluate", one->evaluate.allowed},
                      {"train", one->train.allowed},
                      {"share", one->share.allowed},
                      {"reason", one->train.reason}});
  for (const auto& one : x.answers)
    result.push_back({{"source", one.train.source},
                      {"licence", one.train.licence},
                      {"model", one.model},
                      {"train", one.train.allowed},
                      {"share", one.share.allowed},
                      {"reason", one.train.reason}});
  return result;
}

std::vector<std::string> lines_of(const run_rights& x) {
  std::vector<std::string> result;
  for (const auto& [one, tasks] : by_source(x)) {
    auto source = one->train.source.empty() ? "unknown" : one->train.source;
    result.push_back(fmt::format("licence of {} ({} task{}): {}; train: {}; share: {}", source,
                                 tasks, tasks == 1 ? "" : "s",
                                 one->train.licence.empty() ? "unknown" : one->train.licence,
                                 word_of(one->train), word_of(one->share)));
    if (!one->train.allowed) result.push_back(refusal_line(one->train));
  }
  for (const auto& one : x.answers) {
    result.push_back(fmt::format("licence of answers by {}: {}; train: {}; share: {}", one.model,
                                 one.train.licence, word_of(one.train), word_of(one.share)));
    if (!one.train.allowed) result.push_back(refusal_line(one.train));
  }
  return result;
}

} // namespace kernelmill
