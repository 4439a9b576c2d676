#include "launch/analysis/searching/search_story.hpp"

#include <algorithm>
#include <set>

#include "launch/analysis/searching/search_document.hpp"
#include "messages/copied.hpp"
#include "storage/lineage/group_reader.hpp"

namespace kernelmill::searching {

namespace {

/// Puts what lies elsewhere into the turn; what is lost stays away.
void fill_in(wire::TurnRecord::Builder to, wire::TurnRecord::Reader from,
             const artifact_store& texts) {
  if (auto completion = texts.text(from.getCompletion().getText()))
    to.getCompletion().getText().setInline(*completion);
  if (auto candidate = texts.candidate(from)) to.getCandidate().setInline(*candidate);
}

search::searched_episode episode_of(uint32_t group, const stored_episode& from,
                                    const artifact_store* texts) {
  auto history = build<wire::EpisodeHistory>([&](wire::EpisodeHistory::Builder x) {
    auto turns = x.initTurns(static_cast<unsigned>(from.turns.size()));
    for (unsigned i = 0; i < turns.size(); ++i) {
      auto view = from.turns[i].open();
      turns.setWithCaveats(i, view->getTurn());
      if (texts != nullptr) fill_in(turns[i], view->getTurn(), *texts);
    }
  });
  return search::searched(*history.open(), short_name({{}, {}, group, from.member}), {});
}

/// Whether an episode is the best of those up to itself.
bool improves(const search_story& x, const search::node& what) {
  if (what.state != search::node_state::verified) return false;
  if (x.improvements.empty()) return true;
  return what.low > x.episodes[x.improvements.back().episode].what.low;
}

void add(search_story& to, search::searched_episode x) {
  to.used += x.cost;
  auto& count = x.what.state == search::node_state::verified ? to.verified
                : x.what.state == search::node_state::failed ? to.failed
                                                             : to.lost;
  ++count;
  to.unchanged += x.what.state == search::node_state::failed && is_unchanged(x.category);
  bool better = improves(to, x.what);
  to.episodes.push_back(std::move(x));
  if (better) to.improvements.push_back({static_cast<uint32_t>(to.episodes.size() - 1), to.used});
}

expected<search_story> read(const store& from, const std::string& run,
                            const artifact_store* texts) {
  search_story result;
  auto visit = [&](const stored_group& group) -> expected<void> {
    ++result.generations;
    result.finished += group.end.has_value();
    for (const auto& x : group.episodes) {
      if (!x.end) result.open.push_back(static_cast<uint32_t>(result.episodes.size()));
      add(result, episode_of(group.group, x, texts));
    }
    return {};
  };
  KM_TRY(for_each_group(from, run, visit));
  return result;
}

} // namespace

std::vector<uint32_t> search_story::fastest() const {
  std::vector<uint32_t> result;
  std::set<std::string> seen;
  for (uint32_t i = 0; i < episodes.size(); ++i)
    if (episodes[i].what.state == search::node_state::verified &&
        seen.insert(episodes[i].what.sha256).second)
      result.push_back(i);
  std::stable_sort(result.begin(), result.end(), [&](uint32_t a, uint32_t b) {
    return episodes[a].what.low > episodes[b].what.low;
  });
  return result;
}

expected<search_story> read_story(const store& from, const std::string& run) {
  return read(from, run, nullptr);
}

expected<search_story> read_whole_story(const store& from, const std::string& run,
                                        const artifact_store& texts) {
  return read(from, run, &texts);
}

std::string turn_name(const search::searched_episode& x) {
  return x.name + ".t" + std::to_string(x.turn);
}

} // namespace kernelmill::searching
