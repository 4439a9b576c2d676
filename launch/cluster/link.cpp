#include "launch/cluster/link.hpp"

#include <cstdio>
#include <cstdlib>

#include <sys/mman.h>

#include <caf/io/all.hpp>
#include <caf/openssl/all.hpp>

#include "actors/listening.hpp"
#include "launch/cluster/head_probe.hpp"
#include "storage/files.hpp"

namespace kernelmill {

namespace {

// A machine that is frozen or cut off is noticed after these two together, at the latest. Shorter
// ones break links of machines that are merely busy.
constexpr auto heartbeat = std::chrono::milliseconds{500};
constexpr auto silence = std::chrono::milliseconds{5000};

} // namespace

expected<network_address> parse_head_address(const std::string& text) {
  return parse_address(text, default_head_port);
}

expected<std::optional<cluster_credentials>> choose_link(const link_options& options,
                                                         const network_address& address) {
  if (options.insecure_loopback) {
    if (address.is_loopback()) return std::optional<cluster_credentials>{};
    return configuration_error(
        "insecure_link",
        "failed to use " + address.text() +
            " without TLS: --insecure-loopback is for 127.0.0.1 and ::1 alone",
        "make credentials with `kernelmill cluster init` and leave the flag out");
  }
  auto directory =
      options.credentials.empty() ? default_credentials_directory() : options.credentials;
  auto found = find_credentials(directory);
  if (!found) return tl::unexpected<error>{found.error()};
  return std::optional<cluster_credentials>{std::move(*found)};
}

cluster_config::cluster_config(const std::optional<cluster_credentials>& tls) {
  add_message_types<caf::id_block::kernelmill>();
  add_message_types<caf::id_block::kernelmill_handles>();
  set("scheduler.policy", caf::atom("sharing"));
  set("scheduler.max-throughput", size_t{100});
  load<caf::io::middleman>();
  set("middleman.workers", size_t{0});
  set("middleman.heartbeat-interval", caf::timespan{heartbeat});
  set("middleman.connection-timeout", caf::timespan{silence});
  set("middleman.app-identifiers", std::vector<std::string>{"kernelmill/1"});
  if (!tls) return;
  load<caf::openssl::manager>();
  openssl_certificate = copy(tls->certificate);
  openssl_key = copy(tls->key);
  openssl_cafile = copy(tls->ca);
}

// CAF opens these files again for each connection, and where it cannot its network layer ends with
// an exception: what was checked when the process started is what it gets.
std::string cluster_config::copy(const std::string& path) {
  auto text = read_file(path);
  descriptor file{::memfd_create("kernelmill-credentials", MFD_CLOEXEC)};
  if (!text || !file ||
      write_retrying(file.get(), text->data(), text->size()) != static_cast<ssize_t>(text->size()))
    return path;
  copies_.push_back(std::move(file));
  return "/proc/self/fd/" + std::to_string(copies_.back().get());
}

caf::actor_system& lasting_system(const std::optional<cluster_credentials>& tls) {
  auto* config = new cluster_config{tls};
  return *new caf::actor_system{*config};
}

void leave(int code) {
  std::fflush(nullptr);
  std::_Exit(code);
}

expected<uint16_t> publish_head(caf::actor_system& system, const head_gate_actor& who,
                                const network_address& at, bool tls) {
  auto port = tls ? caf::openssl::publish(who, at.port, at.host.c_str(), true)
                  : system.middleman().publish(who, at.port, at.host.c_str(), true);
  if (port) return *port;
  return tl::unexpected<error>{listen_error(at.host, at.port, system.render(port.error()))};
}

expected<head_gate_actor> reach_head(caf::actor_system& system, const network_address& at,
                                     bool tls) {
  if (auto ok = probe_head(at, tls); !ok) return tl::unexpected<error>{ok.error()};
  auto who = tls ? caf::openssl::remote_actor<head_gate_actor>(system, at.host, at.port)
                 : system.middleman().remote_actor<head_gate_actor>(at.host, at.port);
  if (who) return *who;
  auto why = system.render(who.error());
  if (who.error() == caf::sec::disconnect_during_handshake)
    return infrastructure_error("head_refused",
                                "failed to reach the head at " + at.text() +
                                    ": it broke off the handshake (" + why + ")",
                                "are the credentials of one and the same `kernelmill cluster "
                                "init`, and is TLS on at both ends?");
  return unreachable_head(at, why);
}

} // namespace kernelmill
