#include "launch/server/page/answers.hpp"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include <kj/exception.h>

namespace kernelmill::page {

namespace {

using namespace std::chrono_literals;

// A sampled document costs at most a fiftieth of the time for which it is shown.
constexpr int rarity = 50;
constexpr auto shortest_keeping = 150ms;
constexpr auto longest_keeping = 1000ms;
constexpr auto settled_keeping = 60s;

http::response failure(int status, const char* category, std::string message) {
  return http::error_response(
      status, {fault_class::infrastructure, category, std::move(message), "try again later"});
}

http::response made_by(const answers::maker& make) {
  try {
    return make();
  } catch (const kj::Exception& why) { // of a record that lies about itself
    return failure(500, "store_damaged",
                   std::string{"failed to read a record: "} + why.getDescription().cStr());
  } catch (const std::exception& why) {
    return failure(500, "internal", std::string{"failed to answer: "} + why.what());
  }
}

} // namespace

answers::answers(unsigned threads, std::function<uint64_t()> version)
    : version_(std::move(version)) {
  for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

answers::~answers() {
  {
    std::lock_guard guard{mutex_};
    stop_ = true;
  }
  wake_.notify_all();
  for (auto& x : threads_) x.join();
  for (auto& [key, x] : documents_)
    for (auto& to : x.waiting) to->answer(failure(503, "busy", "the process ends"));
}

void answers::ask(const std::string& key, std::chrono::milliseconds fresh, maker make,
                  http::exchange_ptr to) {
  put(key, keeping::until_change, fresh, std::move(make), std::move(to));
}

void answers::ask_sampled(const std::string& key, maker make, http::exchange_ptr to) {
  put(key, keeping::sampled, shortest_keeping, std::move(make), std::move(to));
}

void answers::ask_settled(const std::string& key, maker make, http::exchange_ptr to) {
  put(key, keeping::settled, settled_keeping, std::move(make), std::move(to));
}

void answers::when_idle(idle_step step) {
  {
    std::lock_guard guard{mutex_};
    idle_ = std::move(step);
  }
  wake_.notify_one();
}

void answers::put(const std::string& key, keeping how, std::chrono::milliseconds fresh, maker make,
                  http::exchange_ptr to) {
  auto version = how == keeping::until_change ? version_() : 0;
  std::unique_lock lock{mutex_};
  auto now = clock::now();
  if (auto i = documents_.find(key); i != documents_.end()) {
    auto& known = i->second;
    bool enough = known.version >= version;
    if (known.working && enough) {
      known.sharing.push_back(std::move(to));
      return;
    }
    if (!known.working && enough && known.until > now) {
      if (known.how == keeping::settled) known.until = now + known.fresh;
      auto kept = known.made;
      lock.unlock();
      return to->answer(std::move(kept));
    }
    if (!known.waiting.empty()) { // not begun
      known.waiting.push_back(std::move(to));
      return;
    }
  }
  if (todo_.size() >= most_waiting) {
    lock.unlock();
    auto full = failure(503, "busy", "too many questions wait");
    full.headers.emplace_back("Retry-After", "1");
    return to->answer(std::move(full));
  }
  forget_old(now);
  auto& x = documents_[key];
  x.make = std::move(make);
  x.fresh = fresh;
  x.how = how;
  x.waiting.push_back(std::move(to));
  if (x.working) return; // the thread that makes it now makes it once more
  x.queued = true;
  todo_.push_back(key);
  waiting_ = todo_.size();
  lock.unlock();
  wake_.notify_one();
}

void answers::forget_old(clock::time_point now) {
  if (documents_.size() < most_kept) return;
  std::erase_if(documents_, [&](auto& x) {
    return !x.second.queued && !x.second.working && x.second.until <= now;
  });
}

void answers::work() {
  pthread_setname_np(pthread_self(), "km-page");
  for (;;) {
    std::unique_lock lock{mutex_};
    wake_.wait(lock, [this] { return stop_ || !todo_.empty() || idle_; });
    if (stop_) return;
    if (todo_.empty()) {
      do_idle(lock);
      continue;
    }
    auto key = todo_.front();
    todo_.pop_front();
    waiting_ = todo_.size();
    make_one(lock, key);
  }
}

// What fails here fails again, with its reason, once it is asked for.
void answers::do_idle(std::unique_lock<std::mutex>& lock) {
  auto step = std::exchange(idle_, nullptr);
  lock.unlock();
  bool more = false;
  try {
    more = step(waiting_);
  } catch (const kj::Exception&) { // of a record that lies about itself
  } catch (const std::exception&) {
  }
  lock.lock();
  if (more) idle_ = std::move(step);
}

void answers::make_one(std::unique_lock<std::mutex>& lock, const std::string& key) {
  auto& x = documents_[key]; // stays where it is while it is queued or worked on
  auto make = std::move(x.make);
  x.queued = false;
  x.working = true;
  x.version = version_();
  x.sharing = std::exchange(x.waiting, {});
  lock.unlock();
  auto began = clock::now();
  auto made = made_by(make);
  auto ended = clock::now();
  lock.lock();
  auto waited = std::exchange(x.sharing, {});
  x.made = made;
  clock::duration keep = x.how == keeping::settled && made.status >= 500 ? 0s : x.fresh;
  if (x.how == keeping::sampled)
    keep = std::clamp<clock::duration>(rarity * (ended - began), keep, longest_keeping);
  x.until = ended + keep;
  x.working = false;
  if (!x.waiting.empty()) {
    x.queued = true;
    todo_.push_back(key);
    waiting_ = todo_.size();
    wake_.notify_one();
  }
  lock.unlock();
  for (auto& to : waited) to->answer(made);
}

} // namespace kernelmill::page
