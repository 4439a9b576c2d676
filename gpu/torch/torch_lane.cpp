#include "gpu/torch/torch_lane.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

#include <sys/mman.h>
#include <unistd.h>

#include "gpu/python/packets.hpp"
#include "gpu/referee/candidate_process.hpp"
#include "gpu/sandbox/seccomp.hpp"
#include "messages/base/files.hpp"
#include "messages/base/json_depth.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {

namespace fs = std::filesystem;

namespace {

// No JSON is discarded, as what nests too deep to be copied.
nlohmann::json parse_packet(const std::string& text) {
  if (nests_deeper(text)) return nlohmann::json::value_t::discarded;
  return nlohmann::json::parse(text, nullptr, false);
}

constexpr int start_deadline_ms = 240'000; // importing torch from a cold disk
// For the status of who has closed its socket: a GPU's memory takes seconds to free.
constexpr int referee_end_ms = 10'000;
constexpr int warm_end_ms = 500;
constexpr uint64_t memory_limit = uint64_t{24} << 30; // of all candidates, where there is a cgroup
constexpr uint64_t gpu_memory_limit = uint64_t{64} << 30;
constexpr uint64_t data_limit = uint64_t{12} << 30; // of one candidate's private memory
constexpr uint64_t gpu_data_limit = uint64_t{32} << 30;

std::string directory_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

// The interpreter's environment in both processes.
std::vector<std::string> environment_of(const torch_lane_options& x, const python_facts& facts) {
  std::vector<std::string> result;
  for (auto& variable : python_environment())
    if (!variable.starts_with("CUDA_VISIBLE_DEVICES=") &&
        variable.find("_NUM_THREADS=") == variable.npos)
      result.push_back(variable);
  for (const char* name : {"OMP_NUM_THREADS=", "MKL_NUM_THREADS=", "OPENBLAS_NUM_THREADS="})
    result.push_back(name + std::to_string(x.threads));
  std::string cuda = facts.cuda_home.empty() ? "" : facts.cuda_home + "/bin:";
  result.push_back("PATH=" + cuda + "/usr/local/cuda/bin:/usr/bin:/bin:/usr/sbin:/sbin");
  if (x.gpu_node.empty()) {
    // Else threads that wait for work spin: they keep the cores from the process that is timed, and
    // one that was woken with them waits for its own, 7 ms at a time.
    result.emplace_back("OMP_WAIT_POLICY=passive");
    return result;
  }
  // Else modules that ask at import whether there is a GPU start the driver, and torch refuses CUDA
  // in every process that is forked afterwards.
  result.emplace_back("PYTORCH_NVML_BASED_CUDA_CHECK=1");
  for (auto& variable : small_context_environment()) result.push_back(variable);
  if (auto folder = directory_of(x.driver); !folder.empty()) {
    result.push_back("LD_LIBRARY_PATH=" + folder);
    result.push_back("TRITON_LIBCUDA_PATH=" + folder);
  }
  return result;
}

sandbox_spec walls_of(const torch_lane_options& x, const python_facts& facts) {
  auto spec = warm_process_walls(facts);
  for (auto& variable : environment_of(x, facts)) spec.environment.push_back(variable);
  spec.cpus = x.cpus;
  spec.limits.file_size = uint64_t{1} << 40;
  spec.memory_bytes = x.gpu_node.empty() ? memory_limit : gpu_memory_limit;
  if (x.gpu_node.empty()) return spec;
  spec.devices = gpu_device_nodes(x.gpu_node);
  auto folder = directory_of(x.driver);
  bool visible = folder.starts_with("/usr/") || folder.starts_with("/lib");
  if (!visible && !folder.empty()) spec.mounts.push_back({folder, folder, false});
  return spec;
}

} // namespace

torch_lane::torch_lane(spawner& processes, sandbox& walls, torch_lane_options options)
    : processes_(processes), walls_(walls), options_(std::move(options)) {
  // nop
}

torch_lane::~torch_lane() = default;

tl::unexpected<error> torch_lane::lost(const std::string& cause, int patience_ms) {
  auto words = read_last(printed_.get(), 4096);
  while (!words.empty() && words.back() == '\n') words.pop_back();
  note_ends(patience_ms);
  drop();
  return infrastructure_error(
      "python_failed",
      "failed to judge with Python: " + cause +
          (words.empty()
               ? ""
               : "; it said: " + words.substr(words.size() > 1500 ? words.size() - 1500 : 0)),
      "`kernelmill doctor` tries the interpreter");
}

expected<void> torch_lane::start_warm_process(const python_facts& facts, int socket) {
  auto filter = python_seccomp_program(on_gpu());
  KM_TRY(filter);
  auto spec = walls_of(options_, facts);
  auto number = [](uint64_t x) { return std::to_string(x); };
  spec.argv = {facts.executable,
               "-B",
               "-m",
               "kernelmill_torch.zygote",
               "--library",
               native_library_mount,
               "--device",
               on_gpu() ? "cuda" : "cpu",
               "--uid-base",
               number((uint64_t{1} << 30) + ((::getpid() & 0x3fffffu) << 8)),
               "--data-bytes",
               number(on_gpu() ? gpu_data_limit : data_limit),
               "--threads",
               number(options_.threads)};
  spec.descriptors = {{printed_.get(), 1}, {printed_.get(), 2}, {socket, 3}, {filter->get(), 4}};
  auto started = walls_.start(spec);
  KM_TRY(started);
  warm_ = std::move(*started);
  return {};
}

expected<void> torch_lane::start_referee(const python_facts& facts, int control, int zygote) {
  process_spec spec;
  spec.argv = {facts.executable,
               "-B",
               "-m",
               "kernelmill_torch.referee",
               "--library",
               native_library(),
               "--device",
               on_gpu() ? "cuda" : "cpu",
               "--pool",
               std::to_string(options_.pool),
               "--threads",
               std::to_string(options_.threads),
               "--cache",
               options_.cache};
  spec.environment = environment_of(options_, facts);
  spec.environment.push_back("PYTHONPATH=" + python_package_directory());
  if (const char* shown = std::getenv("CUDA_VISIBLE_DEVICES"); shown != nullptr && on_gpu())
    spec.environment.push_back(std::string{"CUDA_VISIBLE_DEVICES="} + shown);
  spec.cpus = options_.cpus;
  spec.descriptors = {{printed_.get(), 1}, {printed_.get(), 2}, {control, 3}, {zygote, 4}};
  descriptor kernels;
  if (on_gpu()) {
    kernels = descriptor{::memfd_create("kernelmill-kernels", MFD_CLOEXEC)};
    const auto& bytes = options_.kernels;
    auto size = static_cast<ssize_t>(bytes.size());
    if (!kernels || ::write(kernels.get(), bytes.data(), bytes.size()) != size)
      return infrastructure_error("python_failed", std::string{"failed to hand over kernels: "} +
                                                       std::strerror(errno));
    spec.descriptors.push_back({kernels.get(), 5});
  }
  auto started = processes_.start(spec);
  KM_TRY(started);
  referee_ = std::move(*started);
  return {};
}

bool torch_lane::running() const {
  return control_ && referee_ && referee_->running() && warm_ && warm_->running();
}

void torch_lane::drop() {
  referee_.reset();
  warm_.reset();
  control_.reset();
}

void torch_lane::forget_ends() {
  // Who died while nobody asked anything of it has nothing to do with what is asked now.
  if (!running()) drop();
  ended_by_others_ = false;
}

void torch_lane::note_ends(int patience_ms) {
  if (referee_)
    if (auto status = referee_->wait(patience_ms); status && status->was_ended_by_others())
      ended_by_others_ = true;
  if (!warm_) return;
  if (auto status = warm_->wait(warm_end_ms))
    if (warm_->ended_from_outside() || status->was_ended_by_others()) ended_by_others_ = true;
}

expected<void> torch_lane::launch() {
  ready_ = false;
  auto facts = ask_python(processes_, options_.python);
  KM_TRY(facts);
  if (on_gpu() && facts->torch_cuda.empty())
    return configuration_error("python_missing",
                               "failed to use " + options_.python + " on a GPU: its torch " +
                                   facts->torch + " was built without CUDA",
                               "name another with --python, or use --backend cpu");
  auto control = make_packet_sockets();
  auto zygote = make_packet_sockets();
  if (!control || !zygote) return tl::unexpected<error>{(control ? zygote : control).error()};
  printed_ = descriptor{::memfd_create("kernelmill-torch", MFD_CLOEXEC)};
  if (auto ok = start_warm_process(*facts, zygote->theirs.get()); !ok) return ok;
  if (auto ok = start_referee(*facts, control->theirs.get(), zygote->ours.get()); !ok) return ok;
  control_ = std::move(control->ours);
  return {};
}

expected<void> torch_lane::await_ready() {
  if (ready_) return {};
  auto text = receive_packet(control_.get(), start_deadline_ms);
  if (!text) return lost("it did not start in time");
  auto hello = parse_packet(text->text);
  if (!hello.is_object() || !hello.contains("ready"))
    return lost(hello.is_object() && hello.contains("failed") ? hello["failed"].dump()
                                                              : "the torch referee ended");
  ready_ = true;
  return {};
}

expected<nlohmann::json> torch_lane::ask(const nlohmann::json& request, int deadline_ms,
                                         const std::vector<int>& descriptors) {
  if (!running()) {
    note_ends(0);
    drop();
    KM_TRY(launch());
  }
  KM_TRY(await_ready());
  if (!send_packet(control_.get(), request.dump(), descriptors))
    return lost(std::string{"the referee does not take the request: "} + std::strerror(errno),
                referee_end_ms);
  auto text = receive_packet(control_.get(), deadline_ms);
  if (!text) return lost(text.error().message);
  if (text->text.empty()) return lost("the torch referee ended", referee_end_ms);
  auto answer = parse_packet(text->text);
  if (!answer.is_object()) return lost("its answer is none");
  return answer;
}

} // namespace kernelmill
