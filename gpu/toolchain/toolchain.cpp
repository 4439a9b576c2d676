#include "gpu/toolchain/toolchain.hpp"

#include <algorithm>
#include <csignal>
#include <mutex>
#include <optional>
#include <utility>

#include "gpu/task/device_artifact.hpp"
#include "gpu/task/launch_plan.hpp"
#include "gpu/toolchain/build_attribution.hpp"
#include "gpu/toolchain/build_cache.hpp"
#include "gpu/toolchain/build_findings.hpp"
#include "gpu/toolchain/compiler_facts.hpp"
#include "gpu/toolchain/compiler_run.hpp"
#include "gpu/toolchain/control_source.hpp"
#include "gpu/toolchain/diagnostics.hpp"
#include "gpu/toolchain/precompiled.hpp"
#include "gpu/toolchain/program_toolchain.hpp"
#include "gpu/toolchain/torch_toolchain.hpp"
#include "messages/base/digest.hpp"
#include "messages/fault.hpp"

namespace kernelmill {

namespace {

// Part of every key: raise it when the meaning of an entry changes.
constexpr const char* cache_generation = "kernelmill-build-4";

constexpr size_t most_source = 1 << 20;
constexpr uint32_t shortest_deadline_ms = 100;

// Where there is none: the place that an error should name.
std::string usual_compiler(const toolchain_options& x) {
  if (x.backend == "cpu") return "/usr/bin/g++";
  bool nvidia = !is_amd_architecture(x.architecture);
  auto found = nvidia ? find_nvcc() : find_hipcc();
  if (!found.empty()) return found;
  return nvidia ? "/usr/local/cuda/bin/nvcc" : "/usr/bin/hipcc";
}

bool spills(const std::vector<kernel_resources>& kernels) {
  return std::any_of(kernels.begin(), kernels.end(),
                     [](const kernel_resources& x) { return x.spill_stores + x.spill_loads > 0; });
}

struct control_choice {
  control_kind kind;
  const char* name;
};

control_choice control_of(const compiler_facts& compiler, const std::string& backend) {
  if (compiler.whole) return {control_kind::device, "device code of ours"};
  if (backend == "cuda") return {control_kind::cuda, "a CUDA source of ours"};
  if (backend == "hip") return {control_kind::hip, "a HIP source of ours"};
  return {control_kind::host, "a C++ source of ours"};
}

build_target target_of(const toolchain_options& x) {
  return {x.backend, x.architecture, x.hip_folder};
}

expected<compiler_facts> ask(sandbox& walls, const toolchain_options& x) {
  if (x.backend == "cuda") return ask_nvcc(walls, x.compiler, x.architecture, x.extra_flags);
  if (x.backend == "hip" && is_amd_architecture(x.architecture))
    return ask_hipcc(walls, x.compiler, x.architecture, x.extra_flags);
  if (x.backend == "hip") {
    auto layer = layer_of(target_of(x));
    KM_TRY(layer);
    return ask_nvcc(walls, x.compiler, x.architecture, x.extra_flags, &**layer);
  }
  return ask_gxx(walls, x.compiler, x.extra_flags);
}

} // namespace

struct native_toolchain::state {
  state(sandbox& w, toolchain_options o)
      : walls(w), options(std::move(o)),
        cache(options.cache_directory.empty() ? default_cache_directory() : options.cache_directory,
              options.cache_bytes) {
    if (options.compiler.empty()) options.compiler = usual_compiler(options);
    identity = options.compiler + " (not asked yet)";
    if (options.backend != "hip")
      programs = std::make_unique<program_toolchain>(walls, options, cache);
    if (!options.python.empty()) torch = std::make_unique<torch_toolchain>(walls, options, cache);
  }

  sandbox& walls;
  toolchain_options options;
  build_cache cache;
  std::string identity;
  std::mutex mutex; // guards the next three
  std::optional<compiler_facts> facts;
  std::optional<compiler_facts> device_facts;
  std::unique_ptr<precompiled_headers> headers;
  std::unique_ptr<torch_toolchain> torch;      // null: no contract `torch`
  std::unique_ptr<program_toolchain> programs; // null: no contract `program`

  bool is_cuda() const { return options.backend == "cuda"; }
  bool is_amd() const { return is_amd_architecture(options.architecture); }
  /// Whether this backend has device code, with or without its compiler.
  bool takes_device() const { return options.backend != "cpu"; }
  expected<compiler_facts> learn();
  expected<compiler_facts> learn_device();
  expected<void> accept(wire::BuildRequest::Reader request) const;
  Message<wire::BuildResult> build(const compiler_facts& compiler, std::string source,
                                   int deadline_ms);
  build_findings compile(const compiler_facts& compiler, const std::string& key,
                         const std::string& source, int deadline_ms);
  expected<compiler_outcome> run(const compiler_facts& compiler, const std::string& source,
                                 int deadline_ms, const std::string& header_directory);
  expected<compiler_outcome> run_attributed(const compiler_facts& compiler,
                                            const std::string& source, int deadline_ms);
  expected<void> control(const compiler_facts& compiler, const std::string& source,
                         int deadline_ms);
};

// Asked again until it answers: a compiler may be installed, a cache made writable, at any time.
expected<compiler_facts> native_toolchain::state::learn() {
  std::lock_guard guard{mutex};
  if (facts) return *facts;
  KM_TRY(cache.prepare());
  auto answer = ask(walls, options);
  if (!answer) return answer;
  if (options.backend == "cpu") {
    auto key = sha256_hex(answer->digest + std::string{precompiled_header_text});
    headers = std::make_unique<precompiled_headers>(walls, cache.directory(), key, answer->compile);
    headers->replace_text(std::string{precompiled_header_text}, answer->mounts);
  }
  facts = *answer;
  return answer;
}

expected<compiler_facts> native_toolchain::state::learn_device() {
  std::lock_guard guard{mutex};
  if (device_facts) return *device_facts;
  KM_TRY(cache.prepare());
  auto layer = layer_of(target_of(options));
  KM_TRY(layer);
  auto answer = ask_nvrtc(walls, options.device_compiler, options.architecture, options.extra_flags,
                          *layer ? &**layer : nullptr);
  if (answer) device_facts = *answer;
  return answer;
}

expected<void> native_toolchain::state::accept(wire::BuildRequest::Reader request) const {
  std::string backend = request.getBackend();
  auto contract = contract_of(request.getContract().cStr());
  bool device =
      contract == contract_kind::device && takes_device() && !options.device_compiler.empty();
  bool python = contract == contract_kind::torch && torch;
  bool program = contract == contract_kind::program && programs;
  if ((contract != contract_kind::native && !device && !python && !program) ||
      backend != options.backend)
    return infrastructure_error(
        "unsupported_contract",
        std::string{"failed to build contract \""} + request.getContract().cStr() +
            "\" for backend \"" + backend + "\": this toolchain builds \"native\"" +
            (takes_device() ? " and \"device\"" : "") + (torch ? " and \"torch\"" : "") +
            (programs ? " and \"program\"" : "") + " for \"" + options.backend + "\"");
  auto size = request.getSource().size();
  if (size > most_source)
    return candidate_error("compile_error",
                           "failed to compile the kernel: its source has " + std::to_string(size) +
                               " bytes; the limit is " + std::to_string(most_source),
                           "compute large tables at run time");
  return {};
}

expected<compiler_outcome> native_toolchain::state::run(const compiler_facts& compiler,
                                                        const std::string& source, int deadline_ms,
                                                        const std::string& header_directory) {
  compiler_job job;
  job.argv = compiler.compile;
  job.mounts = compiler.mounts;
  if (!header_directory.empty()) {
    job.mounts.push_back({header_directory, precompiled_headers::mount_point, false});
    job.argv.insert(job.argv.end(), {"-include", precompiled_headers::header_path});
  }
  if (!compiler.whole) {
    job.argv.insert(job.argv.end(), {compiler.source_name, "-o", product_path});
    job.argv.insert(job.argv.end(), compiler.link.begin(), compiler.link.end());
  }
  job.path = compiler.path;
  job.source_name = compiler.source_name;
  job.source = source;
  job.deadline_ms = deadline_ms;
  job.memory_bytes = options.memory_bytes;
  // Half the deadline in processor time: what hits this limit would hit it again on an idle
  // machine, so the verdict may be remembered.
  job.cpu_seconds = static_cast<uint64_t>(std::max(1, deadline_ms / 2000));
  return run_compiler(walls, job);
}

expected<void> native_toolchain::state::control(const compiler_facts& compiler,
                                                const std::string& source, int deadline_ms) {
  auto [kind, name] = control_of(compiler, options.backend);
  return result_of_control(run(compiler, control_source(kind, source), deadline_ms, {}), name);
}

// The outcome of the source's own build. Fails where the machine is at fault.
expected<compiler_outcome> native_toolchain::state::run_attributed(const compiler_facts& compiler,
                                                                   const std::string& source,
                                                                   int deadline_ms) {
  auto directory =
      headers && wants_precompiled_headers(source) ? headers->find_or_build() : std::string{};
  const std::vector<std::string> own{compiler.source_name};
  expected<compiler_outcome> latest = run(compiler, source, deadline_ms, directory);
  auto judged = [&] { return evidence_of(latest, own); };
  // Precompiled headers may be damaged, and a message that leads to them may be about a name that
  // the kernel never asked for; in any case it should name the kernel's own #include.
  if (auto evidence = judged();
      evidence && !directory.empty() && !latest->timed_out &&
      (*evidence != build_evidence::source || contains_any(latest->text, {"kernelmill.hpp"})))
    latest = run(compiler, source, deadline_ms, {});
  bool first = true;
  KM_TRY(attribute({[&] {
                      if (!std::exchange(first, false))
                        latest = run(compiler, source, deadline_ms, {});
                      return judged();
                    },
                    [&] { return control(compiler, source, deadline_ms); }}));
  return latest;
}

build_findings native_toolchain::state::compile(const compiler_facts& compiler,
                                                const std::string& key, const std::string& source,
                                                int deadline_ms) {
  auto outcome = run_attributed(compiler, source, deadline_ms);
  build_findings result;
  if (!outcome) {
    result.fault = outcome.error();
    return result;
  }
  result.seconds = outcome->seconds;
  result.kernels =
      is_amd() ? take_hip_kernel_resources(outcome->text) : take_kernel_resources(outcome->text);
  result.log = clean_log(outcome->text, most_log);
  result.diagnostics = parse_diagnostics(result.log);
  if (has_failed(*outcome)) {
    result.fault = fault_of_compiler(*outcome, result.diagnostics, deadline_ms);
    result.repeatable = outcome->repeatable();
    return result;
  }
  auto stored = cache.store_library(key, outcome->product.get());
  if (!stored) {
    result.fault = stored.error();
    return result;
  }
  result.library_sha256 = *stored;
  if (is_cuda() && options.find_spills != nullptr && spills(result.kernels)) {
    auto remarks = options.find_spills(walls, source, options.architecture);
    result.diagnostics.insert(result.diagnostics.end(), remarks.begin(), remarks.end());
  }
  return result;
}

Message<wire::BuildResult> native_toolchain::state::build(const compiler_facts& compiler,
                                                          std::string source, int deadline_ms) {
  // The deadline is part of the key because it decides what counts as too long.
  auto key = sha256_hex(std::string{cache_generation} + '\n' + compiler.digest + '\n' +
                        std::to_string(deadline_ms) + ' ' + std::to_string(options.memory_bytes) +
                        '\n' + source);
  if (auto found = cache.find(key)) return *found;
  auto x = compile(compiler, key, source, deadline_ms);
  auto result = to_message(x, cache.library_path(key), compiler.identity, options.architecture);
  auto cls = x.fault.cls;
  if (x.repeatable && (cls == fault_class::none || cls == fault_class::candidate))
    cache.store_result(key, result);
  return result;
}

expected<void> native_toolchain::probe(contract_kind contract) {
  auto& x = *state_;
  auto deadline = static_cast<int>(x.options.deadline_ms);
  if (contract == contract_kind::torch && x.torch) return x.torch->probe(deadline);
  auto compiler = contract == contract_kind::device ? x.learn_device() : x.learn();
  KM_TRY(compiler);
  if (control_of(*compiler, x.options.backend).kind == control_kind::host)
    return x.control(*compiler, {}, deadline);
  // The others take seconds, so what was built is remembered, until another compiler or header is
  // installed.
  return build_once(x.cache.directory(), cache_generation + compiler->digest,
                    [&] { return x.control(*compiler, {}, deadline); });
}

native_toolchain::native_toolchain(sandbox& walls, toolchain_options options)
    : state_(std::make_unique<state>(walls, std::move(options))) {
  if (auto facts = state_->learn()) state_->identity = facts->identity;
}

native_toolchain::~native_toolchain() = default;

const std::string& native_toolchain::identity() const {
  return state_->identity;
}

Message<wire::BuildResult> native_toolchain::build(wire::BuildRequest::Reader request) {
  auto refuse = [this](const error& why) {
    build_findings x;
    x.fault = why;
    return to_message(x, {}, state_->identity, {});
  };
  if (auto ok = state_->accept(request); !ok) return refuse(ok.error());
  auto most = state_->options.deadline_ms;
  auto deadline = static_cast<int>(
      std::max(request.getDeadlineMs() > 0 ? std::min(request.getDeadlineMs(), most) : most,
               shortest_deadline_ms));
  auto contract = contract_of(request.getContract().cStr());
  if (contract == contract_kind::torch) return state_->torch->build(request, deadline);
  if (contract == contract_kind::program) return state_->programs->build(request, deadline);
  bool device = contract == contract_kind::device;
  auto source = source_of(request);
  if (device)
    if (auto plan = parse_launch_plan(source); !plan) return refuse(plan.error());
  auto compiler = device ? state_->learn_device() : state_->learn();
  if (!compiler) return refuse(compiler.error());
  return state_->build(*compiler, std::move(source), deadline);
}

} // namespace kernelmill
