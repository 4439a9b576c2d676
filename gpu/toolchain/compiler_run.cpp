#include "gpu/toolchain/compiler_run.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include <sys/mman.h>
#include <unistd.h>

namespace kernelmill {

namespace {

using clock = std::chrono::steady_clock;

// 20 errors of g++ with their templates stay below 1 MiB; `#pragma message` in a loop does not.
constexpr size_t most_text = 16 << 20;
constexpr int farewell_ms = 2'000; // to end, on a busy machine

int left_ms(clock::time_point end) {
  auto ms = std::chrono::ceil<std::chrono::milliseconds>(end - clock::now()).count();
  return static_cast<int>(std::max<long>(ms, 0));
}

// Reads until the last process that can write has gone. False when it must be killed.
bool read_text(int fd, clock::time_point end, size_t kept_text, compiler_outcome& result) {
  std::array<char, 16384> part;
  for (size_t total = 0;;) {
    if (!wait_readable(fd, left_ms(end))) {
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
  return spec;
}

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
  auto source = memory_file(job.source);
  if (!source) return tl::unexpected{source.error()};
  auto product = memory_file({});
  if (!product) return tl::unexpected{product.error()};
  auto ends = make_pipe();
  auto spec = spec_of(job);
  spec.files.push_back({source->get(), "/build/" + job.source_name});
  spec.descriptors = {{ends.write.get(), 1}, {ends.write.get(), 2}, {product->get(), 5}};
  auto started = walls.start(spec);
  if (!started) return tl::unexpected{started.error()};
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
  if (!read_text(ends.read.get(), end, job.kept_text, result)) give_up();
  // After a kill the kernel has only to free its memory; who has nothing more to say ends.
  bool killed = result.timed_out || result.flooded;
  auto status = started->wait(killed ? 30'000 : std::max(left_ms(end), farewell_ms));
  if (!killed) result.seconds = seconds();
  if (!status && status.error().category == "timeout" && !killed) {
    result.timed_out = true; // it closed its outputs and went on
    give_up();
    status = started->wait(30'000);
  }
  if (!status) return tl::unexpected{status.error()};
  result.status = *status;
  result.out_of_memory = started->out_of_memory();
  result.product = std::move(*product);
  return result;
}

} // namespace kernelmill
