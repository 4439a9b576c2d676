// Actors, machines and slots, from the same trees.

#include <fmt/format.h>

#include "launch/analysis/watch/live.hpp"
#include "launch/analysis/watch/query.hpp"
#include "launch/analysis/watch/views.hpp"
#include "messages/base/clock.hpp"
#include "messages/base/json_fields.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::watch {

namespace {

const std::vector<std::string>& keys_of_actors() {
  static const std::vector<std::string> all{"node",           "run",
                                            "actor",          "id",
                                            "number",         "state",
                                            "age_seconds",    "mailbox",
                                            "oldest_seconds", "progress_seconds",
                                            "detail"};
  return all;
}

const std::vector<std::string>& keys_of_nodes() {
  static const std::vector<std::string> all{
      "node",  "state", "backend", "hardware",          "compilers", "slots",       "busy",
      "stuck", "cores", "load",    "memory_free_bytes", "gpus",      "age_seconds", "toolchain"};
  return all;
}

const std::vector<std::string>& keys_of_gpus() {
  static const std::vector<std::string> all{
      "node",    "slot", "state",   "detail",    "age_seconds", "done",  "infrastructure_faults",
      "mailbox", "gpu",  "celsius", "clock_mhz", "watts",       "slowed"};
  return all;
}

/// Actors of one tree, with the node that they are on.
struct place {
  std::string node; ///< empty: this machine
  std::string run;  ///< empty: of no run
  live_view view;
};

json actor_json(const place& at, const actor_row& x) {
  json result = {{"node", at.node}, {"run", at.run}, {"actor", x.role}, {"id", x.id}};
  result["number"] = x.number;
  result["state"] = x.state;
  result["age_seconds"] =
      x.since > 0 ? json(std::max(0.0, seconds_since_1970() - x.since)) : json(nullptr);
  result["mailbox"] = x.number > 0 ? json(x.mailbox) : json(nullptr);
  result["oldest_seconds"] = x.oldest_seconds;
  result["progress_seconds"] = x.progress_seconds >= 0 ? json(x.progress_seconds) : json(nullptr);
  result["detail"] = x.detail;
  return result;
}

/// A tree that belongs to no run: a node of a head.
live_view read_tree(wire::Snapshot::Reader x) {
  live_run one;
  one.says = copy_of<wire::Snapshot>(x);
  return read_live(one);
}

expected<std::vector<place>> places_of(const world& in, const std::string& run) {
  std::vector<place> result;
  auto found = live_runs(in, run);
  KM_TRY(found);
  for (const auto& one : *found) result.push_back({"", one.run.name, read_live(one)});
  if (!in.ask_nodes || !run.empty()) return result;
  auto head = in.ask_nodes();
  KM_TRY(head);
  auto view = head->open();
  for (auto child : view->getChildren()) {
    auto name = std::string{child.getId().cStr()};
    result.push_back({child.getActor() == "node" ? name : "", "", read_tree(child)});
  }
  return result;
}

bool is_monitors_own(const actor_row& x) {
  return x.role == "monitor" || x.role == "machine" || x.role == "gpu";
}

json machine_of(const live_view& view) {
  for (const auto& x : view.actors)
    if (x.role == "machine")
      return {{"hardware", x.detail}, {"name", x.id}, {"numbers", x.numbers}};
  return nullptr;
}

// What the actors of a machine say of it.
void add_slots(json& row, const live_view& view) {
  uint64_t slots = 0, compilers = 0, busy = 0, stuck = 0, gpus = 0;
  for (const auto& x : view.actors) {
    bool slot = x.role == "gpu_runner", compiler = x.role == "compiler";
    slots += slot && x.state != "gone";
    compilers += compiler && x.state != "gone";
    busy += slot && x.state == "evaluating";
    stuck += x.state == "stuck";
    gpus += x.role == "gpu";
  }
  row["slots"] = slots;
  row["busy"] = busy;
  row["compilers"] = compilers;
  row["stuck"] = stuck;
  row["gpus"] = gpus;
  auto machine = machine_of(view);
  if (machine.is_null()) return;
  row["cores"] = number_in(machine["numbers"], "cores");
  row["load"] = number_in(machine["numbers"], "load");
  row["memory_free_bytes"] = number_in(machine["numbers"], "memory_free_bytes");
  if (row.value("hardware", "").empty()) row["hardware"] = machine["hardware"];
}

std::vector<json> rows_of_head(const json& status, const std::vector<place>& places) {
  std::vector<json> rows;
  auto age = [](const json& x) {
    return std::max(0.0, seconds_since_1970() - x.value("since", 0.0));
  };
  for (const auto& x : status["nodes"]) {
    json row = {{"node", x["node"]},           {"state", x["state"]},
                {"backend", x["backend"]},     {"hardware", x["hardware"]},
                {"toolchain", x["toolchain"]}, {"age_seconds", age(x)}};
    row["slots"] = x["slots"].size();
    row["compilers"] = x["compilers"];
    for (const auto& at : places)
      if (at.node == x["node"] && !at.node.empty()) {
        for (const auto& own : at.view.actors)
          if (own.role == "node" && own.state == "stuck") row["state"] = "stuck";
        auto offered = row["slots"], compilers = row["compilers"];
        add_slots(row, at.view);
        if (row["slots"] == 0) row["slots"] = offered; // it has not answered
        if (row["compilers"] == 0) row["compilers"] = compilers;
      }
    rows.push_back(std::move(row));
  }
  for (const auto& x : status["lost"])
    rows.push_back({{"node", x["node"]},
                    {"state", "lost"},
                    {"backend", x["backend"]},
                    {"hardware", x["hardware"]},
                    {"age_seconds", age(x)}});
  return rows;
}

json slot_json(const place& at, const actor_row& x) {
  json row = {{"node", at.node}, {"slot", x.id}, {"state", x.state}, {"detail", x.detail}};
  row["age_seconds"] =
      x.since > 0 ? json(std::max(0.0, seconds_since_1970() - x.since)) : json(nullptr);
  row["done"] = number_in(x.numbers, "done");
  row["infrastructure_faults"] = number_in(x.numbers, "infrastructure_faults");
  row["mailbox"] = x.mailbox;
  // "gpu0 (NVIDIA H200)" is evaluated on the GPU "gpu0".
  for (const auto& gpu : at.view.actors) {
    if (gpu.role != "gpu" || x.id.substr(0, x.id.find(' ')) != gpu.id) continue;
    row["gpu"] = gpu.detail;
    row["celsius"] = number_in(gpu.numbers, "celsius");
    row["clock_mhz"] = number_in(gpu.numbers, "clock_mhz");
    row["watts"] = number_in(gpu.numbers, "watts");
    row["slowed"] = number_in(gpu.numbers, "slowed") > 0;
  }
  return row;
}

} // namespace

expected<json> actors_view(const world& in, const json& query) {
  KM_TRY(check_query(query, {"run", "where", "sort", "all", "name"}));
  KM_TRY(chosen_rows({}, query, keys_of_actors()));
  auto places = places_of(in, text_in(query, "run"));
  KM_TRY(places);
  bool all = query.value("all", false);
  auto name = text_in(query, "name");
  std::vector<json> rows;
  for (const auto& at : *places) {
    for (const auto& x : at.view.actors) {
      if (!all && name.empty() && is_monitors_own(x)) continue;
      auto full = x.id.empty() ? x.role : x.role + "/" + x.id;
      if (!name.empty() && name != x.role && name != x.id && name != full &&
          name != std::to_string(x.number))
        continue;
      rows.push_back(actor_json(at, x));
      if (!name.empty()) rows.back()["numbers"] = x.numbers;
    }
    if (name.empty()) continue;
    for (const auto& x : at.view.episodes)
      if (x.id == name || at.run + "/" + x.id == name) rows.push_back(to_json(at.view, x));
  }
  if (!name.empty() && rows.empty())
    return configuration_error("not_found", "failed to find the actor '" + name + "'",
                               "`kernelmill actor ls` lists them");
  auto chosen = chosen_rows(std::move(rows), query, keys_of_actors());
  KM_TRY(chosen);
  return json{{"actors", std::move(*chosen)}};
}

expected<json> nodes_view(const world& in, const json& query) {
  KM_TRY(check_query(query, {"where", "sort"}));
  KM_TRY(chosen_rows({}, query, keys_of_nodes()));
  auto places = places_of(in, {});
  KM_TRY(places);
  std::vector<json> rows;
  if (in.status) {
    rows = rows_of_head(in.status(), *places);
  } else {
    for (const auto& at : *places) {
      auto machine = machine_of(at.view);
      json row = {{"node", machine.is_null() ? json("this machine") : machine["name"]},
                  {"state", "serving " + at.run},
                  {"hardware", ""}};
      add_slots(row, at.view);
      rows.push_back(std::move(row));
    }
  }
  auto chosen = chosen_rows(std::move(rows), query, keys_of_nodes());
  KM_TRY(chosen);
  return json{{"nodes", std::move(*chosen)}};
}

expected<json> gpus_view(const world& in, const json& query) {
  KM_TRY(check_query(query, {"where", "sort"}));
  KM_TRY(chosen_rows({}, query, keys_of_gpus()));
  auto places = places_of(in, {});
  KM_TRY(places);
  std::vector<json> rows;
  for (const auto& at : *places) {
    if (in.ask_nodes && at.node.empty()) continue; // stands for a node's own
    for (const auto& x : at.view.actors)
      if (x.role == "gpu_runner") rows.push_back(slot_json(at, x));
  }
  auto chosen = chosen_rows(std::move(rows), query, keys_of_gpus());
  KM_TRY(chosen);
  return json{{"gpus", std::move(*chosen)}};
}

} // namespace kernelmill::watch
