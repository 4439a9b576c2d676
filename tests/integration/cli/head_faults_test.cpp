// Heads whose port is full of strangers, runs that are gone, and nodes that lack what a run
// requires.

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "messages/base/descriptor.hpp"
#include "tests/integration/cli/small_cluster.hpp"

namespace kernelmill::test {
namespace head_faults_test {

using testing::HasSubstr;

/// So many connections of one process, which say nothing.
std::vector<descriptor> silent_strangers(const std::string& address, int count) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  std::vector<descriptor> result;
  for (int i = 0; i < count; ++i) {
    result.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(result.back().get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  return result;
}

size_t descriptors_of(pid_t process) {
  auto list = std::filesystem::directory_iterator{"/proc/" + std::to_string(process) + "/fd"};
  return static_cast<size_t>(std::distance(begin(list), end(list)));
}

// With TLS each stranger cost a head its credentials' files and four descriptors, until it had none
// left; without TLS each stayed for ever.
TEST(head_faults, goes_on_when_strangers_take_more_connections_than_it_has_descriptors) {
  auto credentials = scratch() + "/door_credentials";
  ASSERT_EQ(kernelmill({"cluster", "init", "--dir", credentials}).code, 0);
  for (const std::vector<std::string>& link :
       {std::vector<std::string>{"--credentials", credentials}, {"--insecure-loopback"}}) {
    std::vector<std::string> words{"head", "--listen", "127.0.0.1:0", "--root",
                                   scratch() + "/door_runs" + link[0]};
    words.insert(words.end(), link.begin(), link.end());
    rlimit before{}, few{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    few = before;
    few.rlim_cur = 256;
    ::setrlimit(RLIMIT_NOFILE, &few); // for the head alone
    running_program head{words};
    before.rlim_cur = std::max<rlim_t>(before.rlim_cur, std::min<rlim_t>(before.rlim_max, 1024));
    ::setrlimit(RLIMIT_NOFILE, &before);
    auto address = head.first_line();
    auto strangers = silent_strangers(address, 400);
    words = {"status", "--head", address};
    words.insert(words.end(), link.begin(), link.end());
    auto x = kernelmill(words);
    EXPECT_EQ(x.code, 0) << link[0] << x.err;
    EXPECT_LT(descriptors_of(head.number()), 100u) << link[0] << ": they are few at a time";
    EXPECT_TRUE(head.running());
    EXPECT_EQ(head.stop(SIGTERM).code, 0);
  }
}

/// A process as /proc has it.
struct process_facts {
  std::string name;
  char state = 'X';
  int parent = 0;
  unsigned long ticks = 0; ///< of a processor, in its own code
};

std::map<int, process_facts> all_processes() {
  std::map<int, process_facts> result;
  for (const auto& entry : std::filesystem::directory_iterator{"/proc"}) {
    auto id = std::atoi(entry.path().filename().c_str());
    std::string text;
    if (id == 0 || !std::getline(std::ifstream{entry.path() / "stat"}, text)) continue;
    auto end = text.rfind(')');
    process_facts x;
    x.name = text.substr(text.find('(') + 1, end - text.find('(') - 1);
    std::istringstream rest{text.substr(end + 1)};
    std::string word;
    rest >> x.state >> x.parent;
    for (int i = 0; i < 9; ++i) rest >> word;
    rest >> x.ticks;
    result.emplace(id, x);
  }
  return result;
}

/// A candidate below a process that has computed for half a second; 0: there is none.
int busy_candidate(int root) {
  auto half_second = static_cast<unsigned long>(::sysconf(_SC_CLK_TCK) / 2);
  auto all = all_processes();
  for (const auto& [id, x] : all) {
    if (!x.name.starts_with("kernelmill-cand") || x.state != 'R' || x.ticks < half_second) continue;
    auto at = all.find(id);
    while (at != all.end() && at->first != root) at = all.find(at->second.parent);
    if (at != all.end()) return id;
  }
  return 0;
}

/// Right, and a second of a processor for each of 39 calls: one without end would be gone after
/// two.
constexpr const char* long_kernel = R"(#include <ctime>
static double worked() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}
extern "C" void solve(const float* x, float* y, int rows, int cols) {
  for (int i = 0; i < rows; ++i) {
    double sum = 0;
    for (int j = 0; j < cols; ++j) sum += x[(long)i * cols + j];
    y[i] = (float)sum;
  }
  for (double until = worked() + 1; worked() < until;)
    for (volatile int i = 0; i < 1 << 20; i = i + 1) {}
}
)";

// It ran on to the deadline of its evaluation, in a slot that others waited for.
TEST(head_faults, a_candidate_of_a_run_that_is_cancelled_is_ended) {
  auto text = std::string{"```cpp\n"} + long_kernel + "```";
  auto script = write_file("long.json", nlohmann::json{{"replies", {{{"text", text}}}}}.dump());
  small_cluster cluster{scratch() + "/endless_runs"};
  cluster.start_node();
  ASSERT_EQ(cluster
                .submit({"run.name=endless", "policy.script=" + script, "tasks.group_size=1",
                         "evaluation.deadline_ms=110000"})
                .code,
            0);
  int candidate = 0;
  while (candidate == 0 && cluster.state_of("endless")["state"] == "running")
    candidate = busy_candidate(cluster.node_number());
  ASSERT_NE(candidate, 0) << cluster.state_of("endless");
  ASSERT_EQ(cluster.ask({"cancel", "endless"}).code, 0);
  // By what it works: on a busy machine it goes on for longer, and does not get further.
  auto ticks_of = [](int id) {
    auto all = all_processes();
    auto found = all.find(id);
    return found == all.end() ? 0 : found->second.ticks;
  };
  auto at_cancel = ticks_of(candidate);
  auto last = at_cancel;
  while (auto now = ticks_of(candidate)) {
    last = now;
    cluster.ask({"status"});
  }
  auto second = static_cast<unsigned long>(::sysconf(_SC_CLK_TCK));
  // What is in progress has eight seconds more.
  EXPECT_LT(last - at_cancel, 25 * second) << "of the 37 that were left";
  // The slot is free: the next run has it.
  auto next = cluster.submit({"run.name=next", "tasks.group_size=1", "--wait"});
  EXPECT_EQ(next.document()["state"], "finished") << next.out << next.err;
  EXPECT_EQ(next.document()["infrastructure"], 0) << next.out;
  EXPECT_EQ(cluster.stop().code, 0);
}

TEST(head_faults, a_run_that_requires_a_layer_which_no_node_has_is_refused) {
  auto doctor = kernelmill({"doctor", "--json"}).document();
  std::string missing;
  for (const auto& x : doctor["findings"])
    if (std::string name = x["name"]; name.starts_with("sandbox: ") && x["state"] != "ok")
      missing = name.substr(9);
  if (missing.empty()) GTEST_SKIP() << "all layers stand on this machine";
  small_cluster cluster{scratch() + "/layers"};
  cluster.start_node();
  auto x = cluster.submit(
      {"run.name=strict", "evaluation.required_layers=[\"" + missing + "\"]", "--wait"});
  EXPECT_EQ(x.code, 77) << x.err;
  EXPECT_THAT(x.err, HasSubstr("node worker lacks " + missing));
  EXPECT_EQ(cluster.stop().code, 0);
}

} // namespace head_faults_test
} // namespace kernelmill::test
