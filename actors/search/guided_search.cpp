#include "actors/search/guided_search.hpp"

#include <chrono>
#include <utility>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include "actors/snapshots.hpp"
#include "messages/identity.hpp"

namespace kernelmill {

namespace {

constexpr auto read_deadline = std::chrono::minutes{2}; // as for a commit: the disk may be slow

std::string episode_name(uint32_t group, uint32_t member) {
  return short_name({{}, {}, group, member});
}

} // namespace

// -- what is committed ----------------------------------------------------------------------------

uint32_t guided_search_state::generations() const {
  return static_cast<uint32_t>(nodes.size()) / settings.strategy.width;
}

/// Continues when all generations before this one were read.
void guided_search_state::after(uint32_t generation, continuation then) {
  if (generations() >= generation) return then(nullptr);
  waiters.push_back({generation, std::move(then)});
  if (missing == 0) read_next();
}

void guided_search_state::read_next() {
  auto width = settings.strategy.width;
  auto group = generations();
  auto number = ++reading; // answers of a read that has failed are not counted
  arriving.assign(width, {});
  missing = width;
  for (uint32_t member = 0; member < width; ++member) {
    auto query = build<wire::ReadQuery>([&](wire::ReadQuery::Builder x) {
      x.setRun(settings.run);
      x.setGroup(group);
      x.setMember(member);
    });
    self->request(lineage, read_deadline, atom::read_v, query)
        .then(
            [this, member, number](const Message<wire::EpisodeHistory>& history) {
              if (missing == 0 || number != reading) return;
              arriving[member] = history;
              if (--missing == 0) take_generation();
            },
            [this, number](caf::error& why) {
              if (missing == 0 || number != reading) return;
              missing = 0;
              settle(&why);
            });
  }
}

void guided_search_state::take_generation() {
  auto group = generations();
  for (uint32_t member = 0; member < arriving.size(); ++member) {
    auto one =
        search::searched(*arriving[member].open(), episode_name(group, member), settings.reports);
    if (auto parent = parse_name(one.parent); parent && parent->member && parent->group < group)
      one.what.parent = parent->group * settings.strategy.width + *parent->member;
    nodes.push_back(one.what);
    tried.push_back(std::move(one));
  }
  arriving.clear();
  settle(nullptr);
  if (!waiters.empty() && missing == 0) read_next();
}

/// Continues what has waited for the generations that are there; after an error all.
void guided_search_state::settle(const caf::error* why) {
  for (auto& x : std::exchange(waiters, {})) {
    if (why != nullptr || x.generation <= generations())
      x.then(why);
    else
      waiters.push_back(std::move(x));
  }
}

// -- what it tells --------------------------------------------------------------------------------

const std::vector<search::start>& guided_search_state::starts_of(uint32_t generation) {
  if (starts.size() <= generation) starts.resize(generation + 1);
  auto& result = starts[generation];
  if (result.empty())
    result = search::choose(settings.strategy,
                            std::span{nodes}.first(size_t{generation} * settings.strategy.width));
  return result;
}

Message<wire::SearchOpening> guided_search_state::opening(uint32_t group, uint32_t member) {
  auto finished = std::span{tried}.first(size_t{group} * settings.strategy.width);
  auto from = starts_of(group).at(member);
  return build<wire::SearchOpening>([&](wire::SearchOpening::Builder x) {
    if (from.parent) {
      x.initParents(1).set(0, tried[*from.parent].name);
      x.setBase(tried[*from.parent].source);
    }
    // Attempts that are to differ by chance alone are told nothing.
    if (settings.strategy.kind != search::strategy_kind::best_of_n)
      x.setText(search::search_prompt(finished, from.parent, settings.limits));
  });
}

bool guided_search_state::goes_on(uint32_t generation) const {
  search::search_cost used;
  for (size_t i = 0; i < size_t{generation} * settings.strategy.width; ++i) used += tried[i].cost;
  return settings.budget.allows(used);
}

Message<wire::Snapshot> guided_search_state::snapshot() const {
  uint64_t verified = 0;
  for (const auto& x : nodes) verified += x.state == search::node_state::verified;
  auto best = search::best_of(nodes);
  auto detail = best ? "best: " + tried[*best].name : std::string{"nothing is verified yet"};
  auto result = snapshot_of(
      "search", settings.run, search::to_string(settings.strategy.kind), detail,
      {{"generations", generations()}, {"candidates", nodes.size()}, {"verified", verified}});
  return with_numbers(result, {{"best_speedup_low", best ? nodes[*best].low : 0}});
}

// -- behavior -------------------------------------------------------------------------------------

search_actor::behavior_type guided_search(search_actor::stateful_pointer<guided_search_state> self,
                                          lineage_actor lineage, search_settings settings) {
  auto& state = self->state;
  state.lineage = std::move(lineage);
  state.settings = std::move(settings);
  return {
      [self](atom::status) { return signed_by(self, self->state.snapshot()); },
      [self](atom::query,
             const Message<wire::ReadQuery>& query) -> caf::result<Message<wire::SearchOpening>> {
        auto answer = self->make_response_promise<Message<wire::SearchOpening>>();
        auto view = query.open();
        auto group = view->getGroup();
        auto member = view->getMember();
        self->state.after(group, [self, answer, group, member](const caf::error* why) mutable {
          if (why != nullptr)
            answer.deliver(*why);
          else
            answer.deliver(self->state.opening(group, member));
        });
        return answer;
      },
      [self](atom::proceed, uint32_t generation) -> caf::result<bool> {
        auto answer = self->make_response_promise<bool>();
        self->state.after(generation, [self, answer, generation](const caf::error* why) mutable {
          if (why != nullptr)
            answer.deliver(*why);
          else
            answer.deliver(self->state.goes_on(generation));
        });
        return answer;
      },
  };
}

} // namespace kernelmill
