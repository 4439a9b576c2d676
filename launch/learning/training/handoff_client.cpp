#include "launch/learning/training/handoff_client.hpp"

#include <future>

#include <caf/all.hpp>

#include "messages/base/digest.hpp"

namespace kernelmill::training {

namespace {

constexpr uint32_t groups_at_once = 256;
constexpr auto longest_look = std::chrono::seconds{1};
constexpr int64_t lease_ms = 24 * 3600 * 1000; ///< this process is the only holder

} // namespace

template <class What>
expected<nlohmann::json> handoff_client::ask(What what) {
  auto wish = std::make_shared<handoff::request>();
  auto done = std::make_shared<std::promise<expected<std::string>>>();
  wish->what = std::move(what);
  wish->answer = [done](expected<std::string> x) { done->set_value(std::move(x)); };
  auto answer = done->get_future();
  caf::anon_send(handoff_, atom::query_v, std::move(wish));
  auto text = answer.get();
  KM_TRY(text);
  return nlohmann::json::parse(*text, nullptr, false);
}

expected<void> handoff_client::order(const std::string& id, const nlohmann::json& config) {
  handoff::order_request x;
  x.what.id = id;
  x.config = config.dump();
  x.what.digest = sha256_hex(x.config);
  x.what.form = "rl";
  KM_TRY(ask(std::move(x)));
  return {};
}

expected<uint64_t> handoff_client::roll_back(const std::string& consumer, int64_t step) {
  auto said = ask(handoff::rollback_command{consumer, step});
  KM_TRY(said);
  return said->at("generation").get<uint64_t>();
}

expected<batch> handoff_client::next(const std::string& order, const std::string& consumer,
                                     uint64_t generation) {
  handoff::batch_request x;
  x.what = {order,      consumer,       "training-" + std::to_string(++asked_),
            generation, groups_at_once, lease_ms};
  x.wait = longest_look;
  auto said = ask(std::move(x));
  KM_TRY(said);
  batch result;
  result.over = said->value("over", false);
  if (said->at("lease").is_null()) return result;
  result.lease = said->at("lease").get<uint64_t>();
  for (auto& group : said->at("groups")) result.groups.push_back(std::move(group));
  return result;
}

expected<void> handoff_client::ack(uint64_t lease, int64_t step) {
  KM_TRY(ask(handoff::ack_request{lease, {}, step}));
  return {};
}

expected<void> handoff_client::commit(const std::string& consumer, uint64_t generation,
                                      int64_t step) {
  KM_TRY(ask(handoff::commit_command{consumer, generation, step}));
  return {};
}

expected<void> handoff_client::declare(const std::string& version, const std::string& path,
                                       const std::string& server) {
  handoff::weights_request x;
  x.version = version;
  if (!path.empty()) {
    x.wish.path = path;
    x.wish.servers = {server};
  }
  KM_TRY(ask(std::move(x)));
  return {};
}

} // namespace kernelmill::training
