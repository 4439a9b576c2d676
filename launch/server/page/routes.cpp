#include "launch/server/page/routes.hpp"

#include <charconv>

#include <unistd.h>

#include "launch/analysis/watch/live.hpp"
#include "launch/analysis/watch/query.hpp"
#include "launch/analysis/watch/views.hpp"
#include "launch/server/page/changes.hpp"
#include "launch/server/page/comparing.hpp"
#include "launch/server/page/documents.hpp"
#include "launch/server/page/notes.hpp"
#include "launch/server/page/responses.hpp"
#include "launch/server/page/searching.hpp"
#include "launch/server/page/settled.hpp"
#include "launch/server/page/summaries.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::page {

using watch::json;

namespace {

using namespace std::chrono_literals;

using page_state_ptr = std::shared_ptr<page_state>;
using maker = std::function<expected<json>(const watch::world&, const http::request&, const json&)>;

/// The query as views read it: numbers as numbers. Errors: "bad_query".
expected<json> query_of(const operation& of, const http::request& r) {
  auto result = json::object();
  for (const auto& p : of.query) {
    auto i = r.query.find(p.name);
    if (i == r.query.end()) continue;
    if (std::string_view{p.type} != "integer") {
      result[p.name] = i->second;
      continue;
    }
    uint64_t value = 0;
    const auto* end = i->second.data() + i->second.size();
    auto [last, code] = std::from_chars(i->second.data(), end, value);
    if (code != std::errc{} || last != end || i->second.empty())
      return configuration_error("bad_query",
                                 std::string{"the query parameter \""} + p.name +
                                     "\" must be a whole number from 0 on",
                                 "");
    result[p.name] = value;
  }
  return result;
}

std::string key_of(const http::request& r) {
  auto result = r.path;
  for (const auto& [name, value] : r.query) result += "\n" + name + "=" + value;
  return result;
}

/// A view of launch/analysis/watch that takes the query as it is; a run is named by its folder.
maker view(expected<json> (*make)(const watch::world&, const json&)) {
  return [make](const watch::world& in, const http::request&, json query) -> expected<json> {
    if (auto i = query.find("run"); i != query.end()) {
      auto run = run_below(in, i->get<std::string>());
      KM_TRY(run);
      query["run"] = run->path;
    }
    return make(in, query);
  };
}

maker of_one_run(
    std::function<expected<json>(const watch::world&, const run_directory&, const json&)> make) {
  return [make = std::move(make)](const watch::world& in, const http::request& r,
                                  const json& query) -> expected<json> {
    auto run = run_below(in, part(r, "run"));
    KM_TRY(run);
    return make(in, *run, query);
  };
}

expected<json> stats(const watch::world& in, const run_directory& run, const json&) {
  return watch::stats_view(in, {{"run", run.path}});
}

expected<json> explain(const watch::world& in, const run_directory& run, const json& query) {
  auto episode = query.value("episode", "");
  return watch::explain_view(in, {{"what", episode.empty() ? run.path : run.path + "/" + episode}});
}

const std::map<std::string, maker>& makers() {
  static const std::map<std::string, maker> all{
      {"run", of_one_run(stats)},
      {"config", of_one_run([](const watch::world&, const run_directory& run, const json&) {
         return config_document(run);
       })},
      {"log", of_one_run([](const watch::world& in, const run_directory& run, json query) {
         query["run"] = run.path;
         query["tail"] = std::clamp<uint64_t>(count_in(query, "tail", 100), 1, 10'000);
         return watch::logs_view(in, query);
       })},
      {"explain", of_one_run(explain)},
      {"search", of_one_run([](const watch::world& in, const run_directory& run, const json&) {
         return search_of(in, run);
       })},
      {"live",
       [show = view(watch::ps_view)](const watch::world& in, const http::request& r, json query) {
         constexpr uint64_t otherwise = 100, most = 10'000;
         auto limit = count_in(query, "limit", 0);
         query["limit"] = std::min(limit == 0 ? otherwise : limit, most);
         return show(in, r, std::move(query));
       }},
      {"top", view(watch::top_view)},
      {"actors", view(watch::actors_view)},
      {"nodes", view(watch::nodes_view)},
      {"gpus", view(watch::gpus_view)},
      {"policies", [](const watch::world& in, const http::request&,
                      const json&) { return policies_document(in); }},
      {"notes", of_one_run([](const watch::world&, const run_directory& run, const json&) {
         return notes_of(run);
       })},
      {"episode",
       [](const watch::world& in, const http::request& r, const json&) -> expected<json> {
         auto run = run_below(in, part(r, "run"));
         KM_TRY(run);
         return episode_document(in, *run, part(r, "episode"));
       }},
      {"lineage",
       [](const watch::world& in, const http::request& r, const json&) -> expected<json> {
         auto run = run_below(in, part(r, "run"));
         KM_TRY(run);
         return watch::lineage_view(in, {{"what", run->path + "/" + part(r, "episode")}});
       }}};
  return all;
}

using kept_maker = std::function<expected<json>(const watch::world&, const http::request&,
                                                const json&, kept_runs&)>;

kept_maker over_runs(expected<json> (*make)(const watch::world&, const json&, kept_runs&)) {
  return [make](const watch::world& in, const http::request&, const json& query, kept_runs& kept) {
    return make(in, query, kept);
  };
}

kept_maker of_facts(std::function<expected<json>(const watch::world&, const run_directory&,
                                                 const run_facts&, const json&)>
                        make) {
  return [make = std::move(make)](const watch::world& in, const http::request& r, const json& query,
                                  kept_runs& kept) -> expected<json> {
    auto run = run_below(in, part(r, "run"));
    KM_TRY(run);
    auto facts = kept.facts_of(in, *run);
    KM_TRY(facts);
    return make(in, *run, **facts, query);
  };
}

kept_maker of_facts(expected<json> (*make)(const run_facts&, const json&)) {
  return of_facts([make](const watch::world&, const run_directory&, const run_facts& facts,
                         const json& query) { return make(facts, query); });
}

/// Documents of what is kept of runs.
const std::map<std::string, kept_maker>& kept_makers() {
  static const std::map<std::string, kept_maker> all{
      {"runs", over_runs(runs_document)},          {"kernels", over_runs(kernels_document)},
      {"compare", over_runs(compare_document)},    {"episodes", of_facts(episodes_document)},
      {"groups", of_facts(groups_document)},       {"tasks", of_facts(tasks_document)},
      {"positions", of_facts(positions_document)}, {"findings", of_facts(findings_document)},
      {"lanes", of_facts(lanes_document)}};
  return all;
}

maker maker_of(const std::string& id, kept_runs& kept) {
  auto i = kept_makers().find(id);
  if (i == kept_makers().end()) return makers().at(id);
  return [&make = i->second, &kept](const watch::world& in, const http::request& r,
                                    const json& query) { return make(in, r, query, kept); };
}

/// Documents made of what the monitors sample.
bool is_sampled(const std::string& id) {
  static const std::set<std::string> all{"live", "top", "actors", "nodes", "gpus", "policies"};
  return all.contains(id);
}

/// Documents that cost more are shared for longer, until something happens.
std::chrono::milliseconds fresh_of(const std::string& id) {
  static const std::set<std::string> dear{"compare", "findings", "groups",    "kernels",
                                          "lanes",   "log",      "positions", "run",
                                          "runs",    "search",   "tasks"};
  if (dear.contains(id)) return 1s;
  return id == "notes" ? 0ms : 200ms;
}

/// Of the runs that a document is made of, where no process writes to any of them; else empty.
std::string stamp_of(const watch::world& in, const std::string& id, const http::request& r,
                     const json& query) {
  static const std::set<std::string> of_one{"run",     "episodes", "groups",    "tasks",
                                            "config",  "lanes",    "positions", "findings",
                                            "episode", "lineage",  "search"};
  if (of_one.contains(id)) return stamp_of_settled(in.root, part(r, "run"));
  if (id != "compare") return {};
  std::string result;
  for (const char* side : {"a", "b"}) {
    auto name = query.value(side, std::string{});
    auto one = stamp_of_settled(in.root, name.substr(0, name.find('/')));
    if (one.empty()) return {};
    result += one;
  }
  return result;
}

http::handler reading(const page_state_ptr& x, const operation& of) {
  return [x, of, make = maker_of(of.id, x->kept)](const http::request& r,
                                                  const http::exchange_ptr& to) {
    ++x->requests;
    auto query = query_of(of, r);
    if (!query) return to->answer(refusal(query.error()));
    auto made = [x = x.get(), make, r, query = *query] {
      auto found = make(x->settings.world, r, query);
      return found ? document(*found) : refusal(found.error());
    };
    if (is_sampled(of.id)) return x->documents->ask_sampled(key_of(r), std::move(made), to);
    if (auto stamp = stamp_of(x->settings.world, of.id, r, *query); !stamp.empty())
      return x->documents->ask_settled(key_of(r) + "\n" + stamp, std::move(made), to);
    x->documents->ask(key_of(r), fresh_of(of.id), std::move(made), to);
  };
}

// -- what is no document -------------------------------------------------------------------------

http::handler giving_text(const page_state_ptr& x) {
  return [x](const http::request& r, const http::exchange_ptr& to) {
    ++x->requests;
    x->documents->ask(
        key_of(r), 0ms,
        [x = x.get(), r] {
          auto run = run_below(x->settings.world, part(r, "run"));
          if (!run) return refusal(run.error());
          auto text = turn_text(x->settings.world, *run, part(r, "turn"), part(r, "part"));
          if (!text) return refusal(text.error());
          http::response result;
          result.type = "text/plain; charset=utf-8";
          result.body = std::move(*text);
          // A browser saves it; it never shows a model's words as a page of ours.
          result.headers.emplace_back("Content-Disposition", "attachment; filename=\"" +
                                                                 part(r, "turn") + "." +
                                                                 part(r, "part") + ".txt\"");
          harden(result);
          return result;
        },
        to);
  };
}

http::handler streaming(const page_state_ptr& x) {
  return [x](const http::request& r, const http::exchange_ptr& to) {
    ++x->requests;
    auto value = [&](const char* name) {
      auto i = r.query.find(name);
      return i == r.query.end() ? std::string{} : i->second;
    };
    subscription what;
    what.run = value("run");
    auto topics = value("topics");
    if (topics.empty()) topics = "turns";
    for (size_t at = 0; at <= topics.size();) {
      auto end = std::min(topics.find(',', at), topics.size());
      auto one = topics.substr(at, end - at);
      at = end + 1;
      if (one != "turns" && one != "runs" && one != "live")
        return to->answer(refusal(400, "bad_query", "there is no topic \"" + one + "\"",
                                  "topics are turns, runs and live"));
      what.topics.insert(one);
    }
    auto most = value("most");
    auto [end, bad] = std::from_chars(most.data(), most.data() + most.size(), what.most);
    if (!most.empty() && (bad != std::errc{} || end != most.data() + most.size() || what.most == 0))
      return to->answer(refusal(400, "bad_query", "most is \"" + most + "\"",
                                "most is a number of turns a second, from 1 on"));
    const auto& last = r.header("last-event-id");
    auto places = read_event_id(last.empty() ? value("since") : last);
    if (!places) return to->answer(refusal(places.error()));
    what.places = std::move(*places);
    x->events->add(std::move(what), to);
  };
}

http::handler measuring(const page_state_ptr& x) {
  return [x](const http::request&, const http::exchange_ptr& to) {
    ++x->requests;
    x->documents->ask(
        "/metrics", 500ms,
        [x = x.get()] {
          std::lock_guard guard{x->metrics_mutex};
          http::response result;
          result.type = "text/plain; version=0.0.4; charset=utf-8";
          result.body =
              x->metrics.text(x->settings.world, {x->settings.build, x->requests,
                                                  x->events->readers(), x->events->dropped()});
          harden(result);
          return result;
        },
        to);
  };
}

http::handler saying(const json& what) {
  return [answer = document(what)](const http::request&, const http::exchange_ptr& to) {
    to->answer(answer);
  };
}

/// What this server is and may be asked to do, so that the page shows no button without effect.
json about(const page_state& x) {
  auto verbs = json::array();
  if (x.settings.control && x.settings.token) verbs = {"pause", "resume", "cancel"};
  bool head = x.settings.cluster != nullptr;
  if (head && x.settings.token)
    for (const char* verb : {"drain", "attach", "detach"}) verbs.push_back(verb);
  return {{"build", x.settings.build}, {"head", head}, {"verbs", std::move(verbs)}};
}

http::handler being_ready(const page_state_ptr& x) {
  return [x](const http::request&, const http::exchange_ptr& to) {
    bool ready = ::access(x->settings.world.root.c_str(), R_OK | X_OK) == 0;
    to->answer(document({{"ready", ready}}, ready ? 200 : 503));
  };
}

http::handler handler_of(const page_state_ptr& x, const operation& of) {
  std::string id = of.id;
  if (auto handle = changing(x, id)) return handle;
  if (id == "about") return saying(about(*x));
  if (id == "text") return giving_text(x);
  if (id == "events") return streaming(x);
  if (id == "metrics") return measuring(x);
  if (id == "healthz" || id == "livez") return saying({{"status", "ok"}});
  if (id == "readyz") return being_ready(x);
  return reading(x, of);
}

} // namespace

expected<json> document_of(const watch::world& in, const std::string& id,
                           std::map<std::string, std::string> parts, const json& query,
                           kept_runs& kept) {
  http::request asked;
  asked.parts = std::move(parts);
  return maker_of(id, kept)(in, asked, query.is_null() ? json::object() : query);
}

watch::world with_kept(const watch::world& in, kept_runs& kept) {
  auto result = in;
  using summary_ptr = std::shared_ptr<const watch::stored_summary>;
  result.kept_summary = [&in, &kept](const run_directory& run) -> expected<summary_ptr> {
    auto facts = kept.facts_of(in, run);
    KM_TRY(facts);
    return summary_ptr{*facts, &(*facts)->summary};
  };
  return result;
}

std::vector<http::route> routes_of(const std::shared_ptr<page_state>& x) {
  std::vector<http::route> result;
  for (const auto& one : operations()) {
    std::set<std::string> query;
    for (const auto& p : one.query) query.insert(p.name);
    result.push_back({one.method, one.path, std::move(query), handler_of(x, one), one.open});
  }
  auto file = [](const asset& a) {
    http::response answer;
    answer.type = a.type;
    answer.body.assign(reinterpret_cast<const char*>(a.bytes), a.size);
    answer.headers.emplace_back("Cache-Control", "no-cache");
    harden(answer);
    return [answer = std::move(answer)](const http::request&, const http::exchange_ptr& to) {
      to->answer(answer);
    };
  };
  // The page itself says nothing of any run, so that a browser can load it and then ask for a
  // token.
  for (const auto& a : assets()) {
    result.push_back({"GET", a.path, {}, file(a), true});
    if (std::string_view{a.path} == "/page/index.html")
      result.push_back({"GET", "/", {}, file(a), true});
  }
  http::response openapi;
  openapi.body = openapi_text();
  harden(openapi);
  result.push_back(
      {"GET",
       "/api/v1/openapi.json",
       {},
       [openapi](const http::request&, const http::exchange_ptr& to) { to->answer(openapi); },
       true});
  return result;
}

} // namespace kernelmill::page
