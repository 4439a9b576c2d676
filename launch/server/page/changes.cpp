#include "launch/server/page/changes.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "launch/server/page/documents.hpp"
#include "launch/server/page/notes.hpp"
#include "launch/server/page/responses.hpp"
#include "messages/base/json_value.hpp"
#include "storage/run_tags.hpp"

namespace kernelmill::page {

using watch::json;

namespace {

using namespace std::chrono_literals;

using page_state_ptr = std::shared_ptr<page_state>;

/// What must be done once for each request shares nothing with others.
void do_once(const page_state_ptr& x, const http::exchange_ptr& to, answers::maker make) {
  auto counted = [x = x.get(), make = std::move(make)] {
    auto result = make();
    ++x->changes; // before the answer, so that the next request sees it
    return result;
  };
  x->documents->ask("POST " + std::to_string(++x->requests), 0ms, std::move(counted), to);
}

http::handler adding_note(const page_state_ptr& x) {
  return [x](const http::request& r, const http::exchange_ptr& to) {
    do_once(x, to, [x = x.get(), r] {
      auto run = run_below(x->settings.world, part(r, "run"));
      if (!run) return refusal(run.error());
      auto note = add_note(*run, json::parse(r.body, nullptr, false));
      return note ? document(*note, 201) : refusal(note.error());
    });
  };
}

http::handler removing_note(const page_state_ptr& x) {
  return [x](const http::request& r, const http::exchange_ptr& to) {
    do_once(x, to, [x = x.get(), r] {
      auto run = run_below(x->settings.world, part(r, "run"));
      if (!run) return refusal(run.error());
      auto removed = remove_note(*run, part(r, "note"));
      return removed ? document({{"removed", part(r, "note")}}) : refusal(removed.error());
    });
  };
}

/// The tags that the body names become those of the run.
expected<json> put_tags(const run_directory& run, const json& body) {
  auto wanted = body.is_object() && body.size() == 1 ? body.value("tags", json{}) : json{};
  std::vector<std::string> added;
  bool fits = wanted.is_array() && wanted.size() <= 64;
  for (size_t i = 0; fits && i < wanted.size(); ++i) {
    fits = wanted[i].is_string();
    if (fits) added.push_back(wanted[i]);
  }
  if (!fits)
    return configuration_error("bad_request", "failed to read the tags: they are no list of words",
                               "send {\"tags\": [\"baseline\"]}");
  std::vector<std::string> removed;
  for (const auto& tag : tags_of(run))
    if (std::find(added.begin(), added.end(), tag) == added.end()) removed.push_back(tag);
  auto now = change_tags(run, added, removed);
  KM_TRY(now);
  return json{{"run", run.name}, {"tags", *now}};
}

http::handler setting_tags(const page_state_ptr& x) {
  return [x](const http::request& r, const http::exchange_ptr& to) {
    do_once(x, to, [x = x.get(), r] {
      auto run = run_below(x->settings.world, part(r, "run"));
      if (!run) return refusal(run.error());
      auto tags = put_tags(*run, json::parse(r.body, nullptr, false));
      return tags ? document(*tags) : refusal(tags.error());
    });
  };
}

/// Refuses where no token guards this server, or where this process can control nothing.
std::optional<http::response> refuse_control(const page_state& x, bool controllable,
                                             const char* subject) {
  if (x.settings.token == nullptr)
    return refusal(403, "token_missing", std::string{subject} + " are controlled only with a token",
                   "start this server with --token-file");
  if (!controllable)
    return refusal(409, "not_live", "this process works on no " + std::string{subject},
                   "ask the process that does");
  return std::nullopt;
}

http::handler controlling_run(const page_state_ptr& x) {
  return [x](const http::request& r, const http::exchange_ptr& to) {
    if (auto no = refuse_control(*x, x->settings.control != nullptr, "runs"))
      return to->answer(*no);
    auto body = json::parse(r.body, nullptr, false);
    auto verb = body.is_object() && body.size() == 1 ? body.value("verb", json{}) : json{};
    if (verb != "pause" && verb != "resume" && verb != "cancel")
      return to->answer(refusal(400, "bad_request", "\"verb\" must be pause, resume or cancel",
                                "send {\"verb\": \"pause\"}"));
    do_once(x, to, [x = x.get(), r, verb = verb.get<std::string>()] {
      auto run = run_below(x->settings.world, part(r, "run"));
      if (!run) return refusal(run.error());
      auto done = x->settings.control(verb, *run);
      return done ? document({{"run", run->name}, {"verb", verb}}) : refusal(done.error());
    });
  };
}

/// Sends what `make` says (verb, subject, document) to the head; null: the request is none.
using command = std::array<std::string, 3>;
http::handler controlling_head(const page_state_ptr& x,
                               std::function<expected<command>(const http::request&)> make) {
  return [x, make = std::move(make)](const http::request& r, const http::exchange_ptr& to) {
    if (auto no = refuse_control(*x, x->settings.cluster != nullptr, "nodes and policy servers"))
      return to->answer(*no);
    auto what = make(r);
    if (!what) return to->answer(refusal(what.error()));
    do_once(x, to, [x = x.get(), what = *what] {
      auto done = x->settings.cluster(what[0], what[1], what[2]);
      return done ? document(*done) : refusal(done.error());
    });
  };
}

expected<command> drain_of(const http::request& r) {
  if (json::parse(r.body, nullptr, false) == json{{"verb", "drain"}})
    return command{"drain", part(r, "node"), {}};
  return configuration_error("bad_request", "\"verb\" must be drain", "send {\"verb\": \"drain\"}");
}

// No names of keys: a client that may control a cluster must not send its files elsewhere.
expected<command> attachment_of(const http::request& r) {
  auto body = json::parse(r.body, nullptr, false);
  auto bad = [](const std::string& why) {
    return configuration_error(
        "bad_request", "failed to read the policy server: " + why,
        "send {\"url\": \"http://HOST:8000/v1\"}; `kernelmill policy attach` "
        "attaches one that needs a key");
  };
  if (!body.is_object()) return bad("it is no JSON object");
  for (const auto& [key, value] : body.items()) {
    bool text = key == "url" || key == "name" || key == "kind" || key == "model";
    if (!text && key != "max_in_flight") return bad("unknown key \"" + key + "\"");
    if (text ? !value.is_string() : !value.is_number_unsigned()) return bad("wrong type of " + key);
  }
  if (!body.contains("url")) return bad("\"url\" is missing");
  return command{"policy_attach", {}, body.dump()};
}

expected<command> detachment_of(const http::request& r) {
  return command{"policy_detach", part(r, "server"), {}};
}

} // namespace

http::handler changing(const page_state_ptr& x, const std::string& operation) {
  if (operation == "add_note") return adding_note(x);
  if (operation == "remove_note") return removing_note(x);
  if (operation == "set_tags") return setting_tags(x);
  if (operation == "control") return controlling_run(x);
  if (operation == "drain") return controlling_head(x, drain_of);
  if (operation == "attach") return controlling_head(x, attachment_of);
  if (operation == "detach") return controlling_head(x, detachment_of);
  return nullptr;
}

} // namespace kernelmill::page
