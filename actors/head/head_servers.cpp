// The policy servers of a head: one pool for every run of kind `attached`, and a file that lets the
// next head attach the same servers again, however this one ended.

#include <algorithm>
#include <filesystem>

#include "actors/head/head_state.hpp"
#include "actors/policy_client/server_probe.hpp"
#include "messages/base/json_fields.hpp"
#include "messages/base/json_value.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill {

namespace fs = std::filesystem;

namespace {

using namespace std::chrono_literals;

constexpr auto pool_deadline = 10s;
constexpr auto file_deadline = 1min;
constexpr uint32_t probe_timeout_ms = 5000; // the clerk's other work waits meanwhile
constexpr uint32_t default_drain_ms = 600'000;

bool is_complete(const json& facts) {
  return !text_in(facts, "kind").empty() && !text_in(facts, "model").empty();
}

// Kind and model, where they are not given: the server knows both. Blocks.
expected<json> complete(json facts) {
  policy_config config;
  config.base_url = text_in(facts, "url");
  config.model = text_in(facts, "model");
  config.api_key_env = text_in(facts, "api_key_env");
  config.api_key_file = text_in(facts, "api_key_file");
  auto checked = config;
  if (checked.model.empty()) checked.model = "?";
  KM_TRY(validate(checked));
  auto report = probe_server(config, parse_server_kind(text_in(facts, "kind")), probe_timeout_ms);
  if (!report) {
    auto why = report.error();
    why.hint = why.category == "policy_unreachable"
                   ? "start the server, or give --kind and --model to attach one that is not up yet"
                   : "give --kind and --model to attach it without asking it what it is";
    return tl::unexpected<error>{why};
  }
  facts["kind"] = to_string(report->kind);
  facts["model"] = report->model;
  if (text_in(facts, "tokens").empty())
    for (const auto& one : report->capabilities)
      if (one.name == "token_route" && one.has) facts["tokens"] = *one.has ? "exact" : "chat";
  return facts;
}

// It holds names of keys, no keys. Blocks.
expected<void> write_servers(const std::string& file, const json& kept) {
  KM_TRY(write_json(file, kept));
  std::error_code code;
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write, code);
  return {};
}

expected<json> read_servers(const std::string& file) {
  std::error_code code;
  if (file.empty() || !fs::exists(file, code)) return json::object();
  return read_json(file);
}

bool is_called(const json& facts, const std::string& key, const std::string& name_or_url) {
  return key == name_or_url || text_in(facts, "url") == name_or_url;
}

} // namespace

template <class... Ts>
void head_state::ask_pool(outcome done, Ts... words) {
  self_->request(settings_.pool, pool_deadline, std::move(words)...)
      .then([done] { done({}); },
            [done](caf::error& why) { done(tl::unexpected<error>{from_caf(why)}); });
}

// The clerk writes in the order of the changes, so the file ends as the latest one.
void head_state::save(outcome done) {
  if (settings_.servers_file.empty()) return done({});
  auto list = json::array();
  for (const auto& [name, facts] : servers_)
    if (!facts.contains("draining")) list.push_back(facts);
  run_on_worker_thread(
      self_, clerk_, file_deadline,
      [file = settings_.servers_file, kept = json{{"weights", weights_}, {"servers", list}}] {
        return write_servers(file, kept);
      },
      std::move(done));
}

void head_state::give(const json& facts, outcome done) {
  ask_pool(
      [this, facts, done](expected<void> ok) {
        if (!ok) return done(ok);
        auto name = text_in(facts, "name"), version = text_in(facts, "weights");
        servers_[name] = facts;
        if (version.empty()) return done({});
        ask_pool(done, atom::weights_v, name, version);
      },
      atom::attach_v, server_message(facts));
}

// -- verbs --------------------------------------------------------------------------------------

void head_state::attach(const std::string& document, const answer& to) {
  auto facts = read_document(document);
  if (!facts || is_complete(*facts))
    return facts ? attach_complete(std::move(*facts), to) : to(std::move(facts));
  run_on_worker_thread(
      self_, clerk_, file_deadline, [facts = *facts] { return complete(facts); },
      guarded(to, [this, to](expected<json> found) {
        if (!found) return to(std::move(found));
        attach_complete(std::move(*found), to);
      }));
}

void head_state::attach_complete(json facts, const answer& to) {
  if (text_in(facts, "name").empty()) facts["name"] = host_of_url(text_in(facts, "url"));
  if (auto file = text_in(facts, "api_key_file"); !file.empty())
    facts["api_key_file"] = fs::absolute(file).string();
  if (!weights_.empty()) facts["weights"] = weights_;
  give(facts, guarded(to, [this, facts, to](expected<void> ok) {
         if (!ok) return to(tl::unexpected<error>{ok.error()});
         save(guarded(to, [this, facts, to](expected<void> kept) {
           if (kept) return to(facts);
           give_back(text_in(facts, "name")); // after the error no server is attached
           to(tl::unexpected<error>{kept.error()});
         }));
       }));
}

void head_state::give_back(const std::string& server) {
  servers_.erase(server);
  ask_pool([](const expected<void>&) {}, atom::detach_v, server, uint32_t{0});
}

void head_state::detach(const std::string& name, const std::string& document, const answer& to) {
  auto how = read_document(document);
  if (!how) return to(std::move(how));
  auto patience = static_cast<uint32_t>(
      std::min<uint64_t>(count_in(*how, "drain_ms", default_drain_ms), UINT32_MAX));
  std::string kept;
  for (auto& [key, facts] : servers_)
    if (is_called(facts, key, name) && !facts.contains("draining")) kept = key;
  auto end = guarded(to, [this, kept, name, patience, to](expected<void> ok) {
    // What could not be attached again is in the file alone.
    if (ok || (!kept.empty() && ok.error().category == "not_found"))
      return to(json{{"server", name}, {"drain_ms", patience}});
    if (auto i = servers_.find(kept); i != servers_.end()) i->second.erase("draining");
    to(tl::unexpected<error>{ok.error()});
  });
  if (kept.empty()) return ask_pool(end, atom::detach_v, name, patience);
  servers_[kept]["draining"] = true;
  // On disk first: a head that starts again must not bring it back.
  save([this, name, patience, end](expected<void> ok) mutable {
    if (!ok) return end(ok);
    ask_pool(end, atom::detach_v, name, patience);
  });
}

void head_state::weights(const std::string& name, const std::string& document, const answer& to) {
  auto what = read_document(document);
  if (!what) return to(std::move(what));
  auto version = text_in(*what, "version");
  ask_pool(guarded(to,
                   [this, name, version, to](expected<void> ok) {
                     if (!ok) return to(tl::unexpected<error>{ok.error()});
                     if (name.empty()) weights_ = version;
                     for (auto& [key, facts] : servers_)
                       if (name.empty() || is_called(facts, key, name)) facts["weights"] = version;
                     save([name, version, to](expected<void> kept) {
                       if (!kept) return to(tl::unexpected<error>{kept.error()});
                       to(json{{"version", version}, {"server", name}});
                     });
                   }),
           atom::weights_v, name, version);
}

void head_state::list(const answer& to) {
  auto show = guarded(
      to, [this, to](const Message<wire::Snapshot>& says) { to(list_document(*says.open())); });
  self_->request(settings_.pool, pool_deadline, atom::status_v)
      .then([show](const Message<wire::Snapshot>& says) mutable { show(says); },
            [to](caf::error& why) { to(tl::unexpected<error>{from_caf(why)}); });
}

// Those of the pool, and those that could not be attached again.
json head_state::list_document(wire::Snapshot::Reader pool) const {
  auto result = numbers_of(pool);
  auto rows = json::array();
  std::set<std::string> attached;
  for (auto child : pool.getChildren()) {
    std::string name = child.getId();
    auto known = servers_.find(name);
    auto row = server_row(name, known == servers_.end() ? nullptr : &known->second);
    row["state"] = child.getState().cStr();
    row.update(numbers_of(child));
    row["detail"] = child.getDetail().cStr();
    attached.insert(name);
    rows.push_back(std::move(row));
  }
  for (const auto& [name, facts] : servers_) {
    if (attached.contains(name) || facts.contains("draining")) continue;
    rows.push_back(server_row(name, &facts));
    rows.back()["state"] = "unattached";
  }
  result["servers"] = std::move(rows);
  return result;
}

// -- what an earlier head had -------------------------------------------------------------------

void head_state::recover_servers(std::function<void()> done) {
  auto warn = [this](const error& why) {
    tell(log_level::warn, "failed to attach again: " + settings_.servers_file + ": " + render(why));
  };
  run_on_worker_thread(
      self_, clerk_, file_deadline, [file = settings_.servers_file] { return read_servers(file); },
      [this, warn, done](expected<json> kept) {
        if (!kept) {
          warn(kept.error());
          return done();
        }
        weights_ = text_in(*kept, "weights");
        auto list = std::make_shared<json>(kept->value("servers", json::array()));
        auto next = [this, list, done] { attach_again(list, 0, done); };
        if (weights_.empty()) return next();
        ask_pool(
            [warn, next](expected<void> ok) {
              if (!ok) warn(ok.error());
              next();
            },
            atom::weights_v, std::string{}, weights_);
      });
}

void head_state::attach_again(std::shared_ptr<json> kept, size_t next, std::function<void()> done) {
  while (next < kept->size() && !(*kept)[next].is_object()) ++next;
  if (next >= kept->size()) return done();
  auto facts = (*kept)[next];
  give(facts, [this, kept, next, done, facts](expected<void> ok) {
    if (!ok) {
      auto name = text_in(facts, "name");
      tell(log_level::warn,
           "failed to attach again: policy server " + name + ": " + render(ok.error()));
      servers_[name] = facts; // a key that is missing today may be there tomorrow
    }
    attach_again(kept, next + 1, done);
  });
}

} // namespace kernelmill
