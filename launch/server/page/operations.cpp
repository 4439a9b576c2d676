// The table of ways to ask, and docs/reference/page-openapi.json made from it.

#include "launch/server/page/routes.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::page {

namespace {

using json = nlohmann::ordered_json;

const parameter where{"where", "string",
                      "A condition over the rows' keys: `state=queued and age>60`."};
const parameter sort{"sort", "string", "A key of the rows; `-KEY` sorts the other way."};
const parameter offset{"offset", "integer", "Rows to skip at the beginning."};
const parameter limit{"limit", "integer", "Maximum number of rows, at most 10000. Default 100."};
const parameter of_run{"run", "string", "Of this run alone."};

} // namespace

const std::vector<operation>& operations() {
  static const std::vector<operation> all{
      {"runs", "GET", "/api/v1/runs", "All runs below the root.", {where, sort, offset, limit}},
      {"run", "GET", "/api/v1/runs/{run}", "The funnel of a run and where its time went."},
      {"episodes",
       "GET",
       "/api/v1/runs/{run}/episodes",
       "Every episode of a run, live or ended.",
       {where, sort, offset, limit}},
      {"groups",
       "GET",
       "/api/v1/runs/{run}/groups",
       "Groups of a run with their members: best rewards, mean, deviation, outcomes.",
       {where, sort, offset, limit}},
      {"tasks",
       "GET",
       "/api/v1/runs/{run}/tasks",
       "Tasks of a run: episodes, turns, mean best reward, best speedup.",
       {where, sort, offset, limit}},
      {"config", "GET", "/api/v1/runs/{run}/config", "What a run was started with."},
      {"log",
       "GET",
       "/api/v1/runs/{run}/log",
       "The last lines of a run's log.",
       {{"tail", "integer", "How many lines. Default 100."}}},
      {"set_tags", "POST", "/api/v1/runs/{run}/tags",
       "Replaces the tags of a run: {\"tags\": [\"baseline\"]}."},
      {"kernels",
       "GET",
       "/api/v1/kernels",
       "The best verified kernel of each task and device, over all runs.",
       {where, sort, offset, limit}},
      {"compare",
       "GET",
       "/api/v1/compare",
       "What differs between two runs, groups, episodes or turns.",
       {{"a", "string", "RUN, RUN/g3, RUN/g3.e1 or RUN/g3.e1.t2; the run by its folder."},
        {"b", "string", "The same."}}},
      {"episode", "GET", "/api/v1/runs/{run}/episodes/{episode}", "An episode turn by turn."},
      {"lineage", "GET", "/api/v1/runs/{run}/episodes/{episode}/lineage",
       "An episode's candidates by parent."},
      {"text",
       "GET",
       "/api/v1/runs/{run}/turns/{turn}/{part}",
       "One text of a turn, whole: `completion`, `candidate`, `feedback` or `build`.",
       {},
       "text/plain"},
      {"explain",
       "GET",
       "/api/v1/runs/{run}/explain",
       "Why a run or one of its episodes waits.",
       {{"episode", "string", "An episode of it."}}},
      {"positions", "GET", "/api/v1/runs/{run}/positions",
       "Reward and speedup by the position of a turn in its episode, with bands."},
      {"findings",
       "GET",
       "/api/v1/runs/{run}/findings",
       "Findings of integrity, the latest first.",
       {where, sort, offset, limit}},
      {"lanes",
       "GET",
       "/api/v1/runs/{run}/lanes",
       "Which job held which slot, the latest first.",
       {offset, limit}},
      {"search", "GET", "/api/v1/runs/{run}/search",
       "A search in progress or over: `best_so_far` against turns, tokens and slot seconds; "
       "`tree`, "
       "each episode with parent, island, niche, outcome (verified, failed, unchanged, lost, "
       "running, "
       "interrupted) and speedup; `frontier`, what the next generation begins with; `elites` by "
       "island "
       "and niche; `winner`. 404: the run is no search."},
      {"notes", "GET", "/api/v1/runs/{run}/notes", "Readers' notes on verdicts."},
      {"add_note", "POST", "/api/v1/runs/{run}/notes",
       "Adds a note: turn, label (clean, reward_hack, rubric_leak, bug), quote, text."},
      {"remove_note", "DELETE", "/api/v1/runs/{run}/notes/{note}", "Removes a note."},
      {"control", "POST", "/api/v1/runs/{run}/control",
       "Does `pause`, `resume` or `cancel` to a run: {\"verb\": \"pause\"}. Only with a token."},
      {"about", "GET", "/api/v1/about",
       "What this server is, and which verbs it accepts with a token."},
      {"drain", "POST", "/api/v1/nodes/{node}/control",
       "Drains a node of this head: {\"verb\": \"drain\"}. Only with a token."},
      {"attach", "POST", "/api/v1/policies",
       "Attaches a policy server that needs no key to this head: url, name, kind, model, "
       "max_in_flight. Only with a token."},
      {"detach", "DELETE", "/api/v1/policies/{server}",
       "Drains and detaches a policy server of this head. Only with a token."},
      {"live",
       "GET",
       "/api/v1/episodes",
       "Live episodes of all runs, with totals and queues.",
       {of_run, where, sort, offset, limit}},
      {"top",
       "GET",
       "/api/v1/top",
       "Totals, queues, slots, and the episodes that matter.",
       {of_run, limit}},
      {"actors", "GET", "/api/v1/actors", "Actors of runs in progress.", {of_run, where, sort}},
      {"nodes", "GET", "/api/v1/nodes", "Machines that work.", {where, sort}},
      {"gpus", "GET", "/api/v1/gpus", "Slots and GPUs.", {where, sort}},
      {"policies", "GET", "/api/v1/policies", "Policy servers of runs in progress."},
      {"events",
       "GET",
       "/api/v1/events",
       "Server-sent events: `turn` and `group` as they are committed, `run` when a process begins "
       "or "
       "ends to work on one, `live` once a second, `dropped` with a count. Last-Event-ID goes on "
       "where a reader left.",
       {of_run,
        {"topics", "string",
         "`turns`, `runs`, `live`, or several with commas; `turns` unless told."},
        {"most", "integer",
         "Turns a second, the newest; the others are counted by `dropped`. All unless told."},
        {"since", "string", "An event id, for clients that cannot send Last-Event-ID."}},
       "text/event-stream"},
      {"metrics", "GET", "/metrics", "For Prometheus.", {}, "text/plain; version=0.0.4"},
      {"healthz", "GET", "/healthz", "The process serves.", {}, "application/json", true},
      {"livez", "GET", "/livez", "The process serves.", {}, "application/json", true},
      {"readyz",
       "GET",
       "/readyz",
       "The folder of runs can be read.",
       {},
       "application/json",
       true}};
  return all;
}

std::string openapi_text() {
  json paths = json::object();
  for (const auto& x : operations()) {
    json one{{"operationId", x.id}, {"summary", x.summary}};
    auto parameters = json::array();
    std::string path = x.path;
    for (auto from = path.find('{'); from != path.npos; from = path.find('{', from + 1))
      parameters.push_back({{"name", path.substr(from + 1, path.find('}', from) - from - 1)},
                            {"in", "path"},
                            {"required", true},
                            {"schema", {{"type", "string"}}}});
    for (const auto& p : x.query)
      parameters.push_back({{"name", p.name},
                            {"in", "query"},
                            {"required", false},
                            {"description", p.doc},
                            {"schema", {{"type", p.type}}}});
    if (!parameters.empty()) one["parameters"] = parameters;
    if (std::string{x.method} == "POST")
      one["requestBody"] = {
          {"required", true},
          {"content", {{"application/json", {{"schema", {{"type", "object"}}}}}}}};
    bool text = std::string{x.type} != "application/json";
    one["responses"]["200"] = {
        {"description", "The answer."},
        {"content", {{x.type, {{"schema", {{"type", text ? "string" : "object"}}}}}}}};
    if (!x.open)
      for (const auto& [status, words] :
           {std::pair{"400", "A parameter is unknown or wrong; the message names it."},
            {"401", "The token is missing or wrong."},
            {"404", "There is none of that name."},
            {"421", "The server is not called so."},
            {"503", "Too many ask; try again later."}})
        one["responses"][status] = {
            {"description", words},
            {"content",
             {{"application/json", {{"schema", {{"$ref", "#/components/schemas/Error"}}}}}}}};
    if (x.open) one["security"] = json::array();
    std::string method = x.method;
    for (auto& c : method) c = static_cast<char>(c | 0x20);
    paths[x.path][method] = std::move(one);
  }
  json result{{"openapi", "3.0.3"},
              {"info",
               {{"title", "Kernelmill: the monitor"},
                {"version", "1"},
                {"description",
                 "Served by `kernelmill page`, `run --monitor` and `head --monitor`. Unknown "
                 "parameters are errors."}}},
              {"security", json::array({{{"token", json::array()}}})},
              {"paths", std::move(paths)}};
  result["components"]["securitySchemes"]["token"] = {{"type", "http"}, {"scheme", "bearer"}};
  result["components"]["schemas"]["Error"] = {
      {"type", "object"},
      {"required", {"error"}},
      {"properties",
       {{"error", {{"type", "object"}, {"description", "Class, category, message and hint."}}}}}};
  return result.dump(2) + "\n";
}

} // namespace kernelmill::page
