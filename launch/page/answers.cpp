#include "launch/page/answers.hpp"

#include <pthread.h>

#include <kj/exception.h>

namespace kernelmill::page {

namespace {

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

answers::answers(unsigned threads) {
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
  std::unique_lock lock{mutex_};
  auto now = clock::now();
  auto i = documents_.find(key);
  if (i != documents_.end() && i->second.waiting.empty() && i->second.until > now) {
    auto kept = i->second.made;
    lock.unlock();
    return to->answer(std::move(kept));
  }
  if (i != documents_.end() && !i->second.waiting.empty()) {
    i->second.waiting.push_back(std::move(to));
    return;
  }
  if (todo_.size() >= most_waiting) {
    lock.unlock();
    auto full = failure(503, "busy", "too many questions wait");
    full.headers.emplace_back("Retry-After", "1");
    return to->answer(std::move(full));
  }
  forget_old(now);
  auto& x = documents_[key];
  x = {};
  x.make = [make = std::move(make), fresh, this, key] {
    auto result = made_by(make);
    std::lock_guard guard{mutex_};
    documents_[key].until = clock::now() + fresh;
    return result;
  };
  x.waiting.push_back(std::move(to));
  todo_.push_back(key);
  lock.unlock();
  wake_.notify_one();
}

void answers::forget_old(clock::time_point now) {
  if (documents_.size() < most_kept) return;
  std::erase_if(documents_,
                [&](auto& x) { return x.second.waiting.empty() && x.second.until <= now; });
}

void answers::work() {
  pthread_setname_np(pthread_self(), "km-page");
  for (;;) {
    std::unique_lock lock{mutex_};
    wake_.wait(lock, [this] { return stop_ || !todo_.empty(); });
    if (stop_) return;
    auto key = todo_.front();
    todo_.pop_front();
    auto make = std::move(documents_[key].make);
    lock.unlock();
    auto made = make();
    lock.lock();
    auto& x = documents_[key];
    auto waiting = std::move(x.waiting);
    x.waiting.clear();
    x.made = made;
    lock.unlock();
    for (auto& to : waiting) to->answer(made);
  }
}

} // namespace kernelmill::page
