#include "gpu/toolchain/compiler_run.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include <sys/mman.h>
#include <unistd.h>

#include "gpu/process/awake_time.hpp"

namespace kernelmill {

namespace {

using clock = std::chrono::steady_clock;

// 20 errors of g++ with their templates stay below 1 MiB; `#pragma message` in a loop does not.
constexpr size_t most_text = 16 << 20;
constexpr int farewell_ms = 2'000; // to end, on a busy machine
constexpr int look_ms = 20;
constexpr int most_runs = 5;          // of one source
constexpr double most_wait = 600;     // seconds for a core behind the deadline
constexpr double between_asks = 0.25; // seconds

int left_ms(clock::time_point end) {
  auto ms = std::chrono::ceil<std::chrono::milliseconds>(end - clock::now()).count();
  return static_cast<int>(std::max<long>(ms, 0));
}

double seconds_of(clock::time_point x) {
  return std::chrono::duration<double>(x.time_since_epoch()).count();
}

// A machine that stands still for a while takes nothing from the compiler's time. Who always has
// another word to say has no more of it than others.
bool wait_awake(int fd, awake_time& awake, double seconds) {
  for (;;) {
    bool readable = wait_readable(fd, look_ms);
    if (awake.look(seconds_of(clock::now())) > seconds) return false;
    if (readable) return true;
  }
}

// Whether a compiler has not had the deadline's time on cores and would use it: on a busy machine
// it is waited for, and what it would have been judged for is not lost.
bool lacks_a_core(int pid, double deadline) {
  auto use = core_use_of_all(pid);
  return (use.wants_more || use.stopped) && use.seconds < deadline;
}

// Reads until the last process that can write has gone. False when it must be killed.
bool read_text(int fd, int pid, int deadline_ms, size_t kept_text, compiler_outcome& result) {
  std::array<char, 16384> part;
  awake_time awake{seconds_of(clock::now())};
  const double deadline = deadline_ms / 1e3;
  double until = deadline;
  const double last = deadline + std::min(most_wait, 9 * deadline);
  for (size_t total = 0;;) {
    if (!wait_awake(fd, awake, until)) {
      if (until < last && lacks_a_core(pid, deadline)) {
        until = std::min(last, until + std::max(between_asks, deadline / 20));
        continue;
      }
      result.timed_out = true;
      return false;
    }
    auto n = read_retrying(fd, part.data(), part.size());
    if (n <= 0) return true;
    total += static_cast<size_t>(n);
    auto room = kept_text - std::min(kept_text, result.text.size());
    result.text.append(part.data(), std::min(room, static_cast<size_t>(n)));
    if (total > most_text) {
      result.flooded = true;
      return false;
    }
  }
}

sandbox_spec spec_of(const compiler_job& job) {
  sandbox_spec spec;
  spec.argv = job.argv;
  spec.environment = {"PATH=" + job.path, "LC_ALL=C", "TMPDIR=/tmp"};
  spec.environment.insert(spec.environment.end(), job.environment.begin(), job.environment.end());
  spec.files = job.files;
  spec.mounts = job.mounts;
  spec.directory = "/build";
  spec.limits.address_space = job.address_space > 0 ? job.address_space : job.memory_bytes;
  spec.limits.file_size = job.product_bytes;
  spec.limits.cpu_seconds = job.cpu_seconds;
  spec.limits.processes = job.process_count;
  spec.limits.nice = behind_slots;
  spec.memory_bytes = job.memory_bytes;
  spec.process_count = job.process_count;
  spec.cpus = job.cpus;
  return spec;
}

bool was_killed(const compiler_outcome& x) {
  return x.status.signal == SIGKILL && !x.timed_out && !x.flooded && !x.out_of_memory;
}

expected<compiler_outcome> run_once(sandbox& walls, const compiler_job& job);

} // namespace

expected<descriptor> memory_file(const std::string& bytes) {
  descriptor file{::memfd_create("kernelmill", MFD_CLOEXEC)};
  for (size_t done = 0; file && done < bytes.size();) {
    auto n = write_retrying(file.get(), bytes.data() + done, bytes.size() - done);
    if (n <= 0) file.reset();
    done += static_cast<size_t>(std::max<ssize_t>(n, 0));
  }
  if (!file)
    return infrastructure_error("no_memory_file", std::string{"failed to make a memory file: "} +
                                                      std::strerror(errno));
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

expected<compiler_outcome> run_compiler(sandbox& walls, const compiler_job& job) {
  auto result = run_once(walls, job);
  for (int i = 1; i < most_runs && result && result->killed; ++i) result = run_once(walls, job);
  return result;
}

namespace {

expected<compiler_outcome> run_once(sandbox& walls, const compiler_job& job) {
  auto source = memory_file(job.source);
  KM_TRY(source);
  auto product = memory_file({});
  KM_TRY(product);
  auto ends = make_pipe();
  auto spec = spec_of(job);
  spec.files.push_back({source->get(), "/build/" + job.source_name});
  spec.descriptors = {{ends.write.get(), 1}, {ends.write.get(), 2}, {product->get(), 5}};
  auto started = walls.start(spec);
  KM_TRY(started);
  ends.write.reset();
  auto begin = clock::now(); // what walls take on a busy machine is none of the compiler's time
  auto end = begin + std::chrono::milliseconds{job.deadline_ms};
  compiler_outcome result;
  auto seconds = [&] { return std::chrono::duration<double>(clock::now() - begin).count(); };
  auto give_up = [&] {
    result.seconds = seconds();
    result.cores = core_use_of_all(started->pid());
    started->kill();
  };
  if (!read_text(ends.read.get(), started->pid(), job.deadline_ms, job.kept_text, result))
    give_up();
  // After a kill the kernel has only to free its memory; who has nothing more to say ends.
  bool killed = result.timed_out || result.flooded;
  auto status = started->wait(killed ? 30'000 : std::max(left_ms(end), farewell_ms));
  if (!killed) result.seconds = seconds();
  if (!status && status.error().category == "timeout" && !killed) {
    result.timed_out = true; // it closed its outputs and went on
    give_up();
    status = started->wait(30'000);
  }
  KM_TRY(status);
  result.status = *status;
  result.out_of_memory = started->out_of_memory();
  result.product = std::move(*product);
  result.killed = was_killed(result);
  return result;
}

} // namespace

} // namespace kernelmill
