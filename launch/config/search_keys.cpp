// The keys of search.*: how a run looks for the best kernel of one task.

#include "launch/config/key_builders.hpp"

namespace kernelmill {

using namespace key_builders;

void add_search_keys(std::vector<config_key>& k) {
  k.push_back(one_of(
      KEY(search.strategy,
          "How the run searches: its groups are generations, and each episode begins with a "
          "candidate of those before. `tree`: UCB on the upper bound of the speedup; `islands`: "
          "MAP-Elites on islands; `beam`: the fastest few; `random`; `best_of_n`: always from the "
          "task alone; `off`: the run is no search."),
      {"off", "tree", "islands", "beam", "random", "best_of_n"}));
  k.push_back(within(KEY(search.beam, "Candidates that `beam` keeps."), 1, 4096));
  k.push_back(within(KEY(search.islands, "Islands of `islands`."), 1, 256));
  k.push_back(within(KEY(search.migration,
                         "Generations after which the fastest of each island goes to the next; 0: "
                         "never."),
                     0, 1e6));
  k.push_back(within(KEY(search.exploration,
                         "Weight that `tree` gives to candidates that were seldom improved, in "
                         "doublings of speed."),
                     0, 100));
  k.push_back(
      within(KEY(search.fresh, "Probability that an episode begins with the task alone."), 0, 1));
  k.push_back(within(KEY(search.ledger, "Candidates that a prompt lists of those tried."), 0, 256));
  k.push_back(within(KEY(search.evaluations,
                         "Evaluations of the winner when the search has ended, each in a fresh "
                         "process on fresh inputs; the speedup that is told comes from these."),
                     1, 100));
  k.push_back(within(KEY(search.gpu_minutes,
                         "Minutes of evaluation slots after which no generation begins; 0: no "
                         "limit."),
                     0, 1e9));
  k.push_back(within(KEY(search.tokens,
                         "Tokens of prompts and completions after which no generation begins; 0: "
                         "no limit."),
                     0, 9007199254740991.0));
  k.push_back(within(KEY(search.dollars,
                         "Dollars, by the two prices, after which no generation begins; 0: no "
                         "limit."),
                     0, 1e9));
  k.push_back(within(KEY(search.prompt_price, "Dollars for a million tokens of prompts."), 0, 1e6));
  k.push_back(
      within(KEY(search.completion_price, "Dollars for a million tokens of completions."), 0, 1e6));
}

} // namespace kernelmill
