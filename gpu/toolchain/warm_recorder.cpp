#include "gpu/toolchain/warm_recorder.hpp"

#include <chrono>
#include <csignal>
#include <mutex>
#include <optional>

#include <sys/mman.h>
#include <unistd.h>

#include "gpu/process/pidfd.hpp"
#include "gpu/python/packets.hpp"
#include "gpu/sandbox/seccomp.hpp"
#include "gpu/toolchain/build_cache.hpp"
#include "gpu/toolchain/compiler_run.hpp"
#include "messages/base/files.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {

namespace {

constexpr int start_deadline_ms = 120'000;
constexpr int fork_deadline_ms = 20'000;
constexpr int recorder_farewell_ms = 5'000;
constexpr uint64_t memory_limit = uint64_t{16} << 30; // of all of them, where there is a cgroup
constexpr uint64_t data_limit = uint64_t{8} << 30;    // of one
constexpr off_t most_printed = off_t{16} << 20;
constexpr size_t kept_text = 64 << 10;

tl::unexpected<error> failed(const std::string& cause) {
  return infrastructure_error("python_failed", "failed to use the warm Python process: " + cause);
}

} // namespace

struct warm_recorder::state {
  sandbox& walls;
  python_facts python;
  bool triton_ahead;
  std::mutex mutex; // guards the rest: one asks for a fork at a time
  std::optional<sandboxed_child> process;
  descriptor socket;

  expected<void> start();
  expected<descriptor> fork(const recorder_job& job, int product, int printed, int status);
};

expected<void> warm_recorder::state::start() {
  if (process && process->running()) return {};
  process.reset();
  auto sockets = make_packet_sockets();
  KM_TRY(sockets);
  auto filter = sandbox_seccomp_program();
  KM_TRY(filter);
  auto spec = warm_process_walls(python);
  spec.argv = {
      python.executable,
      "-B",
      "-m",
      "kernelmill_torch.zygote",
      "--library",
      native_library_mount,
      "--device",
      "cpu",
      "--data-bytes",
      std::to_string(data_limit),
      "--uid-base",
      std::to_string((uint64_t{1} << 30) + (uint64_t{1} << 29) + ((::getpid() & 0x3fffffu) << 6))};
  if (triton_ahead) spec.argv.emplace_back("--triton-ahead");
  for (auto& variable : python_environment()) spec.environment.push_back(variable);
  spec.environment.emplace_back("PATH=/usr/local/cuda/bin:/usr/bin:/bin:/usr/sbin:/sbin");
  spec.descriptors = {{sockets->theirs.get(), 3}, {filter->get(), 4}};
  spec.memory_bytes = memory_limit;
  spec.limits.nice = behind_slots;
  auto started = walls.start(spec);
  KM_TRY(started);
  process = std::move(*started);
  socket = std::move(sockets->ours);
  sockets->theirs.reset();
  auto hello = receive_packet(socket.get(), start_deadline_ms);
  if (hello && hello->text.find("\"ready\"") != std::string::npos) return {};
  process.reset();
  return failed("it did not start");
}

// The process's descriptor, which becomes readable when it ends.
expected<descriptor> warm_recorder::state::fork(const recorder_job& job, int product, int printed,
                                                int status) {
  std::lock_guard guard{mutex};
  KM_TRY(start());
  nlohmann::json request{{"op", "record"},
                         {"backend", job.backend},
                         {"capability", job.capability},
                         {"entry", job.entry},
                         {"cpu_seconds", std::max(1, job.deadline_ms / 1000)}};
  std::vector<int> descriptors{job.source, product, printed, status};
  if (job.init >= 0) descriptors.push_back(job.init);
  if (send_packet(socket.get(), request.dump(), descriptors))
    if (auto answer = receive_packet(socket.get(), fork_deadline_ms);
        answer && answer->descriptors.size() == 1)
      return std::move(answer->descriptors.front());
  process.reset();
  return failed("it does not answer");
}

warm_recorder::warm_recorder(sandbox& walls, python_facts python, bool triton_ahead)
    : state_(new state{walls, std::move(python), triton_ahead, {}, {}, {}}) {
  // nop
}

warm_recorder::~warm_recorder() = default;

expected<compiler_outcome> warm_recorder::run(const recorder_job& job) {
  auto started = std::chrono::steady_clock::now();
  compiler_outcome result;
  auto product = memory_file({});
  auto printed = memory_file({});
  if (!product || !printed) return tl::unexpected<error>{(product ? printed : product).error()};
  auto status = make_pipe();
  auto process = state_->fork(job, product->get(), printed->get(), status.write.get());
  status.write.reset();
  KM_TRY(process);
  result.timed_out = !wait_readable(process->get(), job.deadline_ms);
  if (result.timed_out) (void)signal_pidfd(process->get(), SIGKILL);
  int32_t code = -SIGKILL;
  if (wait_readable(status.read.get(), recorder_farewell_ms))
    (void)read_retrying(status.read.get(), &code, sizeof code);
  if (code > 128 || code < 0)
    result.status = {-1, code < 0 ? -code : code - 128};
  else
    result.status = {code, 0};
  result.flooded = ::lseek(printed->get(), 0, SEEK_END) > most_printed;
  result.text = read_first(printed->get(), kept_text);
  result.product = std::move(*product);
  result.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return result;
}

} // namespace kernelmill
