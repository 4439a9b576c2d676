#include "launch/cluster/control_client.hpp"

#include <caf/all.hpp>

#include "messages/base/json_value.hpp"
#include "messages/fault.hpp"

namespace kernelmill {

using json = nlohmann::ordered_json;

namespace {

// A submission loads tasks and an index before it is answered.
constexpr auto answer_deadline = std::chrono::minutes{2};

expected<json> read_reply(const Message<wire::ControlReply>& reply) {
  auto x = reply.open();
  if (auto fault = fault_of(x->getFault()); fault.cls != fault_class::none)
    return tl::unexpected<error>{fault};
  auto document = json::parse(x->getDocument().cStr(), nullptr, false);
  if (document.is_object()) return document;
  return infrastructure_error("malformed_message", "failed to read the head's answer", "");
}

} // namespace

struct head_line::state {
  cluster_config config;
  caf::actor_system system{config};
  head_actor gate;
};

head_line::head_line(std::unique_ptr<state> x) : state_(std::move(x)) {
  // nop
}

head_line::~head_line() = default;

expected<std::unique_ptr<head_line>> head_line::open(const network_address& head,
                                                     const link_options& link) {
  auto tls = choose_link(link, head);
  KM_TRY(tls);
  auto x = std::make_unique<state>();
  auto gate = reach_head(x->system, head, *tls);
  KM_TRY(gate);
  x->gate = std::move(*gate);
  return std::unique_ptr<head_line>{new head_line{std::move(x)}};
}

expected<json> head_line::ask(const std::string& verb, const std::string& subject,
                              const std::string& document) {
  return ask_head_actor(state_->system, state_->gate, verb, subject, document);
}

expected<json> ask_head_actor(caf::actor_system& system, const head_actor& head,
                              const std::string& verb, const std::string& subject,
                              const std::string& document) {
  auto request = build<wire::ControlRequest>([&](wire::ControlRequest::Builder x) {
    x.setVerb(verb);
    x.setSubject(subject);
    x.setDocument(document);
    x.setProtocol(protocol_version);
  });
  expected<json> result;
  caf::scoped_actor self{system};
  self->request(head, answer_deadline, atom::control_v, request)
      .receive([&](const Message<wire::ControlReply>& x) { result = read_reply(x); },
               [&](caf::error& why) {
                 result = infrastructure_error(
                     "head_unreachable",
                     "failed to get an answer of the head: " + system.render(why),
                     "`kernelmill status` shows whether it took the command");
               });
  return result;
}

expected<json> ask_head(const network_address& head, const link_options& link,
                        const std::string& verb, const std::string& subject,
                        const std::string& document) {
  auto line = head_line::open(head, link);
  KM_TRY(line);
  return (*line)->ask(verb, subject, document);
}

} // namespace kernelmill
