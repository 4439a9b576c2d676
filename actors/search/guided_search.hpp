#pragma once

// The SEARCH of a run whose groups are generations: tells each episode of a generation which
// candidate to improve. It reads the generations before from the lineage and stores nothing: what
// it chooses is a function of what is committed, so a search that was killed goes on as if it had
// not been.

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "actors/search/search_prompt.hpp"
#include "actors/search/searched_episode.hpp"
#include "actors/search/strategy.hpp"
#include "messages/actors.hpp"

namespace kernelmill {

struct search_settings {
  std::string run;
  search::strategy_settings strategy; ///< its width is the size of the run's groups
  search::search_budget budget;
  search::prompt_limits limits;
  search::report_form reports;
};

struct guided_search_state {
  using continuation = std::function<void(const caf::error* why)>; ///< null: all is there

  explicit guided_search_state(search_actor::pointer owner) : self(owner) {
    // nop
  }

  uint32_t generations() const;
  void after(uint32_t generation, continuation then);
  void read_next();
  void take_generation();
  void settle(const caf::error* why);
  const std::vector<search::start>& starts_of(uint32_t generation);
  Message<wire::SearchOpening> opening(uint32_t group, uint32_t member);
  bool goes_on(uint32_t generation) const;
  Message<wire::Snapshot> snapshot() const;

  search_actor::pointer self;
  lineage_actor lineage;
  search_settings settings;
  std::vector<search::searched_episode> tried;    ///< of finished generations
  std::vector<search::node> nodes;                ///< the same, for the strategy
  std::vector<std::vector<search::start>> starts; ///< by generation; empty: not chosen yet

  struct waiting {
    uint32_t generation;
    continuation then;
  };
  std::vector<waiting> waiters;
  std::vector<Message<wire::EpisodeHistory>> arriving; ///< of the generation that is being read
  uint32_t missing = 0;                                ///< of those
  uint32_t reading = 0;                                ///< number of that read

  static inline const char* name = "guided-search";
};

search_actor::behavior_type guided_search(search_actor::stateful_pointer<guided_search_state> self,
                                          lineage_actor lineage, search_settings settings);

} // namespace kernelmill
