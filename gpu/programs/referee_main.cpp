// kernelmill-referee: judges candidates on one CPU slot or one GPU. It serves one node over
// descriptor 3 and ends with it.

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

#include <getopt.h>
#include <unistd.h>

#include "gpu/examine/code_checks.hpp"
#include "gpu/examine/kept_reports.hpp"
#include "gpu/program/program_lane.hpp"
#include "gpu/programs/named_baselines.hpp"
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
  std::string backend; // of the GPU; empty: "cuda"
  std::string hip_folder;
  std::string architecture; // of an AMD GPU
  std::string sanitizer;
  std::string ncu;
  host_compiler compiler;
  std::string python;
  bool python_at_once = false;
  unsigned determinism_runs = defaults::determinism_runs;
};

/// What outlives single requests.
struct lanes {
  referee_parts compiled;
  named_baselines& baselines;
  torch_lane* torch = nullptr; ///< null when there is no interpreter
  program_lane& programs;
  memory_checker memory;
  code_checker& code;
  std::string backend; ///< of this slot

  // With a baseline in place of the tasks' own, where there is one.
  referee_parts with_baseline(std::string path) const {
    auto result = compiled;
    result.named_baseline = std::move(path);
    return result;
  }

  torch_parts with_torch(std::string baseline = {}) const {
    return {*torch, compiled.hardware, compiled.gpu, compiled.determinism_runs,
            std::move(baseline)};
  }
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

Message<wire::EvaluateResult> judge_beside(const lanes& x, const std::string& baseline,
                                           wire::EvaluateRequest::Reader request) {
  if (contract_of(request.getContract().cStr()) == contract_kind::program) {
    x.compiled.tasks.make_room();
    return x.programs.evaluate(request);
  }
  if (contract_of(request.getContract().cStr()) != contract_kind::torch)
    return evaluate_request(x.with_baseline(baseline), request);
  if (x.torch != nullptr) {
    x.compiled.tasks.make_room();
    return evaluate_torch(x.with_torch(baseline), request);
  }
  return build<wire::EvaluateResult>([](wire::EvaluateResult::Builder out) {
    set_fault(out.initFault(), {fault_class::configuration, "python_missing",
                                "failed to judge contract torch: this slot has no Python",
                                "name an interpreter that imports torch with --python"});
  });
}

Message<wire::EvaluateResult> judge(const lanes& x, wire::EvaluateRequest::Reader request) {
  auto baseline = x.baselines.admit(
      request, [&](wire::EvaluateRequest::Reader asked) { return judge_beside(x, {}, asked); });
  if (baseline) return judge_beside(x, *baseline, request);
  return build<wire::EvaluateResult>(
      [&](wire::EvaluateResult::Builder out) { set_fault(out.initFault(), baseline.error()); });
}

Message<wire::EvaluateResult> evaluate(const lanes& x, wire::EvaluateRequest::Reader request) {
  double begun = now_seconds();
  auto judged = judge(x, request);
  // What is in a program besides the candidate is not its doing, so that no tool looks at it.
  if (contract_of(request.getContract().cStr()) == contract_kind::program) return judged;
  const bool looks = request.getSanitize().size() > 0 || request.getReports();
  if (!looks && request.getSource().size() == 0) return judged;
  auto found = load_task_folder(request.getTaskDir());
  if (!found) return judged; // as lost
  judging_terms terms;
  terms.backend = x.backend;
  terms.contract = contract_of(request.getContract().cStr()).value_or(contract_kind::native);
  auto what = on_terms(**found, terms);
  if (!what) return judged;
  if (compares_code(**what)) {
    auto limit =
        request.getDeadlineMs() - std::min(request.getDeadlineMs(), request.getSanitizeMs());
    judged = with_code_counters(x.code, **what, request.getSource(), judged, begun + limit * 1e-3);
  }
  if (!looks) return judged;
  auto checked = with_memory_checks(x.memory, **what, request, judged, begun);
  return with_ncu_report(x.memory, **what, request, checked, begun);
}

Message<wire::CheckResult> check(const lanes& x, wire::CheckRequest::Reader request) {
  auto spec = load_task_folder(request.getTaskDir());
  if (x.torch != nullptr && spec && (*spec)->contract == contract_kind::torch) {
    x.compiled.tasks.make_room();
    return check_torch(x.with_torch(), request.getTaskDir());
  }
  if (spec && (*spec)->contract == contract_kind::program) {
    x.compiled.tasks.make_room();
    return x.programs.check(request.getTaskDir());
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
  build_target target;
  if (!given.gpu_node.empty()) {
    target.backend = given.backend.empty() ? "cuda" : given.backend;
    target.hip_folder = given.hip_folder;
    bool amd = target.backend == "hip" && given.hip_folder.empty();
    auto opened = device::open(amd ? cuda::gpu_api::hip : cuda::gpu_api::cuda, given.architecture);
    KM_TRY(opened);
    gpu = std::move(*opened);
    target.architecture = gpu->architecture();
    if (target.backend == "hip") gpu->describe_as(amd ? "hip" : "hip on nvidia");
    of_candidates.gpu_node = given.gpu_node;
    of_candidates.driver = gpu->cuda().path;
  }
  auto cache = given.cache.empty() ? default_cache() : given.cache;
  trusted_builder builder{*processes, cache, target};
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
                           gpu ? gpu->kernels() : std::string{}, cache + "/compiled"});
  if (torch && given.python_at_once) torch->launch(); // what fails is told to who asks
  examine_options examined;
  examined.program = of_candidates.program;
  examined.gpu_node = given.gpu_node;
  examined.driver = of_candidates.driver;
  examined.cpus = given.cpus;
  code_compilers compilers{given.compiler, target};
  compilers.host.cpus = given.cpus;
  code_checker code{walls, std::move(compilers)};
  named_baselines baselines{cache + "/baselines"};
  program_lane programs{
      walls, hardware, gpu.get(),
      program_lane_options{given.compiler.path, given.cpus, given.gpu_node, of_candidates.driver}};
  const lanes all{
      {tasks, pool, hardware, gpu.get(), given.determinism_runs, {}},
      baselines,
      torch.get(),
      programs,
      {walls, std::move(examined), given.sanitizer, given.python, given.compiler, given.ncu},
      code,
      target.backend};
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

namespace {

/// "0,1" as {0, 1}; nothing of another text.
std::optional<std::vector<int>> numbers_of(const char* text) {
  std::vector<int> result;
  for (const char* next = text; *next != '\0';) {
    char* end = nullptr;
    auto number = std::strtol(next, &end, 10);
    if (end == next || number < 0 || number > 1 << 20 || (*end != ',' && *end != '\0')) return {};
    result.push_back(static_cast<int>(number));
    next = *end == ',' ? end + 1 : end;
  }
  return result;
}

constexpr const char* help =
    R"(Judges candidates for a Kernelmill node, which starts it; it serves descriptor 3.
  --cpus LIST         CPUs that candidates run on, as in 0,1
  --timed-cpus LIST   on a GPU: the CPU of the referee while it times, and that of what it times
  --cache FOLDER      folder for built references and baselines
  --pool N            candidate processes kept warm, at most 64
  --gpu-node PATH     device node of the one GPU that CUDA_VISIBLE_DEVICES shows; none: a CPU slot
  --backend NAME      language of that GPU's sources, cuda or hip; default cuda
  --hip-folder PATH   folder of kernelmill_hip.h: hip on an NVIDIA GPU; none: on an AMD GPU
  --architecture NAME architecture of an AMD GPU, like gfx90a
  --sanitizer PATH    compute-sanitizer; none: no checks of memory
  --ncu PATH          ncu; none: its reports cannot be kept
  --compiler PATH     g++ whose sanitizers check the memory of candidates on a CPU
  --python PATH       interpreter that has torch; none: no contract torch
  --python-at-once    starts it before the first request that needs it
  --determinism-runs N  calls on the same contents whose results are compared, 2 to 64
)";

int usage(const char* option, const char* value) {
  std::fprintf(stderr, "kernelmill-referee: %s does not take '%s'; --help lists what it takes\n",
               option, value);
  return 2;
}

} // namespace

int main(int argc, char** argv) {
  enum name {
    cpus = 1,
    timed_cpus,
    cache,
    pool,
    gpu_node,
    language,
    layer,
    kind,
    sanitizer,
    counters,
    compiler,
    python,
    at_once,
    repeats,
    say
  };
  constexpr ::option known[] = {{"cpus", required_argument, nullptr, cpus},
                                {"timed-cpus", required_argument, nullptr, timed_cpus},
                                {"cache", required_argument, nullptr, cache},
                                {"pool", required_argument, nullptr, pool},
                                {"gpu-node", required_argument, nullptr, gpu_node},
                                {"backend", required_argument, nullptr, language},
                                {"hip-folder", required_argument, nullptr, layer},
                                {"architecture", required_argument, nullptr, kind},
                                {"sanitizer", required_argument, nullptr, sanitizer},
                                {"ncu", required_argument, nullptr, counters},
                                {"compiler", required_argument, nullptr, compiler},
                                {"python", required_argument, nullptr, python},
                                {"python-at-once", no_argument, nullptr, at_once},
                                {"determinism-runs", required_argument, nullptr, repeats},
                                {"help", no_argument, nullptr, say},
                                {}};
  kernelmill::options given;
  for (int found = 0; (found = ::getopt_long(argc, argv, "", known, nullptr)) != -1;) {
    switch (found) {
      case cpus:
      case timed_cpus: {
        auto numbers = numbers_of(optarg);
        if (!numbers) return usage(found == cpus ? "--cpus" : "--timed-cpus", optarg);
        (found == cpus ? given.cpus : given.timed_cpus) = *numbers;
        break;
      }
      case cache: given.cache = optarg; break;
      case pool: {
        auto number = numbers_of(optarg);
        if (!number || number->size() != 1 || number->front() > 64) return usage("--pool", optarg);
        given.pool = static_cast<size_t>(number->front());
        break;
      }
      case gpu_node: given.gpu_node = optarg; break;
      case language:
        given.backend = optarg;
        if (given.backend != "cuda" && given.backend != "hip") return usage("--backend", optarg);
        break;
      case layer: given.hip_folder = optarg; break;
      case kind: given.architecture = optarg; break;
      case sanitizer: given.sanitizer = optarg; break;
      case counters: given.ncu = optarg; break;
      case compiler: given.compiler.path = optarg; break;
      case python: given.python = optarg; break;
      case at_once: given.python_at_once = true; break;
      case repeats: {
        auto number = numbers_of(optarg);
        if (!number || number->size() != 1 || number->front() < 2 || number->front() > 64)
          return usage("--determinism-runs", optarg);
        given.determinism_runs = static_cast<unsigned>(number->front());
        break;
      }
      case say: std::fputs(help, stdout); return 0;
      default: std::fputs(help, stderr); return 2;
    }
  }
  if (optind < argc) return usage("it", argv[optind]);
  auto result = kernelmill::serve(given);
  if (result) return 0;
  std::fprintf(stderr, "kernelmill-referee: %s\n", kernelmill::render(result.error()).c_str());
  return 4;
}
