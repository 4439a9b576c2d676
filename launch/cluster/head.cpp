#include "launch/cluster/head.hpp"

#include <cerrno>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <random>

#include <fcntl.h>
#include <sys/file.h>

#include <caf/all.hpp>
#include <caf/io/all.hpp>

#include "actors/caf_error.hpp"
#include "actors/head/head.hpp"
#include "actors/policy_pool/policy_pool.hpp"
#include "launch/analysis/watch/views.hpp"
#include "launch/cluster/build_id.hpp"
#include "launch/cluster/head_page_view.hpp"
#include "launch/cluster/head_runs.hpp"
#include "launch/config/paths.hpp"
#include "messages/base/descriptor.hpp"
#include "messages/base/json_value.hpp"
#include "storage/files.hpp"

namespace kernelmill {

using namespace std::chrono_literals;

namespace {

// No job may take longer, whatever a run's configuration says; a node that is lost is noticed long
// before.
constexpr auto longest_lease_of_all = 30min;
constexpr double straggler_factor = 3;
// A job may be on nodes that are killed one after the other; one that kills them all must end.
constexpr uint32_t losses_of_nodes = 8;
// Runs that are taken up load their tasks and their journals one after the other.
constexpr auto recovery_patience = 24 * 60min;

/// Sees when the HEAD has ended.
class head_watch {
public:
  explicit head_watch(const head_actor& head) {
    head->attach_functor([x = state_] { // the head may end after us
      std::lock_guard guard{x->mutex};
      x->over = true;
      x->wake.notify_all();
    });
  }

  /// Waits for a user's wish or for the end of the head; true when it was the wish.
  bool wait(std::stop_token stop) {
    std::unique_lock lock{state_->mutex};
    return !state_->wake.wait(lock, stop, [&] { return state_->over; });
  }

  /// Waits for the end of the head.
  void wait_for(std::chrono::milliseconds patience) {
    std::unique_lock lock{state_->mutex};
    state_->wake.wait_for(lock, patience, [&] { return state_->over; });
  }

private:
  struct state {
    std::mutex mutex;
    std::condition_variable_any wake;
    bool over = false;
  };
  std::shared_ptr<state> state_ = std::make_shared<state>();
};

expected<std::string> root_of(const head_options& options) {
  std::error_code code;
  std::filesystem::create_directories(options.root, code);
  auto root = std::filesystem::canonical(options.root, code).string();
  if (!code) return root;
  return configuration_error("io_error", "failed to use " + options.root + ": " + code.message(),
                             "name a folder for the runs with --root");
}

// flock() goes with the process, also on kill -9.
expected<descriptor> lock_root(const std::string& root) {
  auto path = root + "/.head.lock";
  descriptor lock{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
  if (!lock) return tl::unexpected<error>{file_error(errno, "lock", path)};
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return configuration_error("head_exists", "failed to use " + root + ": another head serves it",
                               "end that one, or name another folder with --root");
  return lock;
}

head_settings settings_of(const head_options& options, const std::string& root,
                          caf::actor_system& system, const std::shared_ptr<open_stores>& stores,
                          const std::shared_ptr<head_page_view>& page_view) {
  head_settings result;
  result.build = build_id();
  result.epoch = uint64_t{std::random_device{}()} << 32 | std::random_device{}();
  result.leases.lease = longest_lease_of_all;
  result.leases.losses = losses_of_nodes;
  result.leases.rest = rest_of_faults;
  result.leases.hedge_factor = straggler_factor;
  result.leases.log = options.log;
  result.shelf = std::make_shared<parcel_shelf>(default_build_cache() + "/cluster");
  result.servers_file = root + "/policies.json";
  result.pool = spawn_policy_pool(system, options.log);
  result.runs = make_head_runs(root, options.log, stores);
  result.look = [root, stores, page_view](
                    const std::string& view, const std::string& query_text,
                    const nlohmann::ordered_json& status,
                    const Message<wire::Snapshot>& nodes) -> expected<nlohmann::ordered_json> {
    if (view == page_view_query) {
      page_view->take(status, nodes);
      return nlohmann::ordered_json::object();
    }
    auto query = nlohmann::ordered_json::parse(query_text, nullptr, false);
    if (query.is_discarded())
      return configuration_error("usage", "failed to read the query: it is no JSON", "");
    auto here = watch::local_world(root);
    here.shared_store = [&](const run_directory& run) { return stores->of(run.name); };
    here.status = [&] { return status; };
    here.ask_nodes = [&]() -> expected<Message<wire::Snapshot>> { return nodes; };
    return watch::answer(here, view, query);
  };
  result.log = options.log;
  return result;
}

// Waits until the HEAD has taken up what an earlier one left: before any client can ask for it.
expected<void> recover(caf::actor_system& system, const head_actor& head) {
  expected<void> result;
  caf::scoped_actor self{system};
  self->request(head, recovery_patience, atom::start_v)
      .receive([](atom::start) {},
               [&](caf::error& why) { result = tl::unexpected<error>{from_caf(why)}; });
  return result;
}

} // namespace

expected<void> run_head(const head_options& options, std::stop_token stop) {
  auto tls = choose_link(options.link, options.listen);
  KM_TRY(tls);
  auto root = root_of(options);
  KM_TRY(root);
  auto lock = lock_root(*root);
  KM_TRY(lock);
  auto& system = lasting_system();
  auto stores = std::make_shared<open_stores>();
  auto page_view = std::make_shared<head_page_view>(*root, stores);
  auto head = spawn_head(system, settings_of(options, *root, system, stores, page_view));
  page_view->ask_of(system, head);
  head_watch watch{head};
  KM_TRY(recover(system, head));
  std::shared_ptr<void> window; // ends before the head does
  if (options.on_window) {
    auto opened = options.on_window(
        {page_view->world(), [page_view](const std::string& verb, const std::string& subject,
                                         const std::string& document) {
           return page_view->ask(verb, subject, document);
         }});
    KM_TRY(opened);
    window = std::move(*opened);
  }
  auto port = publish_head(system, head, options.listen, *tls);
  KM_TRY(port);
  network_address at{options.listen.host, *port};
  caf::anon_send(head, atom::start_v, at.text());
  options.log.info({"head", {}, {}, {}}, "listens at " + at.text());
  if (options.on_listening) options.on_listening(at);
  if (!watch.wait(stop))
    return infrastructure_error("internal", "the head has lost the actor that nodes talk to",
                                "please report this as a defect; its runs stay resumable");
  window.reset();
  caf::anon_send_exit(head, caf::exit_reason::user_shutdown);
  watch.wait_for(longest_lease_of_all);
  return {};
}

} // namespace kernelmill
