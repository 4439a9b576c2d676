#include "actors/policy_client/http/curl_shards.hpp"

#include <algorithm>
#include <cerrno>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace kernelmill {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr int events_at_once = 256;

// Transfers of one multi handle. With TLS each one reads the authorities' certificates again, which
// takes longer than any walk.
constexpr uint32_t shard_size = 64;
constexpr uint32_t tls_shard_size = 2048;

// Idle connections beyond this are forgotten here and found by chance.
constexpr size_t idle_at_most = 65536;

int64_t now_ns() {
  return std::chrono::duration_cast<nanoseconds>(curl_shards::clock::now().time_since_epoch())
      .count();
}

uint32_t size_of(bool tls) {
  return tls ? tls_shard_size : shard_size;
}

} // namespace

curl_shards::~curl_shards() {
  for (auto& x : shards_) curl_multi_cleanup(x->multi);
  if (shared_ != nullptr) curl_share_cleanup(shared_);
  if (epoll_ >= 0) ::close(epoll_);
}

bool curl_shards::open(int wake) {
  wake_ = wake;
  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  shared_ = curl_share_init();
  if (epoll_ < 0 || shared_ == nullptr) return false;
  // One thread needs no locks.
  curl_share_setopt(shared_, CURLSHOPT_SHARE, CURL_LOCK_DATA_DNS);
  curl_share_setopt(shared_, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = wake_;
  return ::epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event) == 0 && create(false) != nullptr;
}

void curl_shards::prepare(CURL* easy) {
  curl_easy_setopt(easy, CURLOPT_SHARE, shared_);
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, this);
  curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_close);
  curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, this);
}

curl_shards::shard* curl_shards::create(bool tls) {
  auto x = std::make_unique<shard>();
  x->owner = this;
  x->index = static_cast<uint32_t>(shards_.size());
  x->tls = tls;
  x->multi = curl_multi_init();
  if (x->multi == nullptr) return nullptr;
  curl_multi_setopt(x->multi, CURLMOPT_SOCKETFUNCTION,
                    static_cast<curl_socket_callback>(&curl_shards::on_socket));
  curl_multi_setopt(x->multi, CURLMOPT_SOCKETDATA, x.get());
  curl_multi_setopt(x->multi, CURLMOPT_TIMERFUNCTION, on_timer);
  curl_multi_setopt(x->multi, CURLMOPT_TIMERDATA, x.get());
  curl_multi_setopt(x->multi, CURLMOPT_MAXCONNECTS,
                    static_cast<long>(std::min(kept_, size_of(tls))));
  due_.push_back(never);
  shards_.push_back(std::move(x));
  return shards_.back().get();
}

// Takes the shard of the connection that was used last: it is the least likely to be closed.
uint32_t curl_shards::pick(bool tls) {
  auto& idle = idle_[tls ? 1 : 0];
  if (!idle.empty()) {
    auto index = idle.back();
    idle.pop_back();
    --shards_[index]->idle;
    return index;
  }
  for (const auto& x : shards_)
    if (x->tls == tls && x->active < size_of(tls)) return x->index;
  auto* fresh = create(tls);
  // Out of memory or files: one that is too large is better than none.
  return fresh != nullptr ? fresh->index : 0;
}

std::optional<uint32_t> curl_shards::add(CURL* easy, bool tls) {
  auto index = pick(tls);
  auto& x = *shards_[index];
  if (curl_multi_add_handle(x.multi, easy) != CURLM_OK) return std::nullopt;
  ++x.active;
  return index;
}

void curl_shards::remove(uint32_t index, CURL* easy, bool kept) {
  auto& x = *shards_[index];
  curl_multi_remove_handle(x.multi, easy);
  --x.active;
  auto& idle = idle_[x.tls ? 1 : 0];
  if (!kept || x.active + x.idle >= size_of(x.tls) || idle.size() >= idle_at_most) return;
  ++x.idle;
  idle.push_back(index);
}

// -- the loop ---------------------------------------------------------------------------------

void curl_shards::wait(milliseconds limit) {
  auto due = *std::min_element(due_.begin(), due_.end());
  if (due != never) {
    auto left = std::chrono::ceil<milliseconds>(nanoseconds{due - now_ns()});
    left = std::max(left, milliseconds{0});
    limit = limit.count() < 0 ? left : std::min(limit, left);
  }
  epoll_event events[events_at_once];
  auto n = ::epoll_wait(epoll_, events, events_at_once, static_cast<int>(limit.count()));
  for (int i = 0; i < n; ++i) handle(events[i]);
}

void curl_shards::run_due() {
  auto now = now_ns();
  for (uint32_t i = 0; i < due_.size(); ++i) {
    if (due_[i] > now) continue;
    due_[i] = never;
    act(i, CURL_SOCKET_TIMEOUT, 0);
  }
}

void curl_shards::act(uint32_t index, curl_socket_t socket, int action) {
  auto& x = *shards_[index];
  int running = 0;
  curl_multi_socket_action(x.multi, socket, action, &running);
  if (x.touched) return;
  x.touched = true;
  touched_.push_back(index);
}

void curl_shards::handle(const epoll_event& event) {
  auto fd = event.data.fd;
  if (fd == wake_) {
    uint64_t count = 0;
    [[maybe_unused]] auto n = ::read(wake_, &count, sizeof count);
    return;
  }
  auto& state = state_of(fd);
  if (state.wanted == 0) {
    // The server closes an idle connection; libcurl sees that when it wants to use it.
    ::epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
    state.registered = 0;
    return;
  }
  int action = 0;
  if (event.events & (EPOLLIN | EPOLLHUP)) action |= CURL_CSELECT_IN;
  if (event.events & EPOLLOUT) action |= CURL_CSELECT_OUT;
  if (event.events & EPOLLERR) action |= CURL_CSELECT_ERR;
  act(state.shard, fd, action);
}

curl_shards::socket_state& curl_shards::state_of(curl_socket_t socket) {
  auto index = static_cast<size_t>(socket);
  if (index >= sockets_.size()) sockets_.resize(index + index / 2 + 1);
  return sockets_[index];
}

// -- what libcurl asks for --------------------------------------------------------------------

int curl_shards::on_socket(shard& x, curl_socket_t socket, int what) {
  auto& state = state_of(socket);
  state.shard = x.index;
  state.wanted = 0;
  if (what != CURL_POLL_REMOVE) {
    if (what & CURL_POLL_IN) state.wanted |= EPOLLIN;
    if (what & CURL_POLL_OUT) state.wanted |= EPOLLOUT;
  } else {
    if (state.ours) return 0;
    ::epoll_ctl(epoll_, EPOLL_CTL_DEL, socket, nullptr);
    state.registered = 0;
    return 0;
  }
  if (state.ours && state.registered == state.wanted) return 0;
  epoll_event event{};
  event.data.fd = socket;
  event.events = state.wanted;
  auto operation = state.registered == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  if (::epoll_ctl(epoll_, operation, socket, &event) != 0) {
    // Of a socket that is not ours the number may have been closed and opened again.
    auto other = errno == EEXIST ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    ::epoll_ctl(epoll_, other, socket, &event);
  }
  state.registered = state.wanted;
  return 0;
}

int curl_shards::on_socket(CURL*, curl_socket_t socket, int what, void* which, void*) {
  auto* x = static_cast<shard*>(which);
  return x->owner->on_socket(*x, socket, what);
}

int curl_shards::on_timer(CURLM*, long timeout_ms, void* which) {
  auto* x = static_cast<shard*>(which);
  x->owner->due_[x->index] =
      timeout_ms < 0 ? never : now_ns() + nanoseconds{milliseconds{timeout_ms}}.count();
  return 0;
}

curl_socket_t curl_shards::on_open(void* self, curlsocktype, curl_sockaddr* address) {
  auto fd = ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  if (fd < 0) return CURL_SOCKET_BAD;
  auto& state = static_cast<curl_shards*>(self)->state_of(fd);
  state = {};
  state.ours = true;
  return fd;
}

int curl_shards::on_close(void* self, curl_socket_t socket) {
  static_cast<curl_shards*>(self)->state_of(socket) = {};
  return ::close(socket);
}

} // namespace kernelmill
