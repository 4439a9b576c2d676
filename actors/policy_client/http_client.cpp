#include "actors/policy_client/http_client.hpp"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "actors/policy_client/http_transfer.hpp"

namespace kernelmill {

namespace {

using std::chrono::milliseconds;

// Silence is measured in seconds, so looking four times a second is enough.
constexpr milliseconds silence_check{250};

constexpr int events_at_once = 256;

} // namespace

// The thread shares the engine with the client: the last handle of an actor that owns a client can
// be dropped by a callback, and then the client is destroyed on this very thread.
class http_client::engine : public std::enable_shared_from_this<engine> {
public:
  using clock = http_transfer::clock;

  explicit engine(http_client_options options) : options_(std::move(options)) {}

  ~engine() {
    drop_all();
    if (multi_ != nullptr) curl_multi_cleanup(multi_);
    if (wake_ >= 0) ::close(wake_);
    if (epoll_ >= 0) ::close(epoll_);
  }

  expected<void> start() {
    epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
    wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    multi_ = curl_multi_init();
    if (epoll_ < 0 || wake_ < 0 || multi_ == nullptr)
      return infrastructure_error("http_client_failed",
                                  std::string{"failed to start the HTTP client: "} +
                                      std::strerror(errno),
                                  "check the limit of open files (ulimit -n)");
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = wake_;
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event);
    curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
    curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(options_.kept_connections));
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
  void wake() {
    uint64_t one = 1;
    // The counter is at its limit only when the thread is about to wake anyway.
    [[maybe_unused]] auto n = ::write(wake_, &one, sizeof one);
  }

  // -- the thread -----------------------------------------------------------------------------

  void loop() {
    pthread_setname_np(pthread_self(), "km-http");
    epoll_event events[events_at_once];
    while (!stopping_.load()) {
      auto n = ::epoll_wait(epoll_, events, events_at_once, wait_ms());
      for (int i = 0; i < n; ++i) handle(events[i]);
      take_commands();
      if (timer_ && clock::now() >= *timer_) {
        timer_.reset();
        act(CURL_SOCKET_TIMEOUT, 0);
      }
      collect();
      end_stalled();
    }
  }

  int wait_ms() const {
    auto wait = milliseconds{-1};
    if (timer_) {
      auto left = std::chrono::ceil<milliseconds>(*timer_ - clock::now());
      wait = std::max(left, milliseconds{0});
    }
    if (watching_ > 0 && (wait.count() < 0 || wait > silence_check)) wait = silence_check;
    return static_cast<int>(wait.count());
  }

  void handle(const epoll_event& event) {
    if (event.data.fd == wake_) {
      uint64_t count = 0;
      [[maybe_unused]] auto n = ::read(wake_, &count, sizeof count);
      return;
    }
    int action = 0;
    if (event.events & (EPOLLIN | EPOLLHUP)) action |= CURL_CSELECT_IN;
    if (event.events & EPOLLOUT) action |= CURL_CSELECT_OUT;
    if (event.events & EPOLLERR) action |= CURL_CSELECT_ERR;
    act(event.data.fd, action);
  }

  void act(curl_socket_t socket, int action) {
    int running = 0;
    curl_multi_socket_action(multi_, socket, action, &running);
  }

  void take_commands() {
    std::vector<std::unique_ptr<http_transfer>> submitted;
    std::vector<uint64_t> cancelled;
    {
      std::lock_guard guard{mutex_};
      submitted.swap(submitted_);
      cancelled.swap(cancelled_);
    }
    for (auto& x : submitted) begin(std::move(x));
    for (auto id : cancelled)
      if (auto x = take(id)) x->fail(transport_fault::cancelled, "cancelled");
  }

  void begin(std::unique_ptr<http_transfer> x) {
    if (!x->prepare(options_) || curl_multi_add_handle(multi_, x->handle()) != CURLM_OK)
      return x->fail(transport_fault::other, "libcurl could not take the request");
    watching_ += x->watches_silence() ? 1 : 0;
    transfers_.emplace(x->id(), std::move(x));
  }

  std::unique_ptr<http_transfer> take(uint64_t id) {
    auto i = transfers_.find(id);
    if (i == transfers_.end()) return nullptr;
    auto result = std::move(i->second);
    transfers_.erase(i);
    watching_ -= result->watches_silence() ? 1 : 0;
    curl_multi_remove_handle(multi_, result->handle());
    return result;
  }

  void collect() {
    int left = 0;
    while (auto* message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      auto code = message->data.result;
      http_transfer* x = nullptr;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &x);
      // `message` is gone once the handle is removed.
      if (auto owned = take(x->id())) owned->finish(code);
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
      if (auto x = take(id))
        x->fail(transport_fault::stalled, "the response began and then brought no more bytes");
  }

  void drop_all() {
    for (auto& [id, x] : transfers_) curl_multi_remove_handle(multi_, x->handle());
    transfers_.clear();
    submitted_.clear();
  }

  // -- what libcurl asks for ------------------------------------------------------------------

  static int on_socket(CURL*, curl_socket_t socket, int what, void* self, void* known) {
    auto* that = static_cast<engine*>(self);
    if (what == CURL_POLL_REMOVE) {
      ::epoll_ctl(that->epoll_, EPOLL_CTL_DEL, socket, nullptr);
      return 0;
    }
    epoll_event event{};
    event.data.fd = socket;
    if (what & CURL_POLL_IN) event.events |= EPOLLIN;
    if (what & CURL_POLL_OUT) event.events |= EPOLLOUT;
    auto operation = known == nullptr ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    if (::epoll_ctl(that->epoll_, operation, socket, &event) != 0) {
      // A socket that was closed and opened again under the same number is new to epoll, and one
      // that libcurl forgot without telling is not.
      auto other = errno == EEXIST ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
      ::epoll_ctl(that->epoll_, other, socket, &event);
    }
    curl_multi_assign(that->multi_, socket, that);
    return 0;
  }

  static int on_timer(CURLM*, long timeout_ms, void* self) {
    auto* that = static_cast<engine*>(self);
    if (timeout_ms < 0)
      that->timer_.reset();
    else
      that->timer_ = clock::now() + milliseconds{timeout_ms};
    return 0;
  }

  http_client_options options_;
  int epoll_ = -1;
  int wake_ = -1;
  CURLM* multi_ = nullptr;
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> next_id_{1};
  std::mutex mutex_; // guards the two inboxes; all that follows them belongs to the thread
  std::vector<std::unique_ptr<http_transfer>> submitted_;
  std::vector<uint64_t> cancelled_;
  std::unordered_map<uint64_t, std::unique_ptr<http_transfer>> transfers_;
  std::optional<clock::time_point> timer_;
  clock::time_point next_silence_check_{};
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
  if (auto started = impl->start(); !started) return tl::unexpected<error>{started.error()};
  return std::unique_ptr<http_client>{new http_client{std::move(impl)}};
}

uint64_t http_client::submit(http_request request, callback done) {
  return engine_->submit(std::move(request), std::move(done));
}

void http_client::cancel(uint64_t id) {
  engine_->cancel(id);
}

} // namespace kernelmill
