#include "gpu/toolchain/torch_toolchain.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>
#include <mutex>
#include <optional>
#include <thread>

#include "gpu/python/python_files.hpp"
#include "gpu/task/torch_artifact.hpp"
#include "gpu/toolchain/build_findings.hpp"
#include "gpu/toolchain/compiler_facts.hpp"
#include "gpu/toolchain/header_stamp.hpp"
#include "gpu/toolchain/torch_extension.hpp"
#include "gpu/toolchain/torch_recorder.hpp"
#include "gpu/toolchain/torch_sources.hpp"
#include "gpu/toolchain/warm_recorder.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/files.hpp"
#include "messages/folder_file.hpp"

namespace kernelmill {

namespace {

constexpr int import_deadline_ms = 45'000; // defining a model is no work

// Part of every key: raise it when the meaning of an entry changes.
constexpr const char* torch_cache_generation = "kernelmill-torch-build-3";

// What our Python and our headers say is part of every key too.
std::string digest_of_package() {
  std::string all;
  std::vector<std::filesystem::path> files;
  std::error_code code;
  auto root = std::filesystem::path{python_package_directory()} / "kernelmill_torch";
  for (auto* name : {"record.py", "entry.py", "extension_request.py", "init_inputs.py",
                     "triton_ahead.py", "variants.py"})
    files.push_back(root / name);
  for (auto& x : std::filesystem::recursive_directory_iterator{root / "slim", code})
    if (x.is_regular_file(code)) files.push_back(x.path());
  std::sort(files.begin(), files.end());
  for (auto& x : files) all += x.string() + '\n' + read_whole(x.string()).value_or("") + '\n';
  return sha256_hex(all);
}

expected<listed_extension> list_source(torch_extension_builder& builder,
                                       const extension_request& request, size_t index,
                                       int deadline_ms) {
  listed_extension result;
  result.name = shown_source_name(request, index);
  result.source = request.sources[index].text;
  for (auto [kind, into] : {std::pair{"-ptx", &result.ptx}, std::pair{"-cubin", &result.cubin}}) {
    auto outcome = builder.list(request, index, kind, deadline_ms);
    KM_TRY(outcome);
    result.log = std::move(outcome->text);
    if (outcome->status.code == 0 && !outcome->timed_out)
      *into = read_whole(outcome->product.get()).value_or("");
  }
  return result;
}

} // namespace

struct torch_toolchain::state {
  state(sandbox& w, toolchain_options o, build_cache& c)
      : walls(w), options(std::move(o)), cache(c) {
    // nop
  }

  struct known {
    python_facts python;
    std::string identity;
    std::string digest;
    std::unique_ptr<torch_extension_builder> builder;
    std::unique_ptr<warm_recorder> recorder;
  };

  sandbox& walls;
  toolchain_options options;
  build_cache& cache;
  std::mutex mutex; // guards facts
  std::optional<known> facts;

  expected<const known*> learn();
  expected<torch_compilers> find_compilers(const python_facts& python);
  build_findings make(const known& x, const std::string& key, std::string source,
                      wire::BuildRequest::Reader request, int deadline_ms);
  void build_extensions(const known& x, const std::vector<extension_request>& requests,
                        int deadline_ms, torch_artifact& artifact, build_findings& out);
};

expected<torch_compilers> torch_toolchain::state::find_compilers(const python_facts& python) {
  torch_compilers result;
  result.python = python;
  bool named = options.backend == "cpu" && !options.compiler.empty();
  auto host = ask_gxx(walls, named ? options.compiler : "/usr/bin/g++", {});
  KM_TRY(host);
  result.host = std::move(*host);
  if (options.backend == "cuda") {
    if (python.torch_cuda.empty())
      return configuration_error("python_missing",
                                 "failed to use " + options.python + " on a GPU: its torch " +
                                     python.torch + " has no CUDA",
                                 "name an interpreter whose torch has CUDA, or use --backend cpu");
    auto nvcc = options.compiler.empty() ? find_nvcc() : options.compiler;
    auto device = ask_nvcc(walls, nvcc, options.architecture, {});
    KM_TRY(device);
    result.device = std::move(*device);
  }
  result.architecture = options.architecture;
  result.cache_directory = cache.directory();
  result.slim_headers = python_package_directory() + "/kernelmill_torch/slim";
  result.memory_bytes = options.memory_bytes;
  result.parallel = std::max(2u, std::thread::hardware_concurrency());
  return result;
}

// Asked again until it answers, as native_toolchain does.
expected<const torch_toolchain::state::known*> torch_toolchain::state::learn() {
  std::lock_guard guard{mutex};
  if (facts) return &*facts;
  KM_TRY(cache.prepare());
  auto python = ask_python(walls.processes(), options.python);
  KM_TRY(python);
  auto compilers = find_compilers(*python);
  KM_TRY(compilers);
  known x;
  x.python = *python;
  x.recorder = std::make_unique<warm_recorder>(walls, *python, options.backend == "cuda");
  x.identity = "Python " + python->version + ", torch " + python->torch;
  if (!python->triton.empty()) x.identity += ", triton " + python->triton;
  x.identity += ", " + compilers->host.identity.substr(0, compilers->host.identity.find(" -"));
  if (compilers->cuda())
    x.identity += ", " +
                  compilers->device.identity.substr(0, compilers->device.identity.find(" -")) +
                  " " + options.architecture;
  x.digest = sha256_hex(x.identity + '\n' + python->executable + '\n' + python->torch_directory +
                        '\n' + compilers->host.digest + '\n' + compilers->device.digest + '\n' +
                        digest_of_package() + '\n' + stamp_of(python->torch_includes) +
                        stamp_of({python->torch_libraries, python->python_include}));
  x.builder = std::make_unique<torch_extension_builder>(walls, std::move(*compilers));
  facts.emplace(std::move(x));
  return &*facts;
}

void torch_toolchain::state::build_extensions(const known& x,
                                              const std::vector<extension_request>& requests,
                                              int deadline_ms, torch_artifact& artifact,
                                              build_findings& out) {
  std::vector<std::future<built_extension>> waiting;
  for (auto& request : requests)
    waiting.push_back(
        std::async(std::launch::async, [&] { return x.builder->build(request, deadline_ms); }));
  for (size_t i = 0; i < waiting.size(); ++i) {
    auto built = waiting[i].get();
    auto& found = built.findings;
    out.log += found.log;
    out.diagnostics.insert(out.diagnostics.end(), found.diagnostics.begin(),
                           found.diagnostics.end());
    out.kernels.insert(out.kernels.end(), found.kernels.begin(), found.kernels.end());
    out.repeatable = out.repeatable && found.repeatable;
    if (found.fault.cls == fault_class::none)
      artifact.extensions.push_back({requests[i].key, requests[i].name, std::move(built.library)});
    // The machine's fault says nothing of the candidate, so it goes before.
    else if (out.fault.cls == fault_class::none || found.fault.cls != fault_class::candidate)
      out.fault = found.fault;
  }
  constexpr size_t most_diagnostics = 100;
  if (out.diagnostics.size() > most_diagnostics) out.diagnostics.resize(most_diagnostics);
  out.log = clean_log(out.log, most_log);
}

build_findings torch_toolchain::state::make(const known& x, const std::string& key,
                                            std::string source, wire::BuildRequest::Reader request,
                                            int deadline_ms) {
  torch_artifact artifact{std::move(source), {}, {}, entry_of(request.getTaskDir()).text()};
  auto begin = std::chrono::steady_clock::now();
  recorder_options how{options.backend, options.architecture, cache.directory(), x.recorder.get()};
  auto recorded = record_candidate(walls, x.python, how, artifact.source, request.getTaskDir(),
                                   std::min(deadline_ms, import_deadline_ms));
  auto result = std::move(recorded.findings);
  auto& requests = recorded.report.requests;
  artifact.triton_files = std::move(recorded.report.triton_files);
  auto none = [](auto& y) { return y.has_cuda(); };
  if (result.fault.cls == fault_class::none && options.backend == "cpu" &&
      std::any_of(requests.begin(), requests.end(), none))
    result.fault = candidate_fault("compile_error",
                                   "failed to build the candidate's extension: this backend has no "
                                   "CUDA",
                                   "on a CPU extensions are C++ alone");
  if (result.fault.cls == fault_class::none)
    build_extensions(x, requests, deadline_ms, artifact, result);
  if (result.fault.cls == fault_class::none) {
    auto file = memory_file(pack_torch_artifact(artifact));
    auto stored = file ? cache.store_library(key, file->get())
                       : expected<std::string>{tl::unexpected{file.error()}};
    if (stored)
      result.library_sha256 = *stored;
    else
      result.fault = stored.error();
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

torch_toolchain::torch_toolchain(sandbox& walls, toolchain_options options, build_cache& cache)
    : state_(std::make_unique<state>(walls, std::move(options), cache)) {
  // nop
}

torch_toolchain::~torch_toolchain() = default;

expected<listed_module> torch_toolchain::list(const std::string& source,
                                              const std::string& task_directory, int deadline_ms) {
  auto facts = state_->learn();
  if (!facts) return tl::unexpected<error>{facts.error()};
  auto& x = **facts;
  recorder_options how{state_->options.backend, state_->options.architecture,
                       state_->cache.directory(), x.recorder.get()};
  auto recorded = record_candidate(state_->walls, x.python, how, source, task_directory,
                                   std::min(deadline_ms, import_deadline_ms));
  listed_module result;
  result.log = clean_log(recorded.findings.log, most_log);
  result.triton_files = std::move(recorded.report.triton_files);
  result.triton_problem = recorded.report.triton_problem;
  auto& fault = recorded.findings.fault;
  if (fault.cls == fault_class::infrastructure || fault.cls == fault_class::configuration)
    return tl::unexpected<error>{fault};
  result.fault = fault;
  for (auto& request : recorded.report.requests)
    for (size_t i = 0; i < request.sources.size(); ++i) {
      if (!request.sources[i].is_cuda()) continue;
      auto one = list_source(*x.builder, request, i, deadline_ms);
      KM_TRY(one);
      result.extensions.push_back(std::move(*one));
    }
  return result;
}

// It takes 5 s, so one that was built is remembered, until another torch, compiler or header is
// installed.
expected<void> torch_toolchain::probe(int deadline_ms) {
  auto facts = state_->learn();
  KM_TRY(facts);
  const auto& x = **facts;
  return build_once(state_->cache.directory(), torch_cache_generation + x.digest, [&] {
    return x.builder->control(state_->options.backend == "cuda", true, deadline_ms);
  });
}

Message<wire::BuildResult> torch_toolchain::build(wire::BuildRequest::Reader request,
                                                  int deadline_ms) {
  auto facts = state_->learn();
  if (!facts) {
    build_findings refused;
    refused.fault = facts.error();
    return to_message(refused, {}, state_->options.python, {});
  }
  auto& x = **facts;
  std::string problem = request.getTaskDir();
  if (!problem.empty())
    problem = read_in_folder(problem, "problem.py").value_or("") + shown_variants(problem) +
              entry_of(problem).text();
  auto source = source_of(request);
  auto key =
      sha256_hex(std::string{torch_cache_generation} + '\n' + x.digest + '\n' +
                 std::to_string(deadline_ms) + ' ' + std::to_string(state_->options.memory_bytes) +
                 '\n' + sha256_hex(problem) + '\n' + source);
  if (auto found = state_->cache.find(key)) return *found;
  auto made = state_->make(x, key, std::move(source), request, deadline_ms);
  auto result =
      to_message(made, state_->cache.library_path(key), x.identity, state_->options.architecture);
  auto cls = made.fault.cls;
  if (made.repeatable && (cls == fault_class::none || cls == fault_class::candidate))
    state_->cache.store_result(key, result);
  return result;
}

} // namespace kernelmill
