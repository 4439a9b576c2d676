#include "tests/sim/cluster/cluster.hpp"

#include <algorithm>
#include <filesystem>

#include "actors/cluster/cluster.hpp"
#include "actors/cluster/node_gate.hpp"
#include "actors/policy_pool/policy_pool.hpp"
#include "messages/base/json_value.hpp"
#include "tests/sim/cluster/user.hpp"
#include "tests/sim/cluster/workers.hpp"

namespace kernelmill::sim {

using namespace std::chrono_literals;
using json = nlohmann::ordered_json;

namespace {

constexpr auto lease_of_job = 30s;
constexpr auto first_pause = 100ms, longest_pause = 2000ms;
constexpr auto join_deadline = 10s; // as a node dials

/// A process that offers slots. It dials as launch/cluster/member.cpp does.
struct sim_node {
  uint64_t epoch = 0; ///< 0: it is not there
  cluster_actor slots;
  node_gate_actor gate;
  std::vector<caf::actor> workers;
  std::shared_ptr<connection> link;
  milliseconds pause = first_pause;
};

class cluster_world {
public:
  cluster_world(uint64_t seed, const std::vector<fault>& faults, defect broken, std::string folder,
                task_ptr what)
      : folder_(std::move(folder)), faults_(faults), disk_(std::make_shared<sim_disk>(broken)),
        on_(seed, broken), runs_(std::make_shared<sim_runs>(on_, disk_, std::move(what))),
        user_(on_, runs_) {
    std::filesystem::create_directories(folder_ + "/built");
    runs_->kill_head = [this] { kill_head(); };
    for (uint32_t i = 0; i < node_count; ++i) start_node(i);
    start_head();
    on_.after(1s, [this] { user_looks(); });
    for (size_t i = 0; i < faults_.size(); ++i) {
      auto& x = faults_[i];
      faults_end_ = std::max(faults_end_, (x.at_ms + x.for_ms) / 1000.0);
      on_.after(milliseconds{x.at_ms} + 1us, [this, i] { begin(i); });
    }
  }

  ~cluster_world() {
    kill_head();
    for (auto& x : nodes_) end_node(x);
  }

  life run(double calm_bound) {
    life result;
    result.disk = disk_;
    while (!user_.has_all() && on_.now() < faults_end_ + calm_bound && on_.step()) {
    }
    result.ended = user_.has_all();
    result.faults_end = faults_end_;
    result.seconds = on_.now();
    result.turns_told = user_.finished();
    result.overtaken = runs_->overtaken();
    result.lies = on_.lies;
    result.marks = on_.marks();
    result.steps = on_.steps();
    result.trace_hash = on_.trace_hash();
    return result;
  }

private:
  // -- nodes -------------------------------------------------------------------------------

  std::string shelf_of(uint32_t node) const { return folder_ + "/n" + std::to_string(node); }

  void start_node(uint32_t i) {
    auto& x = nodes_[i];
    if (x.epoch != 0) return;
    x.epoch = ++epochs_;
    lease_policy policy{lease_of_job, 1, false}; // the head leases again, elsewhere
    x.slots = on_.keep(on_.system().spawn(leasing_cluster, policy));
    for (int n = 0; n < 2; ++n) {
      start_worker(i, true);
      start_worker(i, false);
    }
    x.gate = on_.keep(spawn_node_gate(on_.system(), "n" + std::to_string(i), x.slots,
                                      std::make_shared<parcel_shelf>(shelf_of(i)), {}, false));
    x.pause = first_pause;
    dial(i, x.epoch);
  }

  // A worker that dies is replaced, as the node's supervisor does.
  void start_worker(uint32_t i, bool is_compiler) {
    auto& x = nodes_[i];
    auto offer = [&](auto worker) {
      caf::anon_send(x.slots, atom::lease_v, worker, uint32_t{1});
      auto handle = caf::actor_cast<caf::actor>(worker);
      x.workers.push_back(handle);
      handle->attach_functor([this, i, is_compiler, epoch = x.epoch] {
        on_.after(1s, [this, i, is_compiler, epoch] {
          if (nodes_[i].epoch == epoch) start_worker(i, is_compiler);
        });
      });
    };
    if (is_compiler)
      offer(spawn_compiler(on_, i, folder_ + "/built"));
    else
      offer(spawn_runner(on_, i));
  }

  void end_node(sim_node& x) {
    x.epoch = 0;
    for (auto& who : x.workers) caf::anon_send_exit(who, caf::exit_reason::kill);
    caf::anon_send_exit(x.slots, caf::exit_reason::kill);
    caf::anon_send_exit(x.gate, caf::exit_reason::kill);
    x.workers.clear();
    if (x.link && x.link->is_open()) on_.mark("a node ends while it is connected");
  }

  // What a power cut leaves of files that were not synced: their names, and the front of some.
  void tear_files(const std::string& folder, const char* mark) {
    std::vector<std::string> files;
    std::error_code code;
    for (std::filesystem::recursive_directory_iterator at{folder, code}, end; !code && at != end;
         at.increment(code))
      if (at->is_regular_file()) files.push_back(at->path());
    std::sort(files.begin(), files.end()); // a folder has no order, and a seed must have
    for (const auto& path : files) {
      if (on_.upto(2) == 0) continue;
      on_.mark(mark);
      auto size = std::filesystem::file_size(path, code);
      std::filesystem::permissions(path, std::filesystem::perms{0644}, code);
      std::filesystem::resize_file(path, size / (1 + on_.upto(4)) / 2, code);
    }
  }

  bool can_reach_head(uint32_t i) const {
    return alive_ && *alive_ && !on_.on(fault_kind::cut, i) && !on_.on(fault_kind::half_open, i) &&
           !on_.on(fault_kind::node_power_off, i);
  }

  void dial(uint32_t i, uint64_t epoch) {
    auto& x = nodes_[i];
    if (x.epoch != epoch) return;
    auto again = [this, i, epoch] {
      auto& mine = nodes_[i];
      on_.after(mine.pause, [this, i, epoch] { dial(i, epoch); });
      mine.pause = std::min<milliseconds>(mine.pause * 2, longest_pause);
    };
    if (!can_reach_head(i)) return again();
    auto link = std::make_shared<connection>(on_, i, x.gate, [this, i, epoch] {
      nodes_[i].pause = first_pause;
      on_.after(first_pause, [this, i, epoch] { dial(i, epoch); });
    });
    x.link = link;
    links_.push_back(link);
    link->on_job = [this](const envelope& where, char kind) { runs_->given_out(where, kind); };
    link->on_fault = [this](const std::string& category) {
      for (auto rare : {"stale_epoch", "parcel_missing", "worker_lost"})
        if (category == rare) on_.mark(rare);
    };
    auto welcomed = std::make_shared<bool>(false);
    on_.after(join_deadline, [link, welcomed] {
      if (!*welcomed) link->break_both();
    });
    link->post(way::to_head,
               [this, i, epoch, link, welcomed] { ask_to_join(i, epoch, link, welcomed); });
  }

  void ask_to_join(uint32_t i, uint64_t epoch, const std::shared_ptr<connection>& link,
                   const std::shared_ptr<bool>& welcomed) {
    auto offer = build<wire::NodeOffer>([&](wire::NodeOffer::Builder x) {
      x.setName("n" + std::to_string(i));
      x.setBuild("a build");
      x.setEpoch(epoch);
      x.setBackend("cpu");
      x.setArchitecture("x");
      x.setCompilers(2);
      auto slots = x.initSlots(2);
      slots.set(0, "0");
      slots.set(1, "1");
    });
    user_.asks([=, this](auto* self, const head_actor& head) {
      self->request(head, join_deadline, atom::join_v, offer, link->proxy())
          .then(
              [=, this](const Message<wire::Welcome>& says) {
                auto x = says.open();
                std::string name = x->getName();
                if (name != "n" + std::to_string(i)) on_.mark("a node's name is still taken");
                link->post(way::to_node, [=, this, met = x->getEpoch()] {
                  *welcomed = true;
                  nodes_[i].pause = first_pause;
                  if (nodes_[i].epoch == epoch) caf::anon_send(nodes_[i].gate, atom::join_v, met);
                });
              },
              [](caf::error&) {});
    });
  }

  // -- the head ------------------------------------------------------------------------------

  void start_head() {
    if (alive_ && *alive_) return;
    alive_ = std::make_shared<bool>(true);
    runs_->alive = alive_;
    head_settings settings;
    settings.build = "a build";
    settings.epoch = ++epochs_ + 1000;
    settings.leases = {lease_of_job, 3, true, 8, 5.0, 2s};
    settings.shelf = std::make_shared<parcel_shelf>(folder_ + "/head");
    settings.servers_file = folder_ + "/policies.json";
    pool_ = on_.keep(on_.system().spawn(
        policy_pool, policy_member_factory{[this](const policy_config& x) {
          return spawn_policy(on_, static_cast<uint32_t>(x.base_url.back() - '0'));
        }}));
    settings.pool = pool_;
    settings.runs = runs_;
    settings.own_threads = false;
    head_ = on_.keep(spawn_head(on_.system(), std::move(settings)));
    user_.meet(head_, alive_);
    user_.asks([](auto* self, const head_actor& head) {
      self->request(head, 10min, atom::start_v).then([](atom::start) {}, [](caf::error&) {});
    });
  }

  // Nothing that its actors do afterwards is seen by anybody.
  void kill_head() {
    if (!alive_ || !*alive_) return;
    *alive_ = false;
    disk_->lose_unwritten();
    for (auto who : {caf::actor_cast<caf::actor>(head_), caf::actor_cast<caf::actor>(pool_)})
      caf::anon_send_exit(who, caf::exit_reason::kill);
    user_.kill();
    runs_->kill_all();
    for (auto& link : links_) {
      link->break_at_head();
      on_.after(milliseconds{1 + on_.upto(20)}, [link] { link->break_at_node(); });
    }
    links_.clear();
  }

  // -- faults --------------------------------------------------------------------------------

  // `where` is drawn for all kinds alike.
  fault placed(fault x) const {
    bool server = x.kind >= fault_kind::server_down && x.kind <= fault_kind::server_left;
    x.where %= x.kind <= fault_kind::worker_faulty ? node_count
               : server                            ? server_count
               : x.kind == fault_kind::run_paused  ? 2
                                                   : 1;
    return x;
  }

  void begin(size_t number) {
    auto x = placed(faults_[number]);
    auto& node = nodes_[x.where % node_count];
    on_.begin(x);
    on_.mark(to_string(x.kind));
    on_.after(milliseconds{x.for_ms}, [this, x] { end(x); });
    switch (x.kind) {
      case fault_kind::cut:
      case fault_kind::half_open:
        if (node.link) node.link->look_whether_silent();
        break;
      case fault_kind::reset:
        if (node.link) node.link->break_both();
        break;
      case fault_kind::node_power_off:
        if (node.link) node.link->look_whether_silent();
        end_node(node);
        tear_files(shelf_of(x.where), "a node's files are torn by a power cut");
        break;
      case fault_kind::node_killed: end_node(node); break;
      case fault_kind::node_drained: user_.command("drain", "n" + std::to_string(x.where)); break;
      case fault_kind::shelf_lost: {
        std::error_code ignored;
        std::filesystem::remove_all(shelf_of(x.where), ignored);
        break;
      }
      case fault_kind::head_killed:
        if (runs_->is_committing()) on_.mark("the head dies with a commit on its way");
        kill_head();
        if (x.amount % 2 == 0)
          tear_files(folder_ + "/head", "the head's files are torn by a power cut");
        break;
      case fault_kind::server_left:
        user_.command("policy_detach", server_name(x.where), json{{"drain_ms", x.amount}},
                      [](const json&) {});
        break;
      case fault_kind::clock_jump: on_.jump(milliseconds{x.amount}); break;
      case fault_kind::run_paused: user_.command("pause", run_names[x.where]); break;
      default: break;
    }
  }

  void end(const fault& x) {
    on_.end(x);
    auto& node = nodes_[x.where % node_count];
    switch (x.kind) {
      case fault_kind::cut:
      case fault_kind::half_open:
        if (node.link) node.link->heal();
        break;
      case fault_kind::node_power_off:
        // The address has no machine any more when the head asks next.
        if (auto old = node.link)
          on_.after(milliseconds{1 + on_.upto(1000)}, [old] { old->break_both(); });
        [[fallthrough]];
      case fault_kind::node_killed: start_node(x.where); break;
      case fault_kind::node_drained:
        end_node(node); // what it had not answered by now is lost
        start_node(x.where);
        break;
      default: break;
    }
  }

  // Every two seconds.
  void user_looks() {
    on_.after(2s, [this] { user_looks(); });
    if (*alive_)
      user_.look();
    else if (!on_.on(fault_kind::head_killed, 0)) {
      on_.mark("the head is started again");
      start_head();
    }
  }

  std::string folder_;
  std::vector<fault> faults_;
  std::shared_ptr<sim_disk> disk_;
  machine on_;
  std::shared_ptr<sim_runs> runs_;
  sim_node nodes_[node_count];
  std::vector<std::shared_ptr<connection>> links_;
  std::shared_ptr<bool> alive_; ///< of the head of now
  head_actor head_;
  policy_pool_actor pool_;
  sim_user user_;
  uint64_t epochs_ = 0;
  double faults_end_ = 0;
};

} // namespace

life live(uint64_t seed, const std::vector<fault>& faults, defect broken, const std::string& folder,
          const std::string& task_folder, double calm_bound) {
  auto task = load_task_folder(task_folder);
  if (!task) {
    std::fprintf(stderr, "%s\n", render(task.error()).c_str());
    std::exit(1);
  }
  cluster_world world{seed, faults, broken, folder, *task};
  return world.run(calm_bound);
}

} // namespace kernelmill::sim
