// kernelmill-referee: judges candidates on one CPU slot or one GPU. It serves one node over
// descriptor 3 and ends with it.

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "gpu/examine/memory_checks.hpp"
#include "gpu/referee/clock.hpp"
#include "gpu/referee/device/device.hpp"
#include "gpu/referee/referee_protocol.hpp"
#include "gpu/referee/scheduling.hpp"
#include "gpu/referee/task_check.hpp"
#include "gpu/torch/torch_evaluation.hpp"
#include "messages/fault.hpp"
#include "messages/framing.hpp"

namespace kernelmill {

namespace {

constexpr size_t tasks_kept = 8;
constexpr size_t gpu_tasks_kept = 24; // or fewer, when the GPU's memory is short

struct options {
  std::vector<int> cpus;
  std::vector<int> timed_cpus;
  std::string cache;
  size_t pool = 2;
  std::string gpu_node;
  std::string sanitizer;
  host_compiler compiler;
  std::string python;
  bool python_at_once = false;
};

/// What outlives single requests.
struct lanes {
  referee_parts compiled;
  torch_lane* torch = nullptr; ///< null when there is no interpreter
  memory_checker memory;

  torch_parts with_torch() const { return {*torch, compiled.hardware, compiled.gpu}; }
};

std::string beside_this_program(const char* name) {
  std::error_code problem;
  return (std::filesystem::read_symlink("/proc/self/exe", problem).parent_path() / name).string();
}

std::string default_cache() {
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"))
    return std::string{xdg} + "/kernelmill/referee";
  if (const char* home = std::getenv("HOME"))
    return std::string{home} + "/.cache/kernelmill/referee";
  return "/tmp/kernelmill-referee-cache";
}

Message<wire::EvaluateResult> judge(const lanes& x, wire::EvaluateRequest::Reader request) {
  if (contract_of(request.getContract().cStr()) != contract_kind::torch)
    return evaluate_request(x.compiled, request);
  if (x.torch != nullptr) {
    x.compiled.tasks.make_room();
    return evaluate_torch(x.with_torch(), request);
  }
  return build<wire::EvaluateResult>([](wire::EvaluateResult::Builder out) {
    set_fault(out.initFault(), {fault_class::configuration, "python_missing",
                                "failed to judge contract torch: this slot has no Python",
                                "name an interpreter that imports torch with --python"});
  });
}

Message<wire::EvaluateResult> evaluate(const lanes& x, wire::EvaluateRequest::Reader request) {
  double begun = now_seconds();
  auto judged = judge(x, request);
  if (request.getSanitize().size() == 0) return judged;
  auto found = load_task_folder(request.getTaskDir());
  if (!found) return judged; // as lost
  judging_terms terms;
  terms.backend = x.compiled.gpu != nullptr ? "cuda" : "cpu";
  terms.contract = contract_of(request.getContract().cStr()).value_or(contract_kind::native);
  auto what = on_terms(**found, terms);
  return what ? with_memory_checks(x.memory, **what, request, judged, begun) : judged;
}

Message<wire::CheckResult> check(const lanes& x, wire::CheckRequest::Reader request) {
  auto spec = load_task_folder(request.getTaskDir());
  if (x.torch != nullptr && spec && (*spec)->contract == contract_kind::torch) {
    x.compiled.tasks.make_room();
    return check_torch(x.with_torch(), request.getTaskDir());
  }
  return check_request(x.compiled, request);
}

// What capnp throws at words that are not what their kind says ends here.
expected<void> answer(const lanes& x, frame request) {
  try {
    capnp::FlatArrayMessageReader reader{request.words, reader_limits(request.words.size())};
    if (request.kind == evaluate_request_frame)
      return send_message(referee_socket, evaluate_result_frame,
                          evaluate(x, reader.getRoot<wire::EvaluateRequest>()));
    if (request.kind == check_request_frame)
      return send_message(referee_socket, check_result_frame,
                          check(x, reader.getRoot<wire::CheckRequest>()));
    return infrastructure_error("malformed_message",
                                "failed to serve a frame of kind " + std::to_string(request.kind));
  } catch (const kj::Exception& e) {
    return infrastructure_error("malformed_message", std::string{"failed to read a request: "} +
                                                         e.getDescription().cStr());
  } catch (const std::exception& e) {
    return infrastructure_error("referee_failed",
                                std::string{"failed to serve a request: "} + e.what());
  }
}

expected<void> serve(const options& given) {
  // The spawner first: nothing that it starts shall inherit a GPU.
  auto processes = spawner::launch(beside_this_program("kernelmill-spawner"));
  KM_TRY(processes);
  sandbox walls{*processes};
  candidate_options of_candidates;
  of_candidates.program = beside_this_program("kernelmill-candidate");
  of_candidates.cpus = given.cpus;
  auto count = given.cpus.empty() ? std::thread::hardware_concurrency() : given.cpus.size();
  of_candidates.threads = std::max(1u, static_cast<unsigned>(count));
  std::unique_ptr<device> gpu;
  if (!given.gpu_node.empty()) {
    auto opened = device::open();
    KM_TRY(opened);
    gpu = std::move(*opened);
    of_candidates.gpu_node = given.gpu_node;
    of_candidates.driver = gpu->cuda().path;
  }
  trusted_builder builder{*processes, given.cache.empty() ? default_cache() : given.cache,
                          gpu ? gpu->architecture() : std::string{}};
  prepared_tasks tasks{builder, gpu ? gpu_tasks_kept : tasks_kept, gpu.get()};
  candidate_pool pool{walls, of_candidates, given.pool};
  raise_priority(::getpid()); // after the spawner, so that nothing else inherits it
  machine hardware{given.cpus, given.timed_cpus};
  std::unique_ptr<torch_lane> torch;
  if (!given.python.empty())
    torch = std::make_unique<torch_lane>(
        *processes, walls,
        torch_lane_options{given.python, given.cpus, of_candidates.threads, given.gpu_node,
                           of_candidates.driver, std::max<size_t>(1, (given.pool * 3) / 4),
                           given.timed_cpus.empty() ? -1 : given.timed_cpus.back()});
  if (torch && given.python_at_once) torch->launch(); // what fails is told to who asks
  examine_options examined;
  examined.program = of_candidates.program;
  examined.gpu_node = given.gpu_node;
  examined.driver = of_candidates.driver;
  examined.cpus = given.cpus;
  const lanes all{{tasks, pool, hardware, gpu.get()},
                  torch.get(),
                  {walls, std::move(examined), given.sanitizer, given.python, given.compiler}};
  if (!gpu) hardware.peaks(); // 100 ms that no evaluation shall wait for
  for (;;) {
    pool.refill();
    auto request = receive_frame(referee_socket);
    if (!request && request.error().category == "peer_closed") return {};
    KM_TRY(request);
    if (auto ok = answer(all, std::move(*request)); !ok) return ok;
  }
}

} // namespace

} // namespace kernelmill

int main(int argc, char** argv) {
  kernelmill::options given;
  CLI::App app{"Judges candidates for a Kernelmill node, which starts it; it serves descriptor 3."};
  app.add_option("--cpus", given.cpus, "CPUs that candidates run on, as in 0,1")->delimiter(',');
  app.add_option("--timed-cpus", given.timed_cpus,
                 "on a GPU: the CPU of the referee while it times, and that of what it times")
      ->delimiter(',');
  app.add_option("--cache", given.cache, "directory for built references and baselines");
  app.add_option("--pool", given.pool, "candidate processes kept warm")->check(CLI::Range(0, 64));
  app.add_option("--gpu-node", given.gpu_node,
                 "device node of the one GPU that CUDA_VISIBLE_DEVICES shows; none: a CPU slot");
  app.add_option("--sanitizer", given.sanitizer,
                 "path of compute-sanitizer; none: no checks of memory");
  app.add_option("--compiler", given.compiler.path,
                 "g++ whose sanitizers check the memory of candidates on a CPU");
  app.add_option("--python", given.python, "interpreter that has torch; none: no contract torch");
  app.add_flag("--python-at-once", given.python_at_once,
               "start it before the first request that needs it");
  CLI11_PARSE(app, argc, argv);
  auto result = kernelmill::serve(given);
  if (result) return 0;
  std::fprintf(stderr, "kernelmill-referee: %s\n", kernelmill::render(result.error()).c_str());
  return 4;
}
