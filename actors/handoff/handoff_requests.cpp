// What trainers ask for, and the documents that they get.

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>

#include <caf/all.hpp>

#include "actors/handoff/handoff_state.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::handoff {

namespace {

using json = nlohmann::ordered_json;
using namespace std::chrono_literals;

constexpr auto batch_deadline = 10min; ///< for reading the groups of a lease
constexpr auto cancel_deadline = 10min;
constexpr auto weights_deadline = 60min; ///< for all servers to load them
constexpr int answer_version = 1;

expected<uint32_t> number_of(const std::string& group, const std::string& order) {
  auto prefix = order + "/g";
  uint32_t number = 0;
  auto* end = group.data() + group.size();
  if (!group.starts_with(prefix))
    return configuration_error("bad_request", "the lease is of groups of '" + order +
                                                  "', and none of them is '" + group + "'");
  auto [at, code] = std::from_chars(group.data() + prefix.size(), end, number);
  if (code != std::errc{} || at != end)
    return configuration_error("bad_request", "'" + group + "' is not the name of a group");
  return number;
}

struct leased_group {
  uint32_t number;
  std::string oldest, newest;
};

json text_or_nothing(const std::string& x) {
  return x.empty() ? json(nullptr) : json(x);
}

// Rows are text already: parsing them to print them again would take longer than reading them.
// `reading` is the group that an error is about.
expected<std::string> batch_text(rollout_host& host, json head, const std::string& order,
                                 const std::string& form, uint32_t requested,
                                 const std::vector<leased_group>& groups, uint32_t& reading) {
  auto result = head.dump();
  result.pop_back();
  result += ",\"groups\":[";
  bool first = true;
  for (const auto& x : groups) {
    reading = x.number;
    auto read = host.read(order, x.number, form);
    KM_TRY(read);
    json one{{"id", group_name(order, x.number)},
             {"requested", requested},
             {"delivered", read->delivered},
             {"min_version", text_or_nothing(x.oldest)},
             {"max_version", text_or_nothing(x.newest)}};
    auto text = one.dump(-1, ' ', false, json::error_handler_t::replace);
    text.pop_back();
    result += (first ? "" : ",") + text + ",\"rows\":" + read->rows + "}";
    first = false;
  }
  return result + "]}";
}

} // namespace

// -- orders -------------------------------------------------------------------------------------

json handoff_state::document_of(const std::string& order) const {
  auto of = table_.find(order);
  if (!of) return {{"schema_version", answer_version}, {"id", order}, {"state", "withdrawn"}};
  auto i = courses_.find(order);
  bool held = i != courses_.end() && i->second.held;
  bool troubled = i != courses_.end() && !i->second.trouble.empty();
  bool stuck = troubled && !i->second.begun;
  json counts;
  for (size_t x = 0; x < group_states; ++x)
    counts[to_string(static_cast<group_state>(x))] = of->counts[x];
  const auto& what = of->what;
  return {
      {"schema_version", answer_version},
      {"id", order},
      {"run", order},
      {"state", of->cancelled                       ? "cancelled"
                : of->count(group_state::open) == 0 ? "settled"
                : stuck                             ? "waiting"
                : held                              ? "held"
                                                    : "running"},
      {"over", of->over()},
      {"requested", what.groups},
      {"groups", counts},
      {"dropped", of->reasons},
      {"group_size", what.group_size},
      {"form", what.form},
      {"max_off_policy", what.max_off_policy < 0 ? json(nullptr) : json(what.max_off_policy)},
      {"max_ready", what.max_ready},
      {"deadline_s",
       what.deadline_ms == 0 ? json(nullptr) : json(static_cast<double>(what.deadline_ms) / 1000)},
      {"trouble", text_or_nothing(stuck || (troubled && i->second.away) ? i->second.trouble : "")}};
}

void handoff_state::do_it(const look_request& x, const request_ptr& who) {
  if (x.order.empty()) {
    json all = json::array();
    for (const auto& [id, of] : table_.orders())
      if (may_see(of.what.client, who->client)) all.push_back(document_of(id));
    return who->answer(json{{"schema_version", answer_version}, {"rollouts", all}}.dump());
  }
  if (!table_.find(x.order)) {
    auto none = table_.cancel(x.order, now());
    return who->answer(tl::unexpected(none.error()));
  }
  who->answer(document_of(x.order).dump());
}

void handoff_state::do_it(const cancel_request& x, const request_ptr& who) {
  if (auto ok = keep(table_.cancel(x.order, now())); !ok)
    return who->answer(tl::unexpected(ok.error()));
  run_on_worker_thread(
      self_, opener_, cancel_deadline,
      [host = settings_.host, id = x.order] { return host->cancel(id); },
      [this, id = x.order](expected<void> ok) {
        if (!ok) tell(log_level::warn, render(ok.error()), id);
      });
  who->answer(document_of(x.order).dump());
}

// -- batches ------------------------------------------------------------------------------------

void handoff_state::do_it(const batch_request& x, const request_ptr& who) {
  if (try_batch(x, who)) return;
  if (x.wait.count() == 0 || table_.find(x.what.order)->over()) return answer_empty(x, who);
  waiting_.push_back({x, who, now() + x.wait.count()});
}

// True: the request has its answer, or gets it as soon as its groups are read.
bool handoff_state::try_batch(const batch_request& x, const request_ptr& who) {
  auto before = table_.latest_lease();
  if (auto ok = keep(table_.check(x.what, now())); !ok) {
    who->answer(tl::unexpected(ok.error()));
    return true;
  }
  auto lease = table_.latest_lease() > before ? table_.latest_lease()
                                              : table_.open_lease(x.what.consumer, x.what.request);
  if (lease == 0) return false;
  deliver(lease, who);
  return true;
}

void handoff_state::deliver(uint64_t number, const request_ptr& who) {
  const auto& lease = *table_.find_lease(number);
  const auto& of = *table_.find(lease.order);
  std::vector<leased_group> groups;
  for (auto group : lease.groups) {
    const auto& entry = of.groups[group];
    if (entry.state != group_state::leased || entry.lease != number) continue;
    auto [oldest, newest] = table_.span(entry);
    groups.push_back({group, oldest, newest});
  }
  json head{{"schema_version", answer_version},
            {"order", lease.order},
            {"lease", number},
            {"consumer", lease.consumer},
            {"generation", lease.generation},
            {"until_s", static_cast<double>(lease.until_ms) / 1000},
            {"over", false}};
  auto reading = std::make_shared<uint32_t>(0);
  run_on_worker_thread(
      self_, reader_, batch_deadline,
      [host = settings_.host, head, order = lease.order, form = of.what.form,
       size = of.what.group_size, groups,
       reading] { return batch_text(*host, head, order, form, size, groups, *reading); },
      [this, who, number, order = lease.order, reading](expected<std::string> text) {
        if (!text && is_lost(text.error())) give_up(number, order, *reading, text.error());
        who->answer(std::move(text));
        serve();
      });
}

// The group was there when it was settled, and is lost since. The trainer that asks again gets
// other groups.
void handoff_state::give_up(uint64_t lease, const std::string& order, uint32_t group, error& why) {
  tell(log_level::warn, group_name(order, group) + " is dropped: " + render(why), order);
  if (auto ok = keep(table_.give_up(lease, group, now())); !ok)
    tell(log_level::error, render(ok.error()), order);
  why.cls = fault_class::infrastructure;
  why.hint = "ask again: the group is dropped, and others are given";
}

void handoff_state::answer_empty(const batch_request& x, const request_ptr& who) {
  auto of = table_.find(x.what.order);
  who->answer(json{{"schema_version", answer_version},
                   {"order", x.what.order},
                   {"lease", nullptr},
                   {"consumer", x.what.consumer},
                   {"generation", x.what.generation},
                   {"until_s", nullptr},
                   {"over", !of || of->over()},
                   {"groups", json::array()}}
                  .dump());
}

void handoff_state::do_it(const ack_request& x, const request_ptr& who) {
  ack_command command{x.lease, {}, x.step};
  auto lease = table_.find_lease(x.lease);
  for (const auto& name : x.groups) {
    if (!lease) break; // check() says what became of it
    auto number = number_of(name, lease->order);
    if (!number) return who->answer(tl::unexpected(number.error()));
    command.groups.push_back(*number);
  }
  if (auto ok = keep(table_.check(command, now())); !ok)
    return who->answer(tl::unexpected(ok.error()));
  who->answer(json{{"schema_version", answer_version},
                   {"lease", x.lease},
                   {"optimizer_step", x.step},
                   {"left", table_.find_lease(x.lease) ? table_.find_lease(x.lease)->held : 0}}
                  .dump());
}

// -- consumers ----------------------------------------------------------------------------------

namespace {

std::string consumer_text(const std::string& name, const consumer_entry& x) {
  return json{{"schema_version", answer_version},
              {"consumer", name},
              {"generation", x.generation},
              {"committed_step", x.committed < 0 ? json(nullptr) : json(x.committed)},
              {"acknowledged", x.acked.size()}}
      .dump();
}

} // namespace

void handoff_state::do_it(const commit_command& x, const request_ptr& who) {
  if (auto ok = keep(table_.check(x, now())); !ok) return who->answer(tl::unexpected(ok.error()));
  who->answer(consumer_text(x.consumer, table_.consumer(x.consumer)));
}

void handoff_state::do_it(const rollback_command& x, const request_ptr& who) {
  if (auto ok = keep(table_.check(x, now())); !ok) return who->answer(tl::unexpected(ok.error()));
  std::erase_if(waiting_, [&](const auto& w) { // of a trainer that is rejected now
    if (w.what.what.consumer != x.consumer) return false;
    auto fenced = table_.check(w.what.what, now());
    if (!fenced) w.who->answer(tl::unexpected(fenced.error()));
    return !fenced;
  });
  who->answer(consumer_text(x.consumer, table_.consumer(x.consumer)));
}

void handoff_state::do_it(const weights_request& x, const request_ptr& who) {
  if (auto ok = keep(table_.declare(x.version, now())); !ok)
    return who->answer(tl::unexpected(ok.error()));
  json answer{{"schema_version", answer_version},
              {"version", x.version},
              {"ordinal", table_.latest_ordinal()},
              {"servers", json::array()}};
  if (x.wish.path.empty()) return who->answer(answer.dump());
  auto wish = x.wish;
  wish.version = x.version;
  if (wish.servers.empty()) wish.servers = servers_under_way(who->client);
  if (wish.servers.empty())
    return who->answer(configuration_error("weights_refused",
                                           "no order under way has a server that can load weights",
                                           "name the `servers`"));
  run_on_worker_thread(
      self_, loader_, weights_deadline,
      [host = settings_.host, wish] { return host->load_weights(wish); },
      [who, answer](expected<std::vector<loaded_server>> all) mutable {
        if (!all) return who->answer(tl::unexpected(all.error()));
        for (const auto& one : *all)
          answer["servers"].push_back({{"base_url", one.base_url},
                                       {"kind", one.kind},
                                       {"weight_version", text_or_nothing(one.told)}});
        who->answer(answer.dump(-1, ' ', false, json::error_handler_t::replace));
      });
}

// The policy servers of a client's runs that are still to make groups, each once.
std::vector<std::string> handoff_state::servers_under_way(const std::string& client) const {
  std::map<std::string, std::string> result;
  for (const auto& [id, of] : table_.orders()) {
    if (of.count(group_state::open) == 0 || !may_see(of.what.client, client)) continue;
    auto config = json::parse(of.what.config, nullptr, false);
    if (!config.is_object() || !config.contains("policy")) continue;
    const auto& policy = config["policy"];
    if (auto kind = policy.value("kind", ""); kind == "vllm" || kind == "sglang")
      result.emplace(policy.value("base_url", ""), policy.dump());
  }
  std::vector<std::string> all;
  for (auto& [url, policy] : result) all.push_back(std::move(policy));
  return all;
}

} // namespace kernelmill::handoff
