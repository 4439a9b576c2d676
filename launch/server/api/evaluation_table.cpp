#include "launch/server/api/evaluation_table.hpp"

#include <algorithm>
#include <random>

#include "messages/base/digest.hpp"

namespace kernelmill::services {

namespace {

/// Hard to guess, and no restart repeats it.
std::string new_id() {
  std::random_device source;
  std::array<unsigned char, 12> bytes;
  for (auto& b : bytes) b = static_cast<unsigned char>(source());
  return "ev-" + to_hex(bytes.data(), bytes.size());
}

} // namespace

const char* to_string(evaluation_state x) {
  switch (x) {
    case evaluation_state::waiting: return "waiting";
    case evaluation_state::building: return "building";
    case evaluation_state::evaluating: return "evaluating";
    case evaluation_state::done: return "done";
    case evaluation_state::cancelled: return "cancelled";
  }
  return "";
}

expected<std::vector<std::string>> evaluation_table::known(const entry& x, bool& found) {
  found = false;
  auto i = x.key.empty() ? keys_.end() : keys_.find(x.key);
  if (i == keys_.end()) return std::vector<std::string>{};
  if (i->second.digest != x.digest)
    return configuration_error("idempotency_conflict",
                               "the Idempotency-Key \"" + x.key +
                                   "\" was sent with another request",
                               "a new request takes a new key");
  // Those that were cancelled with their client, or are forgotten, are no answer to a second try.
  found = std::all_of(i->second.ids.begin(), i->second.ids.end(), [&](const std::string& id) {
    auto* one = find(id);
    return one != nullptr && one->state != evaluation_state::cancelled;
  });
  return i->second.ids;
}

expected<std::vector<std::string>> evaluation_table::enter(entry x, steady_time now) {
  bool found = false;
  auto ids = known(x, found);
  if (!ids) return ids;
  if (!found) {
    KM_TRY(check_room(x.orders));
    ids->clear();
    for (auto& order : x.orders) {
      evaluation one;
      one.id = new_id();
      one.order = std::move(order);
      one.entered = now;
      one.kept = x.kept;
      ids->push_back(one.id);
      auto& placed = all_.emplace(one.id, std::move(one)).first->second;
      auto& of = clients_[placed.order.client];
      if (of.here == 0) of.passed = std::max(of.passed, passed_); // an absence saves no turns
      ++of.here;
      ++of.waiting;
      if (!answer_from_cache(placed, now)) waiting_.push_back(placed.id);
    }
    if (!x.key.empty()) keys_[x.key] = {x.digest, *ids};
  }
  for (const auto& id : *ids) {
    auto* one = at(id);
    if (x.waiter != 0 && !one->over()) one->waiters.insert(x.waiter);
    one->kept = one->kept || x.kept;
  }
  forget_oldest();
  return ids;
}

double evaluation_table::share_of(const std::string& client) const {
  auto i = limits_.clients.find(client);
  return i == limits_.clients.end() ? 1 : i->second.share;
}

// One request has one client.
expected<void> evaluation_table::check_room(const std::vector<evaluation_order>& orders) const {
  if (waiting_.size() + orders.size() > limits_.waiting)
    return infrastructure_error("queue_full",
                                "the queue is full: " + std::to_string(waiting_.size()) +
                                    " evaluations wait, of at most " +
                                    std::to_string(limits_.waiting),
                                "try again later");
  if (orders.empty()) return {};
  const auto& client = orders.front().client;
  auto rules = limits_.clients.find(client);
  auto i = clients_.find(client);
  auto here = i == clients_.end() ? 0 : i->second.here;
  if (rules == limits_.clients.end() || rules->second.most == 0 ||
      here + orders.size() <= rules->second.most)
    return {};
  return infrastructure_error("queue_full",
                              client + " has " + std::to_string(here) +
                                  " evaluations that wait or run, of at most " +
                                  std::to_string(rules->second.most),
                              "try again later");
}

bool evaluation_table::answer_from_cache(evaluation& x, steady_time now) {
  if (!x.order.allow_cache) return false;
  auto i = cache_.find(x.order.same);
  if (i == cache_.end()) return false;
  x.result = i->second;
  x.from_cache = true;
  x.begun = now;
  end(x, evaluation_state::done, now);
  return true;
}

// The place in the queue of what is next.
std::optional<size_t> evaluation_table::choose(steady_time now) {
  auto others = static_cast<size_t>(std::count_if(
      clients_.begin(), clients_.end(), [](const auto& c) { return c.second.waiting > 0; }));
  std::set<std::string> seen; // clients: their first in the queue was found
  std::optional<size_t> best;
  double least = 0;
  for (size_t i = 0; i < waiting_.size() && seen.size() < others;) {
    auto& x = *at(waiting_[i]);
    if (answer_from_cache(x, now)) {
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    bool shares = x.order.allow_cache && same_begun_.contains(x.order.same);
    if (!shares && seen.insert(x.order.client).second) {
      auto passed = clients_[x.order.client].passed;
      if (!best || passed < least) {
        best = i;
        least = passed;
      }
    }
    ++i;
  }
  return best;
}

evaluation* evaluation_table::begin(steady_time now) {
  if (running_ >= limits_.running) return nullptr;
  auto place = choose(now);
  if (!place) return nullptr;
  auto& x = *at(waiting_[*place]);
  waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(*place));
  x.state = evaluation_state::building;
  x.begun = now;
  auto& of = clients_[x.order.client];
  --of.waiting;
  passed_ = of.passed;
  of.passed += 1 / share_of(x.order.client);
  ++running_;
  ++same_begun_[x.order.same];
  under_way_.insert(x.id);
  return &x;
}

void evaluation_table::evaluating(const std::string& id) {
  if (auto* x = at(id); x != nullptr && !x->over()) x->state = evaluation_state::evaluating;
}

void evaluation_table::finish(const std::string& id,
                              std::shared_ptr<const judged_evaluation> result, steady_time now) {
  auto* x = at(id);
  if (x == nullptr || under_way_.erase(id) == 0) return;
  --running_;
  if (auto i = same_begun_.find(x->order.same); --i->second == 0) same_begun_.erase(i);
  if (result != nullptr && result->lasting &&
      cache_.insert_or_assign(x->order.same, result).second) {
    cache_age_.push_back(x->order.same);
    if (cache_age_.size() > limits_.finished) {
      cache_.erase(cache_age_.front());
      cache_age_.pop_front();
    }
  }
  if (!x->over()) {
    auto took = std::chrono::duration<double>(now - x->begun).count();
    mean_seconds_ = mean_seconds_ ? *mean_seconds_ + (took - *mean_seconds_) / 8 : took;
    x->result = std::move(result);
    end(*x, x->result == nullptr ? evaluation_state::cancelled : evaluation_state::done, now);
  }
  forget_oldest();
}

bool evaluation_table::cancel(const std::string& id, steady_time now) {
  auto* x = at(id);
  if (x == nullptr || x->over()) return false;
  std::erase(waiting_, id);
  end(*x, evaluation_state::cancelled, now);
  forget_oldest();
  return true;
}

void evaluation_table::leave(uint64_t waiter, steady_time now) {
  std::vector<std::string> orphans;
  for (auto& [id, x] : all_)
    if (x.waiters.erase(waiter) > 0 && x.waiters.empty() && !x.kept &&
        x.state != evaluation_state::evaluating)
      orphans.push_back(id);
  for (const auto& id : orphans) cancel(id, now);
}

void evaluation_table::end(evaluation& x, evaluation_state how, steady_time now) {
  if (x.begun == steady_time{}) x.begun = now;
  if (auto i = clients_.find(x.order.client); i != clients_.end()) {
    if (x.state == evaluation_state::waiting) --i->second.waiting;
    --i->second.here;
  }
  x.state = how;
  x.ended = now;
  x.waiters.clear();
  over_.push_back(x.id);
  ended_.push_back(x.id);
}

void evaluation_table::forget_oldest() {
  for (size_t looked = 0; over_.size() > limits_.finished && looked < over_.size(); ++looked) {
    auto id = std::move(over_.front());
    over_.pop_front();
    // One that was cancelled while it ran is remembered until it ends.
    if (under_way_.contains(id))
      over_.push_back(std::move(id));
    else
      all_.erase(id);
  }
  if (keys_.size() <= 2 * limits_.finished) return;
  std::erase_if(keys_, [&](const auto& x) {
    return std::none_of(x.second.ids.begin(), x.second.ids.end(),
                        [&](const std::string& id) { return all_.contains(id); });
  });
}

evaluation* evaluation_table::at(const std::string& id) {
  auto i = all_.find(id);
  return i == all_.end() ? nullptr : &i->second;
}

const evaluation* evaluation_table::find(const std::string& id) const {
  auto i = all_.find(id);
  return i == all_.end() ? nullptr : &i->second;
}

// Of its own client those before it, of others what their shares bring until then.
size_t evaluation_table::position(const evaluation& x) const {
  const auto& client = x.order.client;
  size_t own = 0;
  for (const auto& id : waiting_) {
    if (id == x.id) break;
    if (find(id)->order.client == client) ++own;
  }
  auto result = own;
  for (const auto& [name, of] : clients_)
    if (name != client)
      result += std::min(of.waiting, static_cast<size_t>(static_cast<double>(own + 1) *
                                                         share_of(name) / share_of(client)));
  return result;
}

// One is begun whenever one of those that run ends.
std::optional<double> evaluation_table::expected_wait(const evaluation& x) const {
  if (!mean_seconds_ || x.state != evaluation_state::waiting) return std::nullopt;
  return *mean_seconds_ * static_cast<double>(position(x) + 1) /
         static_cast<double>(limits_.running);
}

std::vector<std::string> evaluation_table::take_ended() {
  return std::exchange(ended_, {});
}

} // namespace kernelmill::services
