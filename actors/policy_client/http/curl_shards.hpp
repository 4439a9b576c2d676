#pragma once

// Many libcurl multi handles behind one epoll set, for one thread. A multi handle looks for an idle
// connection by walking over all that it has, so with one of them a request costs in proportion to
// the number in flight: 2 ms of processor at 16,000. Small ones keep that walk short. They share
// addresses and TLS sessions.
//
// A socket stays in the epoll set from its first request to its end, where libcurl asks to have it
// put in and taken out for each request.
//
// Not for several threads.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <curl/curl.h>

struct epoll_event;

namespace kernelmill {

class curl_shards {
public:
  using clock = std::chrono::steady_clock;

  /// `kept_connections` is how many idle ones a multi handle keeps, if it is less than its size.
  explicit curl_shards(uint32_t kept_connections) : kept_(kept_connections) {}
  ~curl_shards();
  curl_shards(const curl_shards&) = delete;
  curl_shards& operator=(const curl_shards&) = delete;

  /// Watches `wake` too: an eventfd that ends a wait. False: errno says why.
  bool open(int wake);

  /// Sets what a handle needs to be added, once in its life.
  void prepare(CURL* easy);

  /// Starts a transfer; the result is the shard, for remove(), or nothing when libcurl refuses.
  std::optional<uint32_t> add(CURL* easy, bool tls);

  /// `kept`: the connection is probably open still, and serves a later request.
  void remove(uint32_t shard, CURL* easy, bool kept);

  /// Waits for sockets and timers, at most for `limit` (below 0: for ever), and lets libcurl act.
  void wait(std::chrono::milliseconds limit);

  /// Lets libcurl act on the timers that are due: it begins new transfers so.
  void run_due();

  /// Calls `ended(easy, code)` for each transfer that has ended; it may remove it.
  template <class F>
  void collect(F ended) {
    for (size_t i = 0; i < touched_.size(); ++i) {
      auto& x = *shards_[touched_[i]];
      x.touched = false;
      int left = 0;
      while (auto* message = curl_multi_info_read(x.multi, &left))
        // `message` is gone once the handle is removed.
        if (message->msg == CURLMSG_DONE) ended(message->easy_handle, message->data.result);
    }
    touched_.clear();
  }

private:
  struct shard {
    curl_shards* owner = nullptr;
    uint32_t index = 0;
    CURLM* multi = nullptr;
    bool tls = false;
    bool touched = false;
    uint32_t active = 0; ///< transfers
    uint32_t idle = 0;   ///< entries of idle_
  };

  struct socket_state {
    uint32_t shard = 0;
    uint32_t wanted = 0;     ///< what libcurl waits for
    uint32_t registered = 0; ///< what epoll was told
    bool ours = false;       ///< opened and closed by our callbacks, so `registered` is true
  };

  static constexpr int64_t never = INT64_MAX;

  uint32_t pick(bool tls);
  shard* create(bool tls);
  void act(uint32_t index, curl_socket_t socket, int action);
  void handle(const epoll_event& event);
  socket_state& state_of(curl_socket_t socket);
  int on_socket(shard& x, curl_socket_t socket, int what);

  static int on_socket(CURL*, curl_socket_t socket, int what, void* which, void*);
  static int on_timer(CURLM*, long timeout_ms, void* which);
  static curl_socket_t on_open(void* self, curlsocktype, curl_sockaddr* address);
  static int on_close(void* self, curl_socket_t socket);

  uint32_t kept_;
  int epoll_ = -1;
  int wake_ = -1;
  CURLSH* shared_ = nullptr;
  std::vector<std::unique_ptr<shard>> shards_;
  std::vector<int64_t> due_;      ///< of each shard's timer, on the steady clock in ns
  std::vector<uint32_t> touched_; ///< shards in which a transfer may have ended
  std::vector<uint32_t> idle_[2]; ///< shards, one entry an idle connection, the newest last; [tls]
  std::vector<socket_state> sockets_; ///< by number
};

} // namespace kernelmill
