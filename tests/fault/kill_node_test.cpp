// Kills a node with SIGKILL at random moments of the quickstart and resumes it, until twenty kills
// (or $KERNELMILL_KILLS) have struck; what is in the store at the end must be what an undisturbed
// run leaves, byte for byte where nothing is timed, and nothing that the node started may outlive
// it.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "storage/run_directory.hpp"
#include "tests/oracles/canonical.hpp"

extern char** environ;

namespace kernelmill {
namespace kill_node_test {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr int kills_without_a_wish = 20; // a minute or so

std::string from_environment(const char* name) {
  auto* value = std::getenv(name);
  return value != nullptr ? value : "";
}

int kills_to_strike() {
  auto value = from_environment("KERNELMILL_KILLS");
  return value.empty() ? kills_without_a_wish : std::max(1, std::atoi(value.c_str()));
}

/// A process of ours; waits on a pidfd, so that a test neither sleeps nor polls.
class node_process {
public:
  explicit node_process(std::vector<std::string> arguments, const std::string& log) {
    std::vector<char*> argv;
    for (auto& x : arguments) argv.push_back(x.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ) != 0) pid_ = -1;
    posix_spawn_file_actions_destroy(&actions);
    pidfd_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  }
  ~node_process() {
    if (!ended_) kill();
    close(pidfd_);
  }

  bool ends_within(milliseconds limit) {
    pollfd wanted{pidfd_, POLLIN, 0};
    if (poll(&wanted, 1, static_cast<int>(limit.count())) != 1) return false;
    int status = 0;
    waitpid(pid_, &status, 0);
    ended_ = true;
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return true;
  }

  void kill() {
    if (pid_ <= 0) return; // -1 would be every process of this machine
    ::kill(pid_, SIGKILL);
    ends_within(milliseconds{10'000});
  }

  int code() const { return code_; }

private:
  pid_t pid_ = -1;
  int pidfd_ = -1;
  int code_ = -1;
  bool ended_ = false;
};

class KillNode : public ::testing::Test {
protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "kernelmill-kill-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    program_ = from_environment("KERNELMILL_BIN_DIR") + "/kernelmill";
    config_ = from_environment("KERNELMILL_SOURCE_DIR") + "/configs/quickstart.json";
    ASSERT_TRUE(fs::exists(program_)) << program_;
  }
  void TearDown() override {
    if (!HasFailure()) fs::remove_all(folder_);
  }

  // All tasks but softmax: one of its scripted hacks races with the referee on purpose, and what it
  // is caught at first (a late write, or an output that is not there yet) is chance.
  // One name for all runs: a turn's id is a hash that the name is a part of. The seed makes the
  // inputs that the referee draws a function of the turn; the cache is the test's own, so that its
  // path marks every process that belongs to it.
  std::vector<std::string> run_command(const std::string& directory) const {
    return {program_,
            "run",
            config_,
            "run.name=killed",
            "run.dir=" + directory,
            R"(tasks.ids=["native/*", "!native/softmax"])",
            "evaluation.seed=" + std::string(64, '7'),
            "compile.cache_dir=" + folder_ + "/cache"};
  }
  std::vector<std::string> resume_command(const std::string& directory) const {
    return {program_, "resume", directory};
  }
  std::string log() const { return folder_ + "/log"; }

  std::string canonical(const std::string& directory) {
    auto run = open_run(directory);
    if (!run) return "no run: " + run.error().message;
    store_options options;
    options.directory = run->store;
    options.read_only = true;
    auto records = store::open(options);
    if (!records) return "no store: " + records.error().message;
    auto text = canonical_lineage(*records, artifact_store{run->artifacts}, run->name);
    return text ? *text : "no lineage: " + text.error().message;
  }

  // Processes that carry the test's cache directory on their command line.
  std::vector<std::string> survivors() const {
    std::vector<std::string> result;
    for (auto& entry : fs::directory_iterator("/proc")) {
      // fopen, because a process may go between the listing and the reading.
      auto* file = std::fopen((entry.path() / "cmdline").c_str(), "re");
      if (file == nullptr) continue;
      std::string text(4096, '\0');
      text.resize(std::fread(text.data(), 1, text.size(), file));
      std::fclose(file);
      if (text.find(folder_ + "/cache") != std::string::npos)
        result.push_back(entry.path().filename().string() + " " + text.c_str());
    }
    return result;
  }

  /// True when everything that the dead node had started goes: at once, but a busy machine takes
  /// its time to end processes.
  bool all_go() const {
    auto until = std::chrono::steady_clock::now() + milliseconds{60'000};
    while (!survivors().empty()) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::yield();
    }
    return true;
  }

  std::string log_text() const {
    std::ifstream file{log()};
    return {std::istreambuf_iterator<char>{file}, {}};
  }

  std::string folder_, program_, config_;
};

TEST_F(KillNode, KillsLeaveTheLineageOfAnUndisturbedRun) {
  auto calm_directory = folder_ + "/calm";
  node_process calm{run_command(calm_directory), log()};
  ASSERT_TRUE(calm.ends_within(milliseconds{600'000}));
  ASSERT_EQ(calm.code(), 0) << log_text();
  auto expected_text = canonical(calm_directory);
  ASSERT_GT(expected_text.size(), 10'000u) << expected_text;

  std::mt19937_64 random{20261120};
  const int kills_wanted = kills_to_strike();
  int kills = 0, finished = 0;
  while (kills < kills_wanted) {
    auto directory = folder_ + "/run" + std::to_string(finished);
    bool done = false;
    while (!done) {
      bool resume = fs::exists(directory + "/manifest.json");
      node_process node{resume ? resume_command(directory) : run_command(directory), log()};
      // From the first millisecond to some seconds of work; as the run gets on from resume to
      // resume, the kills fall on all of its stages.
      auto moment = milliseconds{1 + static_cast<int64_t>(random() % 4000)};
      if (kills < kills_wanted && !node.ends_within(moment)) {
        node.kill();
        ++kills;
        EXPECT_TRUE(all_go()) << testing::PrintToString(survivors());
        continue;
      }
      if (kills >= kills_wanted) {
        ASSERT_TRUE(node.ends_within(milliseconds{600'000})) << log_text();
      }
      ASSERT_EQ(node.code(), 0) << log_text();
      done = true;
    }
    ++finished;
    ASSERT_EQ(canonical(directory), expected_text);
  }
  RecordProperty("kills", kills);
  RecordProperty("runs", finished);
  std::printf("%d kills over %d runs, every lineage equal to the undisturbed one\n", kills,
              finished);
}

} // namespace kill_node_test
} // namespace kernelmill
