#include "launch/cluster/link.hpp"

#include <cstdio>
#include <cstdlib>

#include <caf/all.hpp>
#include <caf/io/all.hpp>

#include "actors/caf_error.hpp"
#include "launch/cluster/caf_link.hpp"
#include "launch/cluster/dial.hpp"

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

expected<shared_tls> choose_link(const link_options& options, const network_address& address) {
  if (options.insecure_loopback) {
    if (address.is_loopback()) return shared_tls{};
    return configuration_error(
        "insecure_link",
        "failed to use " + address.text() +
            " without TLS: --insecure-loopback is for 127.0.0.1 and ::1 alone",
        "make credentials with `kernelmill cluster init` and leave the flag out");
  }
  auto directory =
      options.credentials.empty() ? default_credentials_directory() : options.credentials;
  auto found = find_credentials(directory);
  KM_TRY(found);
  return tls_context::load(*found);
}

cluster_config::cluster_config() {
  add_message_types<caf::id_block::kernelmill>();
  add_message_types<caf::id_block::kernelmill_handles>();
  teach_errors(*this);
  set("scheduler.policy", caf::atom("sharing"));
  set("scheduler.max-throughput", size_t{100});
  load<caf::io::middleman>();
  set("middleman.workers", size_t{0});
  set("middleman.heartbeat-interval", caf::timespan{heartbeat});
  set("middleman.connection-timeout", caf::timespan{silence});
  set("middleman.app-identifiers", std::vector<std::string>{"kernelmill/1"});
}

caf::actor_system& lasting_system() {
  return *new caf::actor_system{*new cluster_config};
}

void leave(int code) {
  std::fflush(nullptr);
  std::_Exit(code);
}

expected<uint16_t> publish_head(caf::actor_system& system, const head_actor& head,
                                const network_address& at, const shared_tls& tls) {
  return publish_behind_door(system, caf::actor_cast<caf::strong_actor_ptr>(head),
                             system.message_types(head), at, tls);
}

expected<head_actor> reach_head(caf::actor_system& system, const network_address& at,
                                const shared_tls& tls) {
  auto link = dial(at, tls);
  KM_TRY(link);
  caf::detail::type_list<head_actor> interface;
  auto head = greet(system, std::move(*link), at.port, system.message_types(interface));
  if (head) return caf::actor_cast<head_actor>(*head);
  auto why = system.render(head.error());
  if (head.error() == caf::sec::disconnect_during_handshake) return refused_by_head(at, why);
  return unreachable_head(at, why);
}

} // namespace kernelmill
