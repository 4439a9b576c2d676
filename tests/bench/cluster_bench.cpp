// How much of its slots a cluster uses: a head and 1, 2, 4 and 8 nodes, each a process of its own,
// over real TCP on the loopback interface, plain and with TLS. The nodes' compilers take 1 ms and
// their slots 20 ms of waiting, so that the machine's cores are left to what is measured: queues,
// links, and the 100 KB of a library that every job takes from where it was built to where it runs.
//
//   cluster_bench [--quick] [--nodes 1,2,4,8] [--slots 2] [--library-kb 100] [--seconds 6]
//                 [--tls no|yes|both] [--load stream|episodes|both]
//
// Run by launch/bench.sh. Files go to $KERNELMILL_BENCH_DIR, else /dev/shm: disks are not measured.

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <caf/all.hpp>
#include <caf/io/all.hpp>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "actors/cluster/head_gate.hpp"
#include "actors/cluster/node_gate.hpp"
#include "actors/lineage/record_sinks.hpp"
#include "actors/run/run.hpp"
#include "launch/cluster/build_id.hpp"
#include "launch/cluster/link.hpp"
#include "messages/digest.hpp"
#include "tests/bench/instant_services.hpp"

extern char** environ;

namespace kernelmill::bench {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto build_time = 1ms;
constexpr auto evaluate_time = 20ms;
constexpr auto warm_up = 1500ms;
constexpr const char* lane_backend = "bench";
constexpr const char* lane_architecture = "virtual";

/// What was typed; a child gets all of it as words again.
struct settings {
  std::string role = "all"; ///< or "case", "node"
  std::string nodes = "1,2,4,8";
  std::string tls = "both";
  std::string load = "both";
  std::string directory; ///< of a case
  uint32_t slots = 2;
  uint32_t library_kb = 100;
  double seconds = 6;
  uint16_t port = 0;   ///< of the head
  uint32_t number = 0; ///< of a node
};

std::atomic<bool> over{false}; // what is lost now is no loss

[[noreturn]] void give_up(const std::string& why) {
  if (over) ::pause(); // until this process ends
  std::fprintf(stderr, "cluster_bench: %s\n", why.c_str());
  std::_Exit(1);
}

template <class T>
T must(expected<T> x) {
  if (!x) give_up(render(x.error()));
  return std::move(*x);
}

// -- a node ---------------------------------------------------------------------------------------

Message<wire::EvaluateResult> verdict() {
  return build<wire::EvaluateResult>([](wire::EvaluateResult::Builder x) {
    x.setCorrect(true);
    x.setDeterministic(true);
    auto cases = x.initCases(8);
    for (unsigned i = 0; i < cases.size(); ++i) {
      cases[i].setName("case");
      cases[i].setShape("rows=64 cols=256");
      cases[i].setBound(1e-5);
      cases[i].setPass(true);
    }
    x.setSeconds(0.02);
    x.setDevice("a slot that waits");
  });
}

/// Makes libraries that nobody has seen, in a folder that keeps the latest.
class library_maker {
public:
  library_maker(std::string directory, uint64_t seed, size_t bytes)
      : directory_(std::move(directory)), next_(seed << 40), bytes_(bytes / 8) {
    fs::create_directories(directory_);
  }

  Message<wire::BuildResult> make() {
    for (auto& x : bytes_) { // what no link can compress
      next_ += 0x9e3779b97f4a7c15;
      x = (next_ ^ next_ >> 30) * 0xbf58476d1ce4e5b9;
    }
    std::string_view content{reinterpret_cast<const char*>(bytes_.data()), bytes_.size() * 8};
    auto sha256 = sha256_hex(content);
    auto path = directory_ + "/" + std::to_string(count_ % kept) + ".so";
    ++count_;
    std::ofstream{path, std::ios::binary} << content;
    return build<wire::BuildResult>([&](wire::BuildResult::Builder x) {
      x.setCompiled(true);
      x.setLibraryPath(path);
      x.setLibrarySha256(sha256);
      x.setToolchain("a compiler that waits");
      x.setSeconds(0.001);
    });
  }

private:
  static constexpr uint64_t kept = 64; // far more than are on their way
  std::string directory_;
  uint64_t next_;
  uint64_t count_ = 0;
  std::vector<uint64_t> bytes_;
};

/// Jobs that are served one after the other, each for a fixed time of waiting. As a GPU does, the
/// next one that is there begins when the one before ends, whenever our timer notices that.
template <class Result>
struct waiting_line {
  std::deque<caf::typed_response_promise<Message<Result>>> jobs;
  clock::time_point free_at;

  template <class Self>
  caf::result<Message<Result>> take(Self* self, std::chrono::milliseconds time) {
    jobs.push_back(self->template make_response_promise<Message<Result>>());
    auto now = clock::now();
    free_at = std::max(now, free_at) + time;
    self->delayed_send(self, free_at - now, atom::tick_v);
    return jobs.back();
  }

  void serve(const Message<Result>& result) {
    auto done = std::move(jobs.front());
    jobs.pop_front();
    done.deliver(result);
  }
};

using ticking_compiler = compiler_actor::extend<caf::reacts_to<atom::tick>>;
using ticking_runner = gpu_runner_actor::extend<caf::reacts_to<atom::tick>>;

struct virtual_compiler_state {
  waiting_line<wire::BuildResult> line;
  static inline const char* name = "virtual-compiler";
};

ticking_compiler::behavior_type
virtual_compiler(ticking_compiler::stateful_pointer<virtual_compiler_state> self,
                 std::shared_ptr<library_maker> maker) {
  return {
      [](atom::status) { return Message<wire::Snapshot>{}; },
      [self](atom::build, const envelope&, const Message<wire::BuildRequest>&) {
        return self->state.line.take(self, build_time);
      },
      [self, maker](atom::tick) { self->state.line.serve(maker->make()); },
  };
}

struct virtual_runner_state {
  waiting_line<wire::EvaluateResult> line;
  static inline const char* name = "virtual-runner";
};

ticking_runner::behavior_type
virtual_runner(ticking_runner::stateful_pointer<virtual_runner_state> self) {
  return {
      [](atom::status) { return Message<wire::Snapshot>{}; },
      [self](atom::evaluate, const envelope&, const Message<wire::EvaluateRequest>& request) {
        // A node whose files are not there would be fast for nothing.
        auto x = request.open();
        if (::access(x->getLibraryPath().cStr(), R_OK) != 0 ||
            ::access(x->getTaskDir().cStr(), R_OK) != 0)
          give_up("a job came without its files");
        return self->state.line.take(self, evaluate_time);
      },
      [self, answer = verdict()](atom::tick) { self->state.line.serve(answer); },
  };
}

link_options link_of(const settings& x) {
  link_options result;
  result.insecure_loopback = x.tls != "yes";
  result.credentials = x.directory + "/credentials";
  return result;
}

Message<wire::NodeOffer> offer_of(const settings& x) {
  return build<wire::NodeOffer>([&](wire::NodeOffer::Builder b) {
    b.setName("node" + std::to_string(x.number));
    b.setBuild(build_id());
    b.setEpoch(static_cast<uint64_t>(::getpid()));
    b.setBackend(lane_backend);
    b.setArchitecture(lane_architecture);
    b.setCompilers(x.slots);
    auto slots = b.initSlots(x.slots);
    for (uint32_t i = 0; i < x.slots; ++i) slots.set(i, "slot" + std::to_string(i));
  });
}

[[noreturn]] void serve_node(const settings& x) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  network_address at{"127.0.0.1", x.port};
  auto tls = must(choose_link(link_of(x), at));
  cluster_config config{tls};
  caf::actor_system system{config};
  lease_policy policy;
  policy.attempts = 1;
  auto local = system.spawn(leasing_cluster, policy);
  auto folder = x.directory + "/node" + std::to_string(x.number);
  for (uint32_t i = 0; i < x.slots; ++i) {
    auto maker = std::make_shared<library_maker>(folder + "/built" + std::to_string(i),
                                                 x.number * 1000 + i + 1, x.library_kb * 1000);
    // Credits as a node's own: launch/slot_actors.cpp.
    caf::anon_send(local, atom::lease_v, compiler_actor{system.spawn(virtual_compiler, maker)},
                   uint32_t{1});
    caf::anon_send(local, atom::lease_v, gpu_runner_actor{system.spawn(virtual_runner)},
                   uint32_t{2});
  }
  auto gate =
      spawn_node_gate(system, folder, local, std::make_shared<parcel_shelf>(folder + "/shelf"));
  auto head = must(reach_head(system, at, tls.has_value()));
  caf::scoped_actor self{system};
  self->monitor(head);
  self->request(head, 10s, atom::join_v, offer_of(x), gate)
      .receive(
          [](const Message<wire::Welcome>& welcome) {
            if (welcome.open()->getFault().getClass() != wire::FaultClass::NONE)
              give_up(welcome.open()->getFault().getMessage().cStr());
          },
          [&](caf::error& why) { give_up(system.render(why)); });
  self->receive([](const caf::down_msg&) {});
  std::_Exit(0);
}

// -- load -----------------------------------------------------------------------------------------

std::shared_ptr<const task> row_sum() {
  auto* root = std::getenv("KERNELMILL_SOURCE_DIR");
  auto path = std::string{root != nullptr ? root : "."} + "/configs/tasks/native/row_sum";
  auto result = must(load_task_folder(fs::absolute(path).string()));
  if (auto ok = choose_backend(result, "cpu"); !ok) give_up(render(ok.error()));
  if (auto ok = choose_contract(result, "native"); !ok) give_up(render(ok.error()));
  return std::make_shared<const task>(std::move(result));
}

struct chain_state {
  std::shared_ptr<const task> what;
  cluster_actor queues;
  uint64_t number = 0;
  static inline const char* name = "chain";
};

using chain = caf::stateful_actor<chain_state>;

void lost(chain* self, caf::error& why) {
  give_up("a job was lost: " + self->system().render(why));
}

void build_next(chain* self);

void evaluate_next(chain* self, const envelope& where, const Message<wire::BuildResult>& built) {
  auto& s = self->state;
  auto b = built.open();
  if (!b->getCompiled()) give_up(b->getFault().getMessage().cStr());
  auto request = build<wire::EvaluateRequest>([&](wire::EvaluateRequest::Builder x) {
    x.setTaskId(s.what->id);
    x.setTaskDir(s.what->directory);
    x.setTaskDigest(s.what->digest);
    x.setCandidateSha256(b->getLibrarySha256());
    x.setLibraryPath(b->getLibraryPath());
    x.setLibrarySha256(b->getLibrarySha256());
    x.setDeadlineMs(60'000);
    x.setContract("native");
  });
  self->request(s.queues, caf::infinite, atom::evaluate_v, where, request)
      .then(
          [self](const Message<wire::EvaluateResult>& result) {
            auto x = result.open();
            if (!x->getCorrect()) give_up(x->getFault().getMessage().cStr());
            build_next(self);
          },
          [self](caf::error& why) { lost(self, why); });
}

void build_next(chain* self) {
  auto& s = self->state;
  envelope where;
  where.episode = ++s.number;
  auto request = build<wire::BuildRequest>([&](wire::BuildRequest::Builder x) {
    x.setTask(s.what->id);
    x.setContract("native");
    x.setBackend("cpu");
    x.setSource(std::string(1300, 's'));
    x.setSha256(std::string(64, 'a'));
    x.setDeadlineMs(60'000);
  });
  self->request(s.queues, caf::infinite, atom::build_v, where, request)
      .then([self,
             where](const Message<wire::BuildResult>& built) { evaluate_next(self, where, built); },
            [self](caf::error& why) { lost(self, why); });
}

/// Build and evaluate, over and over: what an episode asks of the cluster, without an episode.
void start_stream(caf::actor_system& system, const cluster_actor& queues, uint32_t live) {
  auto what = row_sum();
  for (uint32_t i = 0; i < live; ++i)
    system.spawn([what, queues](chain* self) {
      self->state.what = what;
      self->state.queues = queues;
      build_next(self);
    });
}

/// The real thing: run, episodes, governance, and a durable store.
void start_episodes(caf::actor_system& system, const cluster_actor& queues, uint32_t live,
                    const std::string& directory) {
  auto services = instant_services(system, {});
  services->compiler = queues;
  services->runner = queues;
  services->profiler = queues;
  auto opened = must(store::open({directory + "/lineage", false, uint64_t{8} << 30, true}));
  auto sink = std::make_shared<store_sink>(std::make_shared<store>(std::move(opened)),
                                           std::make_shared<artifact_store>(directory + "/texts"));
  services->lineage = spawn_group_commit_lineage(system, sink, lineage_config{});
  run_plan plan;
  plan.name = "bench";
  plan.group_size = 8;
  plan.max_live = live;
  plan.groups.assign(100'000, row_sum()); // more than any measurement takes
  auto run = system.spawn(batch_run, std::move(plan), std::make_shared<episode_settings>(),
                          std::shared_ptr<const episode_services>{services}, nullptr);
  system.spawn([run](caf::event_based_actor* self) {
    self->request(run, caf::infinite, atom::start_v)
        .then([](const Message<wire::RunSummary>&) { give_up("the run ended"); },
              [self](caf::error& why) { give_up(self->system().render(why)); });
  });
}

// -- measuring ------------------------------------------------------------------------------------

double own_cpu_seconds() {
  rusage x{};
  ::getrusage(RUSAGE_SELF, &x);
  auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(x.ru_utime) + seconds(x.ru_stime);
}

double cpu_seconds_of(pid_t process) {
  std::ifstream file{"/proc/" + std::to_string(process) + "/stat"};
  std::string text{std::istreambuf_iterator<char>{file}, {}};
  std::istringstream after{text.substr(text.rfind(')') + 1)};
  std::string skipped;
  for (int i = 0; i < 11; ++i) after >> skipped;
  double user = 0, kernel = 0;
  after >> user >> kernel;
  return (user + kernel) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

struct machine_ticks {
  double all = 0, idle = 0;
};

machine_ticks ticks() {
  std::ifstream file{"/proc/stat"};
  std::string word;
  file >> word;
  machine_ticks result;
  for (int i = 0; i < 8; ++i) {
    double x = 0;
    file >> x;
    result.all += x;
    if (i == 3 || i == 4) result.idle += x;
  }
  return result;
}

std::string first_word_of(const char* path) {
  std::ifstream file{path};
  std::string result;
  file >> result;
  return result;
}

struct reading {
  clock::time_point when;
  double done = 0, head = 0, nodes = 0;
  machine_ticks machine;
};

reading read_now(caf::actor_system& system, const cluster_actor& queues,
                 const std::vector<pid_t>& nodes) {
  reading result;
  caf::scoped_actor self{system};
  self->request(queues, 10s, atom::status_v)
      .receive(
          [&](const Message<wire::Snapshot>& x) {
            auto view = x.open();
            for (auto number : view->getNumbers())
              if (number.getName() == "evaluations_done") result.done = number.getValue();
          },
          [&](caf::error& why) { give_up(system.render(why)); });
  result.when = clock::now();
  result.head = own_cpu_seconds();
  for (auto pid : nodes) result.nodes += cpu_seconds_of(pid);
  result.machine = ticks();
  return result;
}

std::vector<std::string> words_of(const settings& x) {
  return {"--role",       x.role,
          "--nodes",      x.nodes,
          "--tls",        x.tls,
          "--load",       x.load,
          "--directory",  x.directory,
          "--slots",      std::to_string(x.slots),
          "--library-kb", std::to_string(x.library_kb),
          "--seconds",    std::to_string(x.seconds),
          "--port",       std::to_string(x.port),
          "--number",     std::to_string(x.number)};
}

pid_t start_again(const settings& x) {
  auto words = words_of(x);
  std::vector<char*> argv{const_cast<char*>("cluster_bench")};
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = 0;
  if (::posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, argv.data(), environ) != 0)
    give_up("failed to start a process");
  return pid;
}

void print_row(const settings& x, uint32_t nodes, const reading& a, const reading& b,
               const std::string& load) {
  auto seconds = std::chrono::duration<double>(b.when - a.when).count();
  auto jobs = b.done - a.done;
  auto ideal = nodes * x.slots / std::chrono::duration<double>(evaluate_time).count();
  auto busy = 1 - (b.machine.idle - a.machine.idle) / (b.machine.all - a.machine.all);
  std::printf("%-8s  %-5s  %5u  %8.1f  %7.0f  %9.1f %%  %12.0f  %12.0f  %6.0f %%  %6.0f  %5.1f  "
              "%5s\n",
              x.load.c_str(), x.tls == "yes" ? "TLS" : "plain", nodes, jobs / seconds, ideal,
              100 * jobs / seconds / ideal, (b.head - a.head) / jobs * 1e6,
              (b.nodes - a.nodes) / jobs * 1e6, 100 * busy, jobs, seconds, load.c_str());
  std::fflush(stdout);
}

/// One row: the head is this process.
[[noreturn]] void measure(const settings& x) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  auto load = first_word_of("/proc/loadavg");
  auto nodes = static_cast<uint32_t>(std::stoul(x.nodes));
  if (x.tls == "yes") (void)must(make_credentials(x.directory + "/credentials"));
  network_address at{"127.0.0.1", 0};
  auto tls = must(choose_link(link_of(x), at));
  cluster_config config{tls};
  caf::actor_system system{config};
  lease_policy policy;
  policy.lease = 30min;
  policy.hedge_factor = 3;
  head_gate_settings gate;
  gate.build = build_id();
  gate.epoch = 1;
  gate.roster = std::make_shared<cluster_roster>(system, policy);
  gate.shelf = std::make_shared<parcel_shelf>(x.directory + "/head");
  gate.control = [](const Message<wire::ControlRequest>&) { return Message<wire::ControlReply>{}; };
  auto roster = gate.roster;
  auto head = spawn_head_gate(system, std::move(gate));
  auto port = must(publish_head(system, head, at, tls.has_value()));
  std::vector<pid_t> children;
  for (uint32_t i = 0; i < nodes; ++i) {
    auto child = x;
    child.role = "node";
    child.port = port;
    child.number = i;
    children.push_back(start_again(child));
  }
  for (int i = 0; roster->members().size() < nodes; ++i) {
    if (i > 1000) give_up("the nodes did not come");
    std::this_thread::sleep_for(20ms);
  }
  auto queues = roster->queues(std::string{lane_backend} + "/" + lane_architecture);
  auto live = 6 * nodes * x.slots; // the queues are never empty
  if (x.load == "stream")
    start_stream(system, queues, live);
  else
    start_episodes(system, queues, live, x.directory);
  std::this_thread::sleep_for(warm_up);
  auto a = read_now(system, queues, children);
  std::this_thread::sleep_for(std::chrono::duration<double>(x.seconds));
  auto b = read_now(system, queues, children);
  print_row(x, nodes, a, b, load);
  over = true;
  for (auto pid : children) ::kill(pid, SIGKILL);
  for (auto pid : children) ::waitpid(pid, nullptr, 0);
  std::_Exit(0); // the system would wait for a thousand jobs
}

// -- command line ---------------------------------------------------------------------------------

settings settings_of(int argc, char** argv) {
  settings result;
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i];
    if (name == "--quick") {
      result.nodes = "1,8";
      result.seconds = 2;
      result.load = "stream";
      continue;
    }
    if (i + 1 == argc) give_up("no value for " + name);
    std::string value = argv[++i];
    if (name == "--role")
      result.role = value;
    else if (name == "--nodes")
      result.nodes = value;
    else if (name == "--tls")
      result.tls = value;
    else if (name == "--load")
      result.load = value;
    else if (name == "--directory")
      result.directory = value;
    else if (name == "--slots")
      result.slots = static_cast<uint32_t>(std::stoul(value));
    else if (name == "--library-kb")
      result.library_kb = static_cast<uint32_t>(std::stoul(value));
    else if (name == "--seconds")
      result.seconds = std::stod(value);
    else if (name == "--port")
      result.port = static_cast<uint16_t>(std::stoul(value));
    else if (name == "--number")
      result.number = static_cast<uint32_t>(std::stoul(value));
    else
      give_up("unknown option " + name);
  }
  return result;
}

std::string scratch_directory() {
  auto* from = std::getenv("KERNELMILL_BENCH_DIR");
  std::string parent = from != nullptr ? from : "/dev/shm";
  auto pattern = (fs::is_directory(parent) ? parent : ".") + "/cluster-bench-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) give_up("failed to make " + pattern);
  return fs::absolute(pattern).string();
}

int run_case(settings x, const std::string& nodes, const char* load, const char* tls) {
  x.role = "case";
  x.nodes = nodes;
  x.load = load;
  x.tls = tls;
  x.directory = scratch_directory();
  int status = 0;
  ::waitpid(start_again(x), &status, 0);
  fs::remove_all(x.directory);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}

int run_all(const settings& x) {
  std::printf("a slot takes %lld ms, a build %lld ms; %u slots and compilers a node; libraries of "
              "%u KB, each another one; %u cores for all processes\n",
              static_cast<long long>(evaluate_time.count()),
              static_cast<long long>(build_time.count()), x.slots, x.library_kb,
              std::thread::hardware_concurrency());
  std::printf("LOAD      LINK   NODES    JOBS/S    IDEAL   EFFICIENCY  HEAD CPU us/  NODE CPU us/  "
              "CORES %%    JOBS  SECONDS  LOAD AVG\n");
  std::fflush(stdout);
  int failed = 0;
  for (const char* load : {"stream", "episodes"})
    for (const char* tls : {"no", "yes"}) {
      if ((x.load != "both" && x.load != load) || (x.tls != "both" && x.tls != tls)) continue;
      std::istringstream list{x.nodes};
      for (std::string nodes; std::getline(list, nodes, ',');)
        failed += run_case(x, nodes, load, tls);
    }
  return failed > 0;
}

} // namespace
} // namespace kernelmill::bench

int main(int argc, char** argv) {
  using namespace kernelmill::bench;
  auto x = settings_of(argc, argv);
  if (x.role == "node") serve_node(x);
  if (x.role == "case") measure(x);
  return run_all(x);
}
