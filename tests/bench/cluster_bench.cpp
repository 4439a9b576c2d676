// How much of its slots a cluster uses: a head and 1, 2, 4 and 8 nodes, each a process of its own,
// over real TCP on the loopback interface, plain and with TLS. The nodes' compilers take 1 ms and
// their slots 20 ms of waiting, so that the machine's cores are left to what is measured: queues,
// links, and the 100 KB of a library that every job takes from where it was built to where it runs.
//
//   cluster_bench [--quick] [--nodes 1,2,4,8] [--slots 2] [--library-kb 100] [--seconds 6]
//                 [--tls no|yes|both] [--load stream|episodes|both]
//
// Run by launch/bench.sh. Files go to $KERNELMILL_BENCH_DIR, else /dev/shm: disks are not measured.

#include "tests/bench/cluster_bench.hpp"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
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

#include "actors/head/head.hpp"
#include "actors/policy_pool/policy_pool.hpp"
#include "launch/cluster/build_id.hpp"

extern char** environ;

namespace kernelmill::bench {

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto warm_up = 1500ms;

std::atomic<bool> over{false}; // what is lost now is no loss

} // namespace

void give_up(const std::string& why) {
  if (over) ::pause(); // until this process ends
  std::fprintf(stderr, "cluster_bench: %s\n", why.c_str());
  std::_Exit(1);
}

namespace {

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

/// How many nodes have joined.
uint64_t nodes_of(caf::actor_system& system, const head_actor& head) {
  uint64_t result = 0;
  caf::scoped_actor self{system};
  self->request(head, 10s, atom::status_v)
      .receive(
          [&](const Message<wire::Snapshot>& says) {
            auto view = says.open();
            for (auto number : view->getNumbers())
              if (number.getName() == "nodes") result = static_cast<uint64_t>(number.getValue());
          },
          [](caf::error&) {});
  return result;
}

/// One row: the head is this process.
[[noreturn]] void measure(const settings& x) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  auto load = first_word_of("/proc/loadavg");
  auto nodes = static_cast<uint32_t>(std::stoul(x.nodes));
  if (x.tls == "yes") (void)must(make_credentials(x.directory + "/credentials"));
  network_address at{"127.0.0.1", 0};
  auto tls = must(choose_link(link_of(x), at));
  cluster_config config;
  caf::actor_system system{config};
  lease_policy policy;
  policy.lease = 30min;
  policy.hedge_factor = 3;
  auto queues = system.spawn(leasing_cluster, policy);
  head_settings own;
  own.build = build_id();
  own.epoch = 1;
  own.leases = policy;
  own.lanes.emplace(std::string{lane_backend} + "/" + lane_architecture, queues);
  own.shelf = std::make_shared<parcel_shelf>(x.directory + "/head");
  own.pool = system.spawn(policy_pool, policy_member_factory{});
  auto head = spawn_head(system, std::move(own));
  auto port = must(publish_head(system, head, at, tls));
  std::vector<pid_t> children;
  for (uint32_t i = 0; i < nodes; ++i) {
    auto child = x;
    child.role = "node";
    child.port = port;
    child.number = i;
    children.push_back(start_again(child));
  }
  for (int i = 0; nodes_of(system, head) < nodes; ++i) {
    if (i > 1000) give_up("the nodes did not come");
    std::this_thread::sleep_for(20ms);
  }
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
