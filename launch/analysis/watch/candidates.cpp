#include "launch/analysis/watch/candidates.hpp"

#include "messages/base/json_value.hpp"

namespace kernelmill::watch {

namespace {

json candidate_json(const candidate_entry& x) {
  json result = {{"id", x.id},
                 {"parent", x.parent},
                 {"sha256", x.sha256},
                 {"role", x.role},
                 {"origin", x.origin},
                 {"status", x.status},
                 {"patch_kind", x.patch_kind},
                 {"depth", x.depth},
                 {"turn", x.turn},
                 {"call", x.call},
                 {"tool", x.tool},
                 {"speedup", nullptr},
                 {"best", x.best},
                 {"dominated", x.dominated},
                 {"active", x.active},
                 {"summary", x.summary}};
  if (x.speedup)
    result["speedup"] = {
        {"estimate", x.speedup->estimate}, {"low", x.speedup->low}, {"high", x.speedup->high}};
  return result;
}

} // namespace

void add_candidates(json& to, const std::vector<Message<wire::Record>>& turns,
                    const chosen& choices) {
  auto graph = graph_of(turns);
  to["candidates"] = json::array();
  for (const auto& x : graph.entries) {
    auto entry = candidate_json(x);
    entry["choice"] = nullptr;
    if (auto choice = choices.find(x.id); choice != choices.end())
      entry["choice"] = {{"status", choice->second.status},
                         {"by", "human"},
                         {"note", choice->second.note},
                         {"at", choice->second.at}};
    to["candidates"].push_back(std::move(entry));
  }
  to["problems"] = graph.problems;
}

json call_json(wire::CallRecord::Reader call, const std::string& observation) {
  return {{"id", std::string{call.getId()}},
          {"tool", std::string{call.getTool()}},
          {"status", std::string{call.getStatus()}},
          {"transition", std::string{call.getTransition()}},
          {"input", std::string{call.getInput()}},
          {"output", std::string{call.getOutput()}},
          {"steps", call.getSteps()},
          {"gpu_seconds", call.getGpuSeconds()},
          {"seconds", call.getSeconds()},
          {"hidden", call.getHidden()},
          {"first_line", observation.substr(0, observation.find('\n'))}};
}

void add_tool_end(json& to, wire::EpisodeRecord::Reader end) {
  if (end.getTerminalState().size() == 0) return;
  to["terminal_state"] = std::string{end.getTerminalState()};
  to["steps"] = end.getSteps();
  to["gpu_seconds"] = end.getGpuSeconds();
}

} // namespace kernelmill::watch
