#include "tests/sim/cluster/user.hpp"

#include "messages/base/json_value.hpp"
#include "messages/fault.hpp"

namespace kernelmill::sim {

using namespace std::chrono_literals;
using json = nlohmann::ordered_json;

std::string server_name(uint32_t i) {
  return "server" + std::to_string(i);
}

void sim_user::meet(head_actor head, std::shared_ptr<bool> alive) {
  head_ = std::move(head);
  alive_ = std::move(alive);
  actor_ =
      on_.keep(worker_thread_actor{on_.system().spawn([this](worker_thread_actor::pointer self) {
        self_ = self;
        return blocking_worker(self);
      })});
}

void sim_user::kill() {
  caf::anon_send_exit(actor_, caf::exit_reason::kill);
}

void sim_user::command(const std::string& verb, const std::string& subject) {
  command(verb, subject, {}, [](const json&) {});
}

void sim_user::command(const std::string& verb, const std::string& subject, const json& document,
                       std::function<void(const json&)> then) {
  auto request = build<wire::ControlRequest>([&](wire::ControlRequest::Builder x) {
    x.setVerb(verb);
    x.setSubject(subject);
    if (document.is_string())
      x.setDocument(document.get<std::string>());
    else if (!document.is_null())
      x.setDocument(document.dump());
    x.setProtocol(protocol_version);
  });
  asks([request, then, alive = alive_](auto* self, const head_actor& head) {
    self->request(head, 10s, atom::control_v, request)
        .then(
            [then, alive](const Message<wire::ControlReply>& says) {
              auto x = says.open();
              if (*alive && fault_of(x->getFault()).cls == fault_class::none)
                then(json::parse(x->getDocument().cStr()));
            },
            [](caf::error&) {});
  });
}

void sim_user::look() {
  command("status", {}, {}, [this](const json& says) { care_for_runs(says["runs"]); });
  command("policy_list", {}, {}, [this](const json& says) { care_for_servers(says["servers"]); });
}

void sim_user::care_for_runs(const json& rows) {
  for (uint32_t i = 0; i < std::size(run_names); ++i) {
    std::string name = run_names[i], state;
    if (finished_.contains(name)) continue;
    uint64_t turns = 0;
    for (const auto& x : rows)
      if (x["run"] == name) {
        state = x["state"];
        turns = x["turns"];
      }
    if (state == "finished")
      finished_[name] = turns;
    else if (state.empty())
      runs_->is_known(name) ? command("resume", name)
                            : command("submit", {}, name, [](const json&) {});
    else if (state == "failed" || state == "incomplete")
      on_.mark("a run that failed is resumed"), command("resume", name);
    else if (state == "paused" && !on_.on(fault_kind::run_paused, i))
      on_.mark("a paused run goes on"), command("resume", name);
  }
}

void sim_user::care_for_servers(const json& rows) {
  for (uint32_t i = 0; i < server_count; ++i) {
    bool there = on_.on(fault_kind::server_left, i);
    for (const auto& x : rows) there = there || x["name"] == server_name(i);
    if (there) continue;
    on_.mark("a policy server is attached");
    command("policy_attach", {},
            {{"name", server_name(i)},
             {"url", "http://" + server_name(i)},
             {"kind", "openai"},
             {"model", "m"}},
            [](const json&) {});
  }
}

} // namespace kernelmill::sim
