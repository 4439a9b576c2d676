#include "gpu/sandbox/sandbox.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/sandbox/sandbox_fixture.hpp"

namespace kernelmill {
namespace sandbox_test {

using testing::HasSubstr;

class a_sandbox : public sandbox_fixture {};

TEST_F(a_sandbox, tells_how_its_program_ended) {
  EXPECT_EQ(run(intrude({"exit", "0"})).status.code, 0);
  EXPECT_EQ(run(intrude({"exit", "7"})).status.code, 7);
  auto crashed = run(intrude({"crash"})).status;
  EXPECT_EQ(crashed.signal, SIGSEGV);
  EXPECT_EQ(crashed.code, -1);
}

TEST_F(a_sandbox, answers_a_second_wait_like_the_first) {
  auto started = walls_.start(intrude({"exit", "3"}));
  ASSERT_TRUE(started) << render(started.error());
  EXPECT_EQ(started->wait(patience_ms)->code, 3);
  EXPECT_EQ(started->wait(0)->code, 3);
  EXPECT_FALSE(started->running());
}

TEST_F(a_sandbox, reports_a_program_that_cannot_be_executed_at_start) {
  sandbox_spec spec;
  spec.argv = {"/nonexistent"};
  auto started = walls_.start(spec);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().category, "cannot_execute");
  EXPECT_EQ(started.error().cls, fault_class::infrastructure);
  EXPECT_THAT(started.error().message, HasSubstr("/nonexistent"));
}

TEST_F(a_sandbox, reports_a_mount_that_is_not_there_at_start) {
  auto spec = intrude({"exit", "0"});
  spec.mounts.push_back({"/nonexistent/library.so", "/library.so", false});
  auto started = walls_.start(spec);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().category, "sandbox_unavailable");
  EXPECT_THAT(started.error().message, HasSubstr("/nonexistent/library.so"));
}

TEST_F(a_sandbox, passes_the_descriptors_and_variables_of_its_spec_alone) {
  int leak = ::open("/dev/null", O_RDONLY); // not close-on-exec
  auto spec = intrude({"census"});
  descriptor extra{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
  spec.descriptors = {{extra.get(), 17}};
  auto variables = spec.environment.size();
  spec.environment.push_back("OMP_NUM_THREADS=2");
  auto said = run(spec).said;
  ::close(leak);
  EXPECT_EQ(said["descriptors"], 4);
  EXPECT_EQ(said["variables"], static_cast<long>(variables + 1));
}

TEST_F(a_sandbox, copies_files_in_that_cannot_be_changed) {
  descriptor file{::memfd_create("text", MFD_CLOEXEC)};
  ASSERT_EQ(write_retrying(file.get(), "words 42\n", 9), 9);
  ::lseek(file.get(), 0, SEEK_SET);
  sandbox_spec spec;
  spec.argv = {"/bin/sh", "-c", "cat /a/b/text; (echo x >> /a/b/text) 2>/dev/null || echo kept 1"};
  spec.environment = {"PATH=/usr/bin"};
  spec.files = {{file.get(), "/a/b/text"}};
  auto said = run(spec).said;
  EXPECT_EQ(said["words"], 42);
  EXPECT_EQ(said["kept"], 1);
}

TEST_F(a_sandbox, shares_memory_with_its_parent) {
  descriptor shared{::memfd_create("shared", MFD_CLOEXEC)};
  ASSERT_EQ(::ftruncate(shared.get(), 4096), 0);
  sandbox_spec spec;
  spec.argv = {"/bin/sh", "-c", "printf hello >/proc/self/fd/9"};
  spec.descriptors = {{shared.get(), 9}};
  EXPECT_EQ(run(spec).status.code, 0);
  char text[6] = {};
  ASSERT_EQ(::pread(shared.get(), text, 5, 0), 5);
  EXPECT_STREQ(text, "hello");
}

TEST_F(a_sandbox, pins_to_the_given_processors) {
  sandbox_spec spec;
  spec.argv = {"/bin/sh", "-c", "echo processors $(nproc)"};
  spec.environment = {"PATH=/usr/bin"};
  spec.cpus = {0};
  EXPECT_EQ(run(spec).said["processors"], 1);
}

TEST_F(a_sandbox, ends_with_its_handle) {
  descriptor output;
  {
    auto started = start(intrude({"orphan_and_stay"}), output);
    ASSERT_TRUE(started) << render(started.error());
    EXPECT_TRUE(wait_readable(output.get(), patience_ms));
    EXPECT_TRUE(started->running());
  }
  EXPECT_THAT(read_all(output), HasSubstr("orphan"));
}

TEST_F(a_sandbox, tells_a_deadline_from_an_end) {
  auto started = walls_.start(intrude({"stay"}));
  ASSERT_TRUE(started) << render(started.error());
  auto waited = started->wait(1);
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().category, "timeout");
  started->kill();
  EXPECT_EQ(started->wait(patience_ms)->signal, SIGKILL);
}

TEST_F(a_sandbox, can_be_started_by_many_threads) {
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int j = 0; j < 3; ++j) {
        auto started = walls_.start(intrude({"exit", std::to_string(4 * i + j)}));
        auto status = started ? started->wait(patience_ms) : tl::unexpected{started.error()};
        if (status && status->code == 4 * i + j) ++right;
      }
    });
  for (auto& x : threads) x.join();
  EXPECT_EQ(right, 12);
}

TEST_F(a_sandbox, leaves_no_group_and_no_descriptor_behind) {
  auto count = [](const char* where, const std::string& prefix) {
    int n = 0;
    std::error_code failed;
    for (auto& x : std::filesystem::directory_iterator{where, failed})
      if (x.path().filename().string().starts_with(prefix)) ++n;
    return n;
  };
  run(intrude({"exit", "0"}));
  auto descriptors = count("/proc/self/fd", "");
  for (int i = 0; i < 3; ++i) run(intrude({"orphan"}));
  EXPECT_EQ(count("/proc/self/fd", ""), descriptors);
  auto own = "kernelmill-" + std::to_string(::getpid()) + "-";
  for (auto* x : {"/sys/fs/cgroup/pids", "/sys/fs/cgroup/freezer", "/sys/fs/cgroup"})
    EXPECT_EQ(count(x, own), 0);
}

TEST_F(a_sandbox, probe_names_every_layer_and_a_remedy_for_what_lacks) {
  std::map<std::string, sandbox_layer> layers;
  for (auto& x : walls_.probe()) layers[x.name] = x;
  for (auto* name : {"namespaces", "seccomp", "cgroup_memory", "cgroup_pids", "rlimits",
                     "no_network", "separate_user", "landlock"})
    EXPECT_TRUE(layers.contains(name)) << name;
  for (auto& [name, x] : layers) {
    EXPECT_FALSE(x.detail.empty()) << name;
    EXPECT_TRUE(x.state != layer_state::weaker || !x.remedy.empty()) << name;
  }
  // A limit that was taken and is not seen to hold is a fault of ours, or of a rare kernel.
  for (auto* name : {"cgroup_memory", "cgroup_pids"})
    EXPECT_NE(layers[name].state, layer_state::missing) << layers[name].detail;
  EXPECT_EQ(layers["namespaces"].state, layer_state::active) << layers["namespaces"].detail;
  EXPECT_EQ(layers["seccomp"].state, layer_state::active) << layers["seccomp"].detail;
  EXPECT_EQ(layers["no_network"].state, layer_state::active) << layers["no_network"].detail;
}

} // namespace sandbox_test
} // namespace kernelmill
