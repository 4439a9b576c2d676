#include "launch/cluster/head_page_view.hpp"

#include <caf/all.hpp>

#include "launch/cluster/control_client.hpp"

namespace kernelmill {

namespace {

using namespace std::chrono_literals;

// The page draws once in 700 ms; each document asks for the nodes two or three times.
constexpr auto fresh_for = 300ms;

} // namespace

head_page_view::head_page_view(std::string root, std::shared_ptr<open_stores> stores)
    : root_(std::move(root)), stores_(std::move(stores)) {
  // nop
}

void head_page_view::ask_of(caf::actor_system& system, const head_actor& head) {
  system_ = &system;
  head_ = head;
}

void head_page_view::take(const json& status, const Message<wire::Snapshot>& nodes) {
  std::lock_guard guard{mutex_};
  latest_ = {status, nodes};
  at_ = std::chrono::steady_clock::now();
}

expected<head_page_view::json> head_page_view::ask(const std::string& verb,
                                                   const std::string& subject,
                                                   const std::string& document) {
  return ask_head_actor(*system_, head_, verb, subject, document);
}

expected<head_page_view::seen> head_page_view::look() {
  std::lock_guard one_asks{asking_};
  auto known = [this]() -> std::optional<seen> {
    std::lock_guard guard{mutex_};
    if (std::chrono::steady_clock::now() - at_ > fresh_for) return std::nullopt;
    return latest_;
  };
  if (auto x = known()) return *x;
  auto asked = ask("look", page_view_query, "{}");
  KM_TRY(asked);
  std::lock_guard guard{mutex_};
  return latest_;
}

watch::world head_page_view::world() {
  auto result = watch::local_world(root_);
  result.shared_store = [this](const run_directory& run) { return stores_->of(run.name); };
  result.ask_nodes = [this]() -> expected<watch::snapshot> {
    auto x = look();
    KM_TRY(x);
    return x->nodes;
  };
  result.status = [this]() -> json {
    auto x = look();
    return x ? x->status : json{{"nodes", json::array()}, {"lost", json::array()}};
  };
  result.servers = [this] { return ask("policy_list", {}, {}); };
  return result;
}

} // namespace kernelmill
