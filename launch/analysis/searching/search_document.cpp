#include "launch/analysis/searching/search_document.hpp"

#include <algorithm>
#include <map>

#include "launch/analysis/searching/story_text.hpp"
#include "messages/copied.hpp"
#include "messages/identity.hpp"
#include "storage/search_end.hpp"

namespace kernelmill::searching {

namespace {

using json = nlohmann::ordered_json;
using search::node_state;

constexpr size_t most_episodes = 10'000; // as many rows as any document of the page has

uint32_t generation_of(const std::string& episode) {
  auto name = parse_name(episode);
  return name ? name->group : 0;
}

uint32_t member_of_generation(const std::string& episode) {
  auto name = parse_name(episode);
  return name && name->member ? *name->member : 0;
}

json speedup_of(const search::node& x) {
  if (!(x.low > 0)) return nullptr;
  return {{"estimate", x.estimate}, {"low", x.low}, {"high", x.high}};
}

json name_or_null(const std::string& x) {
  return x.empty() ? json(nullptr) : json(x);
}

/// The finished generations as their strategy saw them. An episode that left no record is lost.
std::vector<search::node> finished_nodes(const search_story& story, uint32_t width) {
  std::vector<search::node> result(size_t{story.finished} * width);
  for (const auto& x : story.episodes) {
    auto at = size_t{generation_of(x.name)} * width + member_of_generation(x.name);
    if (at >= result.size()) continue;
    result[at] = x.what;
    if (auto parent = parse_name(x.parent); parent && parent->member)
      result[at].parent = parent->group * width + *parent->member;
  }
  return result;
}

/// By position among the finished nodes.
std::string name_of_node(uint32_t position, uint32_t width) {
  return short_name({{}, {}, position / width, position % width});
}

class document_maker {
public:
  document_maker(const search_story& story, const search_plan& plan, const search_progress& now)
      : story_(story), plan_(plan), now_(now), width_(plan.strategy.width),
        nodes_(finished_nodes(story, width_)), next_(search::choose(plan.strategy, nodes_)) {
    for (uint32_t i = 0; i < story.episodes.size(); ++i) at_[story.episodes[i].name] = i;
    open_.insert(story.open.begin(), story.open.end());
  }

  json made() const {
    auto stored = story_json(story_);
    auto used = stored["used"];
    used["dollars"] = plan_.budget.dollars_of(story_.used);
    auto rows = tree();
    auto numbers = counts(rows);
    auto left_out = rows.size() > most_episodes ? rows.size() - most_episodes : 0;
    rows.erase(rows.begin(), rows.begin() + static_cast<long>(left_out));
    return {{"task", plan_.task},
            {"strategy", search::to_string(plan_.strategy.kind)},
            {"state", state()},
            {"generations", story_.finished},
            {"planned_generations", plan_.generations},
            {"width", width_},
            {"islands", islands()},
            {"episodes", std::move(numbers)},
            {"used", std::move(used)},
            {"budget", budget()},
            {"best_so_far", std::move(stored["best_so_far"])},
            {"winner", is_told() ? now_.ended["winner"] : json(nullptr)},
            {"frontier", {{"generation", story_.finished}, {"starts", starts()}}},
            {"elites", elites()},
            {"left_out", left_out},
            {"tree", std::move(rows)}};
  }

private:
  uint32_t islands() const {
    bool has = plan_.strategy.kind == search::strategy_kind::islands;
    return has ? plan_.strategy.islands : 0;
  }

  bool is_told() const { return is_end_of_search(now_.ended, story_.used.turns); }

  std::string state() const {
    if (now_.live) return "running";
    bool all = story_.finished >= plan_.generations || !plan_.budget.allows(story_.used);
    return all || is_told() ? "finished" : "interrupted";
  }

  std::string outcome_of(const search::searched_episode& x, uint32_t at) const {
    if (open_.contains(at)) return now_.running.contains(x.name) ? "running" : "interrupted";
    if (x.what.state == node_state::lost) return "lost";
    if (x.what.state == node_state::verified) return "verified";
    return is_unchanged(x.category) ? "unchanged" : "failed";
  }

  json row_of(const std::string& episode) const {
    auto member = member_of_generation(episode);
    return {{"episode", episode},
            {"generation", generation_of(episode)},
            {"island", islands() > 0 ? json(member % islands()) : json(nullptr)}};
  }

  /// Parents before their children.
  std::vector<json> tree() const {
    std::vector<json> rows;
    for (uint32_t i = 0; i < story_.episodes.size(); ++i) {
      const auto& x = story_.episodes[i];
      auto row = row_of(x.name);
      row["turn"] = turn_name(x);
      row["parent"] = name_or_null(x.parent);
      row["outcome"] = outcome_of(x, i);
      row["category"] = x.category;
      row["niche"] = x.source.empty() ? json(nullptr) : json(x.what.niche);
      row["speedup"] = speedup_of(x.what);
      row["idea"] = x.idea;
      rows.push_back(std::move(row));
    }
    for (const auto& name : now_.running)
      if (!at_.contains(name)) rows.push_back(begun(name));
    return rows;
  }

  /// An episode of which nothing is stored yet. The generations before it tell its parent.
  json begun(const std::string& name) const {
    auto row = row_of(name);
    auto member = member_of_generation(name);
    bool known = generation_of(name) == story_.finished && member < next_.size();
    auto parent = known ? next_[member].parent : std::nullopt;
    row["turn"] = nullptr;
    row["parent"] = parent ? json(name_of_node(*parent, width_)) : json(nullptr);
    row["outcome"] = "running";
    row["category"] = "";
    row["niche"] = nullptr;
    row["speedup"] = nullptr;
    row["idea"] = "";
    return row;
  }

  static json counts(const std::vector<json>& rows) {
    json result = {{"verified", 0}, {"failed", 0},  {"unchanged", 0},
                   {"lost", 0},     {"running", 0}, {"interrupted", 0}};
    for (const auto& row : rows) {
      auto& count = result[row["outcome"].get_ref<const std::string&>()];
      count = count.get<uint64_t>() + 1;
    }
    result["all"] = rows.size();
    return result;
  }

  /// Null: no limit.
  json budget() const {
    auto limit = [](auto x) { return x > 0 ? json(x) : json(nullptr); };
    return {{"turns", uint64_t{plan_.generations} * width_ * plan_.turns},
            {"tokens", limit(plan_.budget.tokens)},
            {"slot_seconds", limit(plan_.budget.slot_seconds)},
            {"dollars", limit(plan_.budget.dollars)}};
  }

  /// What the episodes of the first generation that has not ended begin with, the fastest first.
  json starts() const {
    std::map<std::optional<uint32_t>, uint32_t> episodes;
    for (const auto& x : next_) ++episodes[x.parent];
    std::vector<std::pair<std::optional<uint32_t>, uint32_t>> order(episodes.begin(),
                                                                    episodes.end());
    auto low = [&](std::optional<uint32_t> i) { return i ? nodes_[*i].low : -1; };
    std::stable_sort(order.begin(), order.end(),
                     [&](const auto& a, const auto& b) { return low(a.first) > low(b.first); });
    auto result = json::array();
    for (const auto& [parent, count] : order)
      result.push_back({{"parent", parent ? json(name_of_node(*parent, width_)) : json(nullptr)},
                        {"niche", parent ? json(nodes_[*parent].niche) : json(nullptr)},
                        {"speedup", parent ? speedup_of(nodes_[*parent]) : json(nullptr)},
                        {"episodes", count}});
    return result;
  }

  json elites() const {
    auto result = json::array();
    if (islands() == 0) return result;
    auto all = search::islands_of(plan_.strategy, nodes_);
    for (uint32_t i = 0; i < all.size(); ++i)
      for (const auto& [niche, at] : all[i])
        result.push_back({{"island", i},
                          {"niche", niche},
                          {"episode", name_of_node(at, width_)},
                          {"speedup", speedup_of(nodes_[at])}});
    return result;
  }

  const search_story& story_;
  const search_plan& plan_;
  const search_progress& now_;
  const uint32_t width_;
  const std::vector<search::node> nodes_; ///< of finished generations
  const std::vector<search::start> next_; ///< of the generation after these
  std::map<std::string, uint32_t> at_;    ///< positions of episodes
  std::set<uint32_t> open_;
};

search_plan read_plan(const json& config, search::strategy_kind kind) {
  auto section = [&](const char* name) { return config.value(name, json::object()); };
  auto from = section("search"), tasks = section("tasks");
  search_plan x;
  if (auto ids = tasks.value("ids", json::array()); !ids.empty()) x.task = ids[0];
  x.generations = tasks.value("groups", x.generations);
  bool tools = section("episode").value("mode", std::string{}) == "tools";
  if (!tools) x.turns = tasks.value("max_turns", x.turns);
  auto& how = x.strategy;
  how.kind = kind;
  how.seed = section("run").value("seed", how.seed);
  how.width = std::max(tasks.value("group_size", how.width), 1u);
  how.beam = from.value("beam", how.beam);
  how.islands = std::max(from.value("islands", how.islands), 1u);
  how.migration = from.value("migration", how.migration);
  how.exploration = from.value("exploration", how.exploration);
  how.fresh = from.value("fresh", how.fresh);
  x.budget = {from.value("gpu_minutes", 0.0) * 60, from.value("tokens", uint64_t{0}),
              from.value("dollars", 0.0), from.value("prompt_price", 0.0),
              from.value("completion_price", 0.0)};
  return x;
}

} // namespace

std::optional<search_plan> plan_of(const json& config) {
  try {
    auto word = config.value(json::json_pointer{"/search/strategy"}, std::string{"off"});
    if (auto kind = search::strategy_of(word)) return read_plan(config, *kind);
  } catch (const json::exception&) { // of another version
  }
  return std::nullopt;
}

json search_document(const search_story& story, const search_plan& plan,
                     const search_progress& now) {
  return document_maker{story, plan, now}.made();
}

} // namespace kernelmill::searching
