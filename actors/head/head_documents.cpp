#include "actors/head/head_documents.hpp"

#include <algorithm>

#include "messages/base/json_fields.hpp"
#include "messages/base/json_value.hpp"
#include "messages/defaults.hpp"
#include "messages/fault.hpp"

namespace kernelmill {

namespace {

json node_row(const member_facts& x) {
  return {{"node", x.name},           {"state", x.draining ? "draining" : "serving"},
          {"backend", x.backend},     {"architecture", x.architecture},
          {"hardware", x.hardware},   {"toolchain", x.toolchain},
          {"compilers", x.compilers}, {"slots", x.slots},
          {"layers", x.layers},       {"since", x.since}};
}

json lost_row(const member_facts& x) {
  return {{"node", x.name},
          {"backend", x.backend},
          {"architecture", x.architecture},
          {"hardware", x.hardware},
          {"since", x.since}};
}

/// Why a run in progress gets nothing done, or why one has ended.
error why_of(const run_row& x, const roster& nodes, size_t slots) {
  if (x.state != "running" || slots > 0 || !x.fault.category.empty()) return x.fault;
  std::string lost;
  for (const auto& one : nodes.lost_members())
    if (one.lane() == x.lane) lost += (lost.empty() ? "; lost: " : ", ") + one.name;
  return {fault_class::infrastructure, "no_nodes",
          "the run " + x.name + " waits: no node offers slots of " + x.lane + lost,
          "start one with `kernelmill node --head ...`"};
}

json row_of(const run_row& x, const roster& nodes) {
  auto slots = nodes.facts_of(x.lane, x.required_layers).slots.size();
  auto why = why_of(x, nodes, slots);
  auto unfit = json::array();
  for (const auto& [node, layers] : nodes.unfit_nodes(x.lane, x.required_layers))
    unfit.push_back(lack_text(node, layers));
  // Flat, so that a shell script can read it.
  return {{"run", x.name},
          {"state", x.state},
          {"lane", x.lane},
          {"priority", x.priority},
          {"directory", x.directory},
          {"episodes", x.numbers.planned},
          {"ended", x.numbers.ended},
          {"live", x.numbers.live},
          {"turns", x.numbers.turns},
          {"accepted", x.numbers.accepted},
          {"rejected", x.numbers.rejected},
          {"infrastructure", x.numbers.infrastructure},
          {"seconds", x.seconds},
          {"category", why.category},
          {"message", why.message},
          {"required_layers", x.required_layers},
          {"slots", slots},
          {"unfit_nodes", unfit}};
}

} // namespace

json status_document(const head_view& x) {
  json nodes = json::array(), lost = json::array(), lanes = json::array(), runs = json::array();
  for (const auto& one : x.nodes.lost_members()) lost.push_back(lost_row(one));
  for (const auto& [name, one] : x.nodes.members()) nodes.push_back(node_row(one));
  for (const auto& [name, says] : x.lanes) {
    json row = {{"lane", name}};
    if (says) row.update(numbers_of(*says->open()));
    lanes.push_back(std::move(row));
  }
  for (const auto& one : x.runs) runs.push_back(row_of(one, x.nodes));
  return {{"address", x.address},
          {"build", x.build},
          {"epoch", std::to_string(x.epoch)},
          {"nodes_lost", x.nodes.lost()},
          {"nodes", nodes},
          {"lost", lost},
          {"lanes", lanes},
          {"runs", runs}};
}

run_numbers numbers_of_run(wire::Snapshot::Reader x) {
  auto all = numbers_of(x);
  auto number = [&](const char* key) { return all.value(key, uint64_t{0}); };
  return {number("planned"),  number("live"),     number("ended"),         number("turns"),
          number("accepted"), number("rejected"), number("infrastructure")};
}

run_numbers numbers_of_run(wire::Totals::Reader x, uint64_t planned) {
  return {planned,
          0,
          x.getEpisodes(),
          x.getTurns(),
          x.getAccepted(),
          x.getRejected(),
          x.getInfrastructure()};
}

json numbers_of(wire::Snapshot::Reader x) {
  json result = json::object();
  for (auto number : x.getNumbers())
    result[number.getName().cStr()] = static_cast<uint64_t>(number.getValue());
  return result;
}

Message<wire::ControlReply> reply_of(const expected<json>& x) {
  return build<wire::ControlReply>([&](wire::ControlReply::Builder b) {
    if (x)
      b.setDocument(x->dump(-1, ' ', false, json::error_handler_t::replace));
    else
      set_fault(b.initFault(), x.error());
  });
}

expected<json> read_document(const std::string& text) {
  auto result = json::parse(text.empty() ? "{}" : text, nullptr, false);
  if (result.is_object()) return result;
  return configuration_error("usage", "failed to read the command's document: it is no JSON object",
                             "is the head of another version?");
}

std::string host_of_url(const std::string& url) {
  auto begin = url.find("://");
  begin = begin == std::string::npos ? 0 : begin + 3;
  return url.substr(begin, url.find('/', begin) - begin);
}

Message<wire::PolicyServer> server_message(const json& facts) {
  return build<wire::PolicyServer>([&](wire::PolicyServer::Builder x) {
    x.setName(text_in(facts, "name"));
    x.setUrl(text_in(facts, "url"));
    x.setKind(text_in(facts, "kind"));
    x.setModel(text_in(facts, "model"));
    auto most = count_in(facts, "max_in_flight", x.getMaxInFlight());
    x.setMaxInFlight(static_cast<uint32_t>(std::min<uint64_t>(most, UINT32_MAX)));
    x.setApiKeyEnv(text_in(facts, "api_key_env"));
    x.setApiKeyFile(text_in(facts, "api_key_file"));
    x.setTokens(text_in(facts, "tokens"));
  });
}

json server_row(const std::string& name, const json* facts) {
  json result = {{"name", name}};
  auto known = facts ? *facts : json::object();
  for (auto key : {"url", "kind", "model", "tokens", "weights"}) result[key] = text_in(known, key);
  result["max_in_flight"] = count_in(known, "max_in_flight", defaults::policy_max_in_flight);
  return result;
}

} // namespace kernelmill
