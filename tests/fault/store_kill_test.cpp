// A writer dies by kill -9 at random moments of many lives. Whatever it had acknowledged is in the
// store, once, whole, and with its artifacts; the store opens at once each time. KERNELMILL_KILLS
// says how many lives (50 without it); what one store holds is given up after so many, or reading
// it all again after each life would take a time that grows with the square of them.

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <set>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "storage/artifacts.hpp"
#include "storage/lineage/store.hpp"

extern char** environ;

namespace kernelmill {
namespace store_kill_test {

constexpr int lives_of_a_store = 50;

int lives_wanted() {
  auto* value = std::getenv("KERNELMILL_KILLS");
  return value != nullptr ? std::max(1, std::atoi(value)) : lives_of_a_store;
}

struct writer {
  pid_t pid = -1;
  int output = -1;
};

writer start(const std::string& directory, uint32_t seed) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  auto seed_text = std::to_string(seed);
  std::string program = STORE_WRITER;
  std::string where = directory;
  char* arguments[] = {program.data(), where.data(), seed_text.data(), nullptr};
  writer result;
  if (::posix_spawn(&result.pid, program.c_str(), &actions, nullptr, arguments, environ) != 0)
    result.pid = -1;
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  result.output = ends[0];
  return result;
}

// Reads until there are `wanted` bytes of acknowledgements, lets up to `extra` milliseconds more
// pass, kills, and reads what is left in the pipe. So kills fall into opening, building, writing
// and syncing, on fast disks and on slow ones.
std::string live_and_die(const writer& x, size_t wanted, int extra) {
  constexpr int stuck = 60'000;
  std::string output;
  EXPECT_GT(x.pid, 0) << "the writer did not start";
  if (x.pid <= 0) return output; // -1 would be every process of this machine
  char chunk[65536];
  for (;;) {
    pollfd ready{x.output, POLLIN, 0};
    bool enough = output.size() >= wanted;
    int count = ::poll(&ready, 1, enough ? extra : stuck);
    EXPECT_TRUE(enough || count > 0) << "the writer is stuck";
    if (count <= 0) break;
    auto size = ::read(x.output, chunk, sizeof chunk);
    if (size <= 0) break;
    output.append(chunk, static_cast<size_t>(size));
    if (enough) break;
  }
  ::kill(x.pid, SIGKILL);
  int status = 0;
  ::waitpid(x.pid, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the writer ended by itself with " << WEXITSTATUS(status);
  for (ssize_t count = 0; (count = ::read(x.output, chunk, sizeof chunk)) > 0;)
    output.append(chunk, static_cast<size_t>(count));
  ::close(x.output);
  return output;
}

void add_lines(std::set<std::string>& into, const std::string& output) {
  for (size_t begin = 0, end; (end = output.find('\n', begin)) != output.npos; begin = end + 1)
    into.insert(output.substr(begin, end - begin));
}

// Returns the ids in the store; each record and each artifact is read and checked.
std::set<std::string> read_all(const std::string& directory) {
  std::set<std::string> ids;
  if (!std::filesystem::exists(directory + "/lineage/data.mdb")) return ids;
  auto lineage = store::open({.directory = directory + "/lineage"});
  EXPECT_TRUE(lineage) << (lineage ? "" : render(lineage.error()));
  if (!lineage) return ids;
  artifact_store artifacts{directory + "/artifacts"};
  uint64_t count = 0;
  auto ok = lineage->scan_run("killed", [&](wire::Record::Reader record) {
    auto turn = record.getTurn();
    EXPECT_TRUE(ids.insert(turn.getTurnId().cStr()).second) << "doubled";
    auto text = artifacts.candidate(turn);
    EXPECT_TRUE(text) << (text ? "" : render(text.error()));
    ++count;
    return true;
  });
  EXPECT_TRUE(ok) << (ok ? "" : render(ok.error()));
  EXPECT_EQ(lineage->record_count(), count);
  for (const auto& id : ids) {
    auto found = lineage->find_turn(id);
    EXPECT_TRUE(found && found->has_value()) << id;
  }
  return ids;
}

struct toll {
  size_t acknowledged = 0, lost = 0, early_deaths = 0;
};

// Lives of one store.
void live_many(int lives, std::mt19937& random, toll& so_far) {
  std::string pattern = std::filesystem::temp_directory_path() / "kernelmill-kill-XXXXXX";
  std::string directory = ::mkdtemp(pattern.data());
  std::set<std::string> acknowledged;
  for (int life = 0; life < lives; ++life) {
    auto x = start(directory, random());
    ASSERT_GT(x.pid, 0);
    size_t wanted = life % 5 == 0 ? 0 : 1 + random() % 4000;
    auto output = live_and_die(x, wanted, static_cast<int>(random() % 20));
    so_far.early_deaths += output.empty();
    add_lines(acknowledged, output);
    auto stored = read_all(directory);
    for (const auto& id : acknowledged) so_far.lost += !stored.contains(id);
    ASSERT_EQ(so_far.lost, 0u) << "in life " << life << ", see " << directory;
  }
  so_far.acknowledged += acknowledged.size();
  std::filesystem::remove_all(directory);
}

TEST(store_writer, loses_and_doubles_nothing_over_fifty_deaths) {
  std::mt19937 random{20240229};
  auto lives = lives_wanted();
  toll total;
  for (int left = lives; left > 0 && !HasFailure(); left -= lives_of_a_store)
    live_many(std::min(left, lives_of_a_store), random, total);
  EXPECT_GT(total.acknowledged, 0u);
  EXPECT_LT(total.early_deaths, static_cast<size_t>(lives));
  RecordProperty("kills", std::to_string(lives));
  RecordProperty("acknowledged", std::to_string(total.acknowledged));
  RecordProperty("lost", std::to_string(total.lost));
  std::printf("%d kills, %zu acknowledged turns, %zu deaths before any answer\n", lives,
              total.acknowledged, total.early_deaths);
}

} // namespace store_kill_test
} // namespace kernelmill
