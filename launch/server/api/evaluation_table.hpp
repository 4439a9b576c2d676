#pragma once

// The table of evaluations, their queue, and the requests that wait for them: a plain value. The
// service (evaluation_service.hpp) owns it and tells it of each event.

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launch/judging/candidate_judging.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::services {

using steady_time = std::chrono::steady_clock::time_point;

/// A client's wish for one evaluation.
struct evaluation_order {
  std::shared_ptr<const offered_candidate> candidate;
  std::string name;
  std::string client; ///< that asked; "": the server has no clients
  std::string same;   ///< equal texts: the same candidate, task, device and rules
  bool allow_cache = false;
};

enum class evaluation_state : unsigned char { waiting, building, evaluating, done, cancelled };
const char* to_string(evaluation_state x);

/// A judged evaluation.
struct judged_evaluation {
  nlohmann::ordered_json verdict;
  std::string feedback;
  bool lasting = false; ///< another one would say the same: not where the machine is at fault
};

struct evaluation {
  std::string id;
  evaluation_order order;
  evaluation_state state = evaluation_state::waiting;
  std::shared_ptr<const judged_evaluation> result; ///< of `done`
  bool from_cache = false;
  bool kept = true;           ///< goes on although no request waits
  std::set<uint64_t> waiters; ///< requests that wait for it
  steady_time entered, begun, ended;

  bool over() const {
    return state == evaluation_state::done || state == evaluation_state::cancelled;
  }
};

class evaluation_table {
public:
  struct limits {
    size_t waiting = 1024; ///< evaluations that wait to be begun
    size_t running = 1;
    size_t finished = 4096; ///< that are remembered, and the cache's size
    struct client {
      size_t most = 0;  ///< that wait or run; 0: any number
      double share = 1; ///< of the slots, where others want them too
    };
    std::map<std::string, client> clients = {};
  };

  explicit evaluation_table(limits x) : limits_(std::move(x)) {}

  struct entry {
    std::vector<evaluation_order> orders;
    std::string key;     ///< of idempotency; may be empty
    std::string digest;  ///< of the request, for `key`
    uint64_t waiter = 0; ///< 0: no request waits
    bool kept = true;
  };
  /// Enters all or none; returns their ids. Errors: queue_full (infrastructure),
  /// idempotency_conflict (configuration).
  expected<std::vector<std::string>> enter(entry x, steady_time now);

  /// The next to begin, now `building`; null when there is none, or no room. One whose like is
  /// under way and that may share its answer waits for that. Clients take turns by their shares;
  /// of each, the first comes first.
  evaluation* begin(steady_time now);
  void evaluating(const std::string& id);
  /// Ends one that was begun: with a result, or cancelled where there is none.
  void finish(const std::string& id, std::shared_ptr<const judged_evaluation> result,
              steady_time now);

  /// Cancels one; false when it is over already. What runs is let run, and its answer dropped.
  bool cancel(const std::string& id, steady_time now);
  /// A request waits no more; what waits for it alone and is not kept is cancelled.
  void leave(uint64_t waiter, steady_time now);

  const evaluation* find(const std::string& id) const;
  size_t position(const evaluation& x) const; ///< how many wait before it
  /// Seconds until it is begun, by how long the latest ones took; none before one has ended.
  std::optional<double> expected_wait(const evaluation& x) const;
  /// Those that ended since it was last asked for, by their ids.
  std::vector<std::string> take_ended();

  size_t waiting() const noexcept { return waiting_.size(); }
  size_t running() const noexcept { return running_; }
  bool full() const noexcept { return waiting_.size() >= limits_.waiting; }

private:
  evaluation* at(const std::string& id);
  void end(evaluation& x, evaluation_state how, steady_time now);
  bool answer_from_cache(evaluation& x, steady_time now);
  double share_of(const std::string& client) const;
  expected<void> check_room(const std::vector<evaluation_order>& orders) const;
  std::optional<size_t> choose(steady_time now);
  expected<std::vector<std::string>> known(const entry& x, bool& found);
  void forget_oldest();

  limits limits_;
  std::map<std::string, evaluation> all_;
  std::deque<std::string> waiting_;
  std::deque<std::string> over_; ///< oldest first
  size_t running_ = 0;
  struct turns {
    size_t here = 0;    ///< that wait or run
    size_t waiting = 0; ///< of them
    double passed = 0;  ///< what was begun, each 1 / share: the client with the least is next
  };
  std::map<std::string, turns> clients_;
  double passed_ = 0;                  ///< of the latest that was begun: a new client begins there
  std::optional<double> mean_seconds_; ///< that one takes; the latest count most
  std::set<std::string> under_way_;    ///< begun, though perhaps cancelled since
  std::map<std::string, size_t> same_begun_; ///< `same` of those under way
  std::map<std::string, std::shared_ptr<const judged_evaluation>> cache_; ///< by `same`
  std::deque<std::string> cache_age_;
  struct remembered {
    std::string digest;
    std::vector<std::string> ids;
  };
  std::map<std::string, remembered> keys_;
  std::vector<std::string> ended_;
};

} // namespace kernelmill::services
