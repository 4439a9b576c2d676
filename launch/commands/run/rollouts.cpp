// `kernelmill rollouts log`: what was handed to trainers, from the log itself.

#include <fmt/format.h>

#include "actors/handoff/handoff.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/options.hpp"
#include "messages/base/json_value.hpp"
#include "messages/json.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

json counts_of(const handoff::order_entry& x) {
  json result;
  for (size_t i = 0; i < handoff::group_states; ++i)
    result[handoff::to_string(static_cast<handoff::group_state>(i))] = x.counts[i];
  return result;
}

/// One event, without the configuration that an order brings along.
json event_json(uint64_t number, wire::HandoffEvent::Reader x) {
  auto result = kernelmill::to_json(capnp::DynamicStruct::Reader{x});
  if (result.contains("order") && result["order"].is_object()) result["order"].erase("config");
  json numbered{{"number", number}};
  numbered.update(result);
  return numbered;
}

std::string line_of(const json& event) {
  for (const auto& [key, value] : event.items())
    if (key != "number" && key != "at")
      return fmt::format("{:>6}  {}  {}\n", event["number"].get<uint64_t>(), key, value.dump());
  return {};
}

expected<int> rollouts_log(const invocation& in) {
  auto ledger =
      handoff_ledger::open({.directory = in.value("--runs") + "/handoff", .read_only = true});
  KM_TRY(ledger);
  handoff::lease_table table;
  json events = json::array();
  auto take = [&](uint64_t number, wire::HandoffEvent::Reader x) -> expected<void> {
    KM_TRY(table.apply(x));
    auto event = event_json(number, x);
    if (in.json)
      events.push_back(std::move(event));
    else
      cli::print(line_of(event));
    return {};
  };
  KM_TRY(ledger->scan(1, take));
  json orders = json::object();
  for (const auto& [id, x] : table.orders()) orders[id] = counts_of(x);
  if (in.json) {
    cli::print_json({{"orders", orders}, {"events", events}});
    return 0;
  }
  for (const auto& [id, counts] : orders.items()) {
    std::string text;
    for (const auto& [state, count] : counts.items())
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count.get<uint32_t>(), state);
    cli::print(id + ": " + text + "\n");
  }
  return 0;
}

} // namespace

cli::command rollouts_log_row() {
  return without_tables(
      {"rollouts log",
       "Prints what was handed to trainers, event by event.",
       "kernelmill rollouts log --runs runs",
       "Reads the log of `kernelmill serve --runs`, also while that runs, and checks each event "
       "against those before\n"
       "it. In the end it prints how many groups of each order are in which state.",
       {},
       {{"--runs",
         "DIR",
         "The folder that `kernelmill serve` was given.",
         "runs",
         false,
         {},
         completes::directory}},
       rollouts_log});
}

} // namespace kernelmill::commands
