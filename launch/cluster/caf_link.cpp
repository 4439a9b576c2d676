#include "launch/cluster/caf_link.hpp"

#include <deque>
#include <mutex>

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <caf/all.hpp>
#include <caf/io/all.hpp>
#include <caf/io/basp_broker.hpp>
#include <caf/io/network/acceptor_impl.hpp>
#include <caf/io/network/default_multiplexer.hpp>
#include <caf/io/network/interfaces.hpp>
#include <caf/io/network/stream_impl.hpp>
#include <caf/policy/tcp.hpp>

#include <openssl/err.h>

#include "messages/base/descriptor.hpp"

namespace kernelmill {

namespace {

namespace net = caf::io::network;
using multiplexer = net::default_multiplexer;

constexpr std::chrono::seconds greeting_deadline{10};

// -- a connection with TLS ------------------------------------------------------------------------

/// How CAF reads and writes; the handshake is over.
class tls_policy {
public:
  explicit tls_policy(tls_session session) : session_(std::move(session)) {
    // nop
  }

  net::rw_state read_some(size_t& result, net::native_socket, void* buffer, size_t size) {
    ERR_clear_error();
    return state_of(SSL_read_ex(session_.get(), buffer, size, &result), result);
  }

  net::rw_state write_some(size_t& result, net::native_socket, const void* buffer, size_t size) {
    ERR_clear_error();
    if (size == 0) {
      result = 0;
      return net::rw_state::success;
    }
    return state_of(SSL_write_ex(session_.get(), buffer, size, &result), result);
  }

  // What lies in the session's buffer makes no socket readable.
  bool must_read_more(net::native_socket, size_t threshold) {
    return static_cast<size_t>(SSL_pending(session_.get())) >= threshold;
  }

private:
  net::rw_state state_of(int status, size_t& result) {
    if (status == 1) return net::rw_state::success;
    result = 0;
    int why = SSL_get_error(session_.get(), status);
    return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? net::rw_state::success
                                                                     : net::rw_state::failure;
  }

  tls_session session_;
};

/// CAF's scribe of a stream, with the link's place at the door for as long as it is open.
template <class Policy>
class door_scribe final : public caf::io::scribe {
public:
  template <class... Ts>
  door_scribe(multiplexer& network, descriptor fd, std::shared_ptr<void> place, Ts&&... xs)
      : scribe(net::conn_hdl_from_socket(fd.get())),
        stream_(network, fd.get(), std::forward<Ts>(xs)...), place_(std::move(place)) {
    fd.release(); // the stream closes it
  }

  void configure_read(caf::io::receive_policy::config config) override {
    stream_.configure_read(config);
    if (launched_) return;
    launched_ = true;
    stream_.start(this);
  }
  void ack_writes(bool on) override { stream_.ack_writes(on); }
  std::vector<char>& wr_buf() override { return stream_.wr_buf(); }
  std::vector<char>& rd_buf() override { return stream_.rd_buf(); }
  void flush() override { stream_.flush(this); }
  void graceful_shutdown() override {
    stream_.graceful_shutdown();
    detach(&stream_.backend(), false);
  }
  std::string addr() const override {
    auto x = net::remote_addr_of_fd(stream_.fd());
    return x ? *x : "";
  }
  uint16_t port() const override {
    auto x = net::remote_port_of_fd(stream_.fd());
    return x ? *x : 0;
  }
  void add_to_loop() override { stream_.activate(this); }
  void remove_from_loop() override { stream_.passivate(); }

private:
  bool launched_ = false;
  net::stream_impl<Policy> stream_;
  std::shared_ptr<void> place_;
};

caf::io::scribe_ptr scribe_of(multiplexer& network, link_socket link) {
  if (!link.session)
    return caf::make_counted<door_scribe<caf::policy::tcp>>(network, std::move(link.fd),
                                                            std::move(link.place));
  return caf::make_counted<door_scribe<tls_policy>>(network, std::move(link.fd),
                                                    std::move(link.place), std::move(link.session));
}

// -- the way in -----------------------------------------------------------------------------------

/// What the door has let in and CAF's network thread has not yet taken. The eventfd counts it and
/// stands where CAF expects a listening socket.
struct lobby {
  descriptor counter{::eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC)};
  std::mutex mutex;
  std::deque<link_socket> queue;

  void put(link_socket link) {
    {
      std::lock_guard guard{mutex};
      queue.push_back(std::move(link));
    }
    uint64_t one = 1;
    write_retrying(counter.get(), &one, sizeof one);
  }

  std::optional<link_socket> take() {
    uint64_t one = 0;
    if (::read(counter.get(), &one, sizeof one) != sizeof one) return std::nullopt;
    std::lock_guard guard{mutex};
    if (queue.empty()) return std::nullopt;
    auto link = std::move(queue.front());
    queue.pop_front();
    return link;
  }
};

/// CAF's acceptor asks for sockets; ours come with a session, which the doorman takes by itself.
struct no_sockets {
  bool try_accept(net::native_socket& result, net::native_socket fd) {
    result = fd;
    return true;
  }
};

class lobby_doorman final : public caf::io::doorman {
public:
  // CAF closes the descriptor that it waits on, so it gets one of its own.
  lobby_doorman(multiplexer& network, int counter, std::shared_ptr<lobby> from,
                std::unique_ptr<front_door> door, std::string host)
      : doorman(net::accept_hdl_from_socket(counter)), acceptor_(network, counter),
        lobby_(std::move(from)), host_(std::move(host)), door_(std::move(door)) {
    // nop
  }

  bool new_connection() override {
    if (detached()) return false;
    auto link = lobby_->take();
    if (!link) return true;
    auto scribe = scribe_of(acceptor_.backend(), std::move(*link));
    auto handle = scribe->hdl();
    parent()->add_scribe(std::move(scribe));
    return doorman::new_connection(&acceptor_.backend(), handle);
  }
  void launch() override { acceptor_.start(this); }
  void graceful_shutdown() override {
    acceptor_.graceful_shutdown();
    detach(&acceptor_.backend(), false);
  }
  std::string addr() const override { return host_; }
  uint16_t port() const override { return door_->port(); }
  void add_to_loop() override { acceptor_.activate(this); }
  void remove_from_loop() override { acceptor_.passivate(); }

private:
  net::acceptor_impl<no_sockets> acceptor_;
  std::shared_ptr<lobby> lobby_;
  std::string host_;
  std::unique_ptr<front_door> door_;
};

multiplexer& network_of(caf::actor_system& system) {
  return static_cast<multiplexer&>(system.middleman().backend());
}

caf::actor broker_of(caf::actor_system& system) {
  return system.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"));
}

size_t descriptors_allowed() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  return limit.rlim_cur;
}

} // namespace

expected<uint16_t> publish_behind_door(caf::actor_system& system,
                                       const caf::strong_actor_ptr& published,
                                       std::set<std::string> interface, const network_address& at,
                                       std::shared_ptr<const tls_context> tls) {
  auto hall = std::make_shared<lobby>();
  descriptor counter{::dup(hall->counter.get())};
  if (!counter) return infrastructure_error("io_error", "failed to listen: no descriptor is left");
  auto door = front_door::open(at.host, at.port, std::move(tls),
                               door_limits::for_descriptors(descriptors_allowed()),
                               [hall](link_socket link) { hall->put(std::move(link)); });
  KM_TRY(door);
  auto port = (*door)->port();
  caf::io::doorman_ptr doorman = caf::make_counted<lobby_doorman>(
      network_of(system), counter.release(), hall, std::move(*door), at.host);
  caf::anon_send(broker_of(system), caf::publish_atom_v, std::move(doorman), port, published,
                 std::move(interface));
  return port;
}

caf::expected<caf::strong_actor_ptr> greet(caf::actor_system& system, link_socket link,
                                           uint16_t port, const std::set<std::string>& interface) {
  auto scribe = scribe_of(network_of(system), std::move(link));
  caf::expected<caf::strong_actor_ptr> result{caf::sec::cannot_connect_to_node};
  caf::scoped_actor self{system};
  self->request(broker_of(system), greeting_deadline, caf::connect_atom_v, std::move(scribe), port)
      .receive(
          [&](const caf::node_id&, const caf::strong_actor_ptr& published,
              const std::set<std::string>& offered) {
            if (!published)
              result = caf::make_error(caf::sec::no_actor_published_at_port, port);
            else if (!system.assignable(offered, interface))
              result = caf::make_error(caf::sec::unexpected_actor_messaging_interface);
            else
              result = published;
          },
          [&](caf::error& why) { result = std::move(why); });
  return result;
}

} // namespace kernelmill
