#include "actors/policy_client/http/http_client.hpp"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <thread>
#include <unordered_map>

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "actors/policy_client/http/curl_shards.hpp"
#include "actors/policy_client/http/http_transfer.hpp"

namespace kernelmill {

namespace {

using std::chrono::milliseconds;

// Silence is measured in seconds, so looking four times a second is enough.
constexpr milliseconds silence_check{250};

// With many transfers the thread looks after its sockets and inboxes this often at most: several
// requests share one waking, of this thread and of those that it calls. Completions take seconds
// then.
constexpr milliseconds shortest_round{4};
constexpr size_t many_transfers = 64;

} // namespace

// The thread shares the engine with the client: the last handle of an actor that owns a client can
// be dropped by a callback, and then the client is destroyed on this very thread.
class http_client::engine : public std::enable_shared_from_this<engine> {
public:
  using clock = http_transfer::clock;

  explicit engine(http_client_options options)
      : options_(std::move(options)), shards_(options_.kept_connections), handles_(options_) {}

  ~engine() {
    drop_all();
    if (wake_ >= 0) ::close(wake_);
  }

  expected<void> start() {
    wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_ < 0 || !shards_.open(wake_))
      return infrastructure_error("http_client_failed",
                                  std::string{"failed to start the HTTP client: "} +
                                      std::strerror(errno),
                                  "check the limit of open files (ulimit -n)");
    thread_ = std::thread{[self = shared_from_this()] { self->loop(); }};
    return {};
  }

  void stop() {
    if (!thread_.joinable()) return;
    stopping_.store(true);
    wake();
    if (thread_.get_id() == std::this_thread::get_id())
      thread_.detach();
    else
      thread_.join();
  }

  uint64_t submit(http_request request, callback done) {
    auto id = next_id_.fetch_add(1);
    auto transfer = std::make_unique<http_transfer>(id, std::move(request), std::move(done));
    {
      std::lock_guard guard{mutex_};
      submitted_.push_back(std::move(transfer));
    }
    wake();
    return id;
  }

  void cancel(uint64_t id) {
    {
      std::lock_guard guard{mutex_};
      cancelled_.push_back(id);
    }
    wake();
  }

private:
  // One system call for all that comes while the thread is busy, and none from its own callbacks.
  void wake() {
    if (called_.exchange(true) || on_this_thread_ == this) return;
    uint64_t one = 1;
    // The counter is at its limit only when the thread is about to wake anyway.
    [[maybe_unused]] auto n = ::write(wake_, &one, sizeof one);
  }

  // -- the thread -----------------------------------------------------------------------------

  void loop() {
    pthread_setname_np(pthread_self(), "km-http");
    on_this_thread_ = this;
    while (!stopping_.load()) {
      shards_.wait(longest_wait());
      gather();
      take_commands();
      shards_.run_due();
      shards_.collect([this](CURL* easy, CURLcode code) { end(easy, code); });
      end_stalled();
    }
    on_this_thread_ = nullptr;
  }

  // Lets work come together when the last round was just now; the first after a pause is at once.
  void gather() {
    if (transfers_.size() < many_transfers) return;
    auto now = clock::now();
    if (now < next_round_) {
      std::this_thread::sleep_until(next_round_);
      now = clock::now();
      shards_.wait(milliseconds{0});
    }
    next_round_ = now + shortest_round;
  }

  milliseconds longest_wait() const {
    if (called_.load()) return milliseconds{0};
    return watching_ > 0 ? silence_check : milliseconds{-1};
  }

  void take_commands() {
    // Before the look into the inboxes: what comes after it calls again.
    called_.store(false);
    std::vector<std::unique_ptr<http_transfer>> submitted;
    std::vector<uint64_t> cancelled;
    {
      std::lock_guard guard{mutex_};
      submitted.swap(submitted_);
      cancelled.swap(cancelled_);
    }
    for (auto& x : submitted) begin(std::move(x));
    for (auto id : cancelled)
      if (auto x = take(id, false)) x->fail(transport_fault::cancelled, "cancelled");
  }

  void begin(std::unique_ptr<http_transfer> x) {
    if (!x->prepare(handles_, shards_))
      return x->fail(transport_fault::other, "libcurl could not take the request");
    watching_ += x->watches_silence() ? 1 : 0;
    transfers_.emplace(x->id(), std::move(x));
  }

  std::unique_ptr<http_transfer> take(uint64_t id, bool kept) {
    auto i = transfers_.find(id);
    if (i == transfers_.end()) return nullptr;
    auto result = std::move(i->second);
    transfers_.erase(i);
    watching_ -= result->watches_silence() ? 1 : 0;
    result->leave(shards_, kept);
    return result;
  }

  void end(CURL* easy, CURLcode code) {
    http_transfer* x = nullptr;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &x);
    if (auto owned = take(x->id(), code == CURLE_OK)) {
      owned->finish(code);
      owned->give_back(handles_);
    }
  }

  void end_stalled() {
    if (watching_ == 0) return;
    auto now = clock::now();
    if (now < next_silence_check_) return;
    next_silence_check_ = now + silence_check;
    std::vector<uint64_t> silent;
    for (const auto& [id, x] : transfers_)
      if (x->stalled(now)) silent.push_back(id);
    for (auto id : silent)
      if (auto x = take(id, false))
        x->fail(transport_fault::stalled, "the response began and then brought no more bytes");
  }

  void drop_all() {
    for (auto& [id, x] : transfers_) x->leave(shards_, false);
    transfers_.clear();
    submitted_.clear();
  }

  static inline thread_local const engine* on_this_thread_ = nullptr;

  http_client_options options_;
  int wake_ = -1;
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> called_{false}; ///< something is in an inbox, and the thread will look
  std::atomic<uint64_t> next_id_{1};
  std::mutex mutex_; // guards the two inboxes; all that follows them belongs to the thread
  std::vector<std::unique_ptr<http_transfer>> submitted_;
  std::vector<uint64_t> cancelled_;
  // Order matters: handles are freed before the shards that they name.
  curl_shards shards_;
  easy_handles handles_;
  std::unordered_map<uint64_t, std::unique_ptr<http_transfer>> transfers_;
  clock::time_point next_silence_check_{};
  clock::time_point next_round_{};
  size_t watching_ = 0;
};

// -- the client -------------------------------------------------------------------------------

http_client::http_client(std::shared_ptr<engine> impl) : engine_(std::move(impl)) {
  // nop
}

http_client::~http_client() {
  engine_->stop();
}

expected<std::unique_ptr<http_client>> http_client::start(http_client_options options) {
  static const auto ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (ready != CURLE_OK)
    return infrastructure_error("http_client_failed",
                                std::string{"failed to start the HTTP client: "} +
                                    curl_easy_strerror(ready));
  auto impl = std::make_shared<engine>(std::move(options));
  KM_TRY(impl->start());
  return std::unique_ptr<http_client>{new http_client{std::move(impl)}};
}

uint64_t http_client::submit(http_request request, callback done) {
  return engine_->submit(std::move(request), std::move(done));
}

void http_client::cancel(uint64_t id) {
  engine_->cancel(id);
}

} // namespace kernelmill
