#include "gpu/toolchain/compiler_facts.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include <unistd.h>

#include "gpu/toolchain/build_attribution.hpp"
#include "gpu/toolchain/compiler_run.hpp"
#include "gpu/toolchain/header_stamp.hpp"
#include "messages/base/digest.hpp"

namespace kernelmill {

namespace {

constexpr int ask_deadline_ms = 20'000;

expected<compiler_outcome> run_to_ask(sandbox& walls, const compiler_facts& facts,
                                      std::vector<std::string> argv) {
  compiler_job job;
  job.argv = std::move(argv);
  job.path = facts.path;
  job.source_name = facts.source_name;
  job.mounts = facts.mounts;
  job.deadline_ms = ask_deadline_ms;
  return run_compiler(walls, job);
}

expected<std::string> ask(sandbox& walls, const compiler_facts& facts, const std::string& compiler,
                          std::vector<std::string> argv, const char* remedy) {
  auto outcome = run_to_ask(walls, facts, std::move(argv));
  if (outcome && outcome->status.code == 0) return outcome->text;
  if (!outcome && outcome.error().category != "cannot_execute")
    return tl::unexpected{outcome.error()};
  auto cause =
      outcome ? outcome->text.substr(0, outcome->text.find('\n')) : outcome.error().message;
  return infrastructure_error("toolchain_missing", "failed to run " + compiler + ": " + cause,
                              remedy);
}

// `g++ -###` prints the commands it would run, -march=native spelled out, and names of temporary
// files, which differ each time.
std::string without_temporaries(const std::string& text) {
  std::istringstream in{text};
  std::string result;
  for (std::string word; in >> word;)
    if (word.find("/tmp/") == word.npos) result += word + ' ';
  return result;
}

bool for_linker(const std::string& flag) {
  return flag.starts_with("-l") || flag.starts_with("-L") || flag.starts_with("-Wl,");
}

void add_flags(compiler_facts& facts, const std::vector<std::string>& extra_flags) {
  for (auto& x : extra_flags) {
    (for_linker(x) ? facts.link : facts.compile).push_back(x);
    facts.identity += " " + x;
  }
}

constexpr const char* system_headers = "/usr/include";

// The headers of what a compiler was installed with: /opt/gcc/include of /opt/gcc/bin/g++.
std::string beside(const std::string& compiler) {
  return (std::filesystem::path{compiler}.parent_path().parent_path() / "include").string();
}

std::string version_file(const std::string& nvcc) {
  return (std::filesystem::path{nvcc}.parent_path().parent_path() / "version.json").string();
}

constexpr const char* gxx_remedy = "apt install g++, or name the compiler in the configuration";
constexpr const char* nvcc_remedy =
    "install the CUDA toolkit, set CUDA_HOME, or name nvcc in the configuration";

// The NVRTC of a toolkit by its real path, because the sandbox does not show what links lead over;
// empty when it has none, and then the loader looks.
std::string find_nvrtc(const std::filesystem::path& toolkit) {
  if (toolkit.empty()) return {};
  for (const auto& folder : {toolkit / "lib64", toolkit / "targets" / "x86_64-linux" / "lib"}) {
    std::error_code problem;
    auto real = std::filesystem::canonical(folder / "libnvrtc.so", problem);
    if (!problem) return real.string();
  }
  return {};
}

// Where nvcc is, or where toolkits without one are; empty when there is none.
std::filesystem::path find_toolkit() {
  if (auto nvcc = find_nvcc(); !nvcc.empty())
    return std::filesystem::path{nvcc}.parent_path().parent_path();
  std::error_code problem;
  return std::filesystem::canonical("/usr/local/cuda", problem);
}

void use_layer(compiler_facts& facts, const hip_layer& layer,
               const std::vector<std::string>& flags) {
  facts.compile.insert(facts.compile.end(), flags.begin(), flags.end());
  for (auto& x : mounts_of(layer)) facts.mounts.push_back(x);
  facts.identity += ", HIP " + layer.version + " on NVIDIA";
}

std::string stamp_of_layer(const hip_layer* layer) {
  return layer == nullptr ? std::string{} : stamp_of({layer->ours, layer->headers + "/hip"});
}

constexpr const char* hipcc_remedy =
    "apt install hipcc, set ROCM_PATH or HIPCC, or name hipcc in the configuration";

// Has a compiler say what it would run for `architecture`; one that does not know it says so.
expected<std::string> dry_run(sandbox& walls, const compiler_facts& facts,
                              const std::string& architecture, std::vector<std::string> argv) {
  auto outcome = run_to_ask(walls, facts, std::move(argv));
  KM_TRY(outcome);
  if (outcome->timed_out)
    return infrastructure_error("toolchain_missing", "failed to run " + facts.compile[0] +
                                                         ": it did not answer in time");
  // clang ends with 0 even when it lacks ROCm's device library for an architecture.
  auto at = outcome->text.find(" error: ");
  if (outcome->status.code == 0 && at == std::string::npos) return outcome->text;
  if (speaks_of_machine(outcome->text)) {
    auto fault = fault_of_control(*outcome, "a dry run of " + facts.compile[0]);
    if (fault.category != "toolchain_missing") return tl::unexpected<error>{fault};
  }
  auto begin = at == std::string::npos ? outcome->text.find(": ") + 2 : at + 8;
  if (begin >= outcome->text.size()) begin = 0;
  return configuration_error(
      "unsupported_architecture",
      "failed to compile for " + architecture + " with " + facts.compile[0] + ": " +
          outcome->text.substr(begin, outcome->text.find_first_of("\n;", begin) - begin),
      "name an architecture that this compiler knows, or install a newer one");
}

// "Cuda compilation tools, release 13.0, V13.0.88" is the line that has it.
std::string nvcc_release(const std::string& text) {
  auto at = text.find(", V");
  if (at == text.npos) return "of unknown version";
  auto end = text.find_first_not_of("0123456789.", at + 3);
  return text.substr(at + 3, end == text.npos ? end : end - at - 3);
}

// The word behind `name`: "5.2.21153-0" of "HIP version: 5.2.21153-0".
std::string word_after(const std::string& text, const std::string& name) {
  auto at = text.find(name);
  if (at == text.npos) return "of unknown version";
  at += name.size();
  return text.substr(at, text.find_first_of(" \n", at) - at);
}

std::string digest_of(const compiler_facts& facts, const std::string& found_out) {
  std::string flags;
  for (auto* list : {&facts.compile, &facts.link})
    for (auto& x : *list) flags += x + '\n';
  return sha256_hex(found_out + "\n" + flags);
}

// The first of these folders' programs that can be run, as its real path.
std::string find_program(const std::vector<std::string>& places, const char* name) {
  namespace fs = std::filesystem;
  for (auto& place : places) {
    std::error_code code;
    auto real = fs::canonical(fs::path{place} / name, code);
    if (!code && fs::is_regular_file(real, code) && ::access(real.c_str(), X_OK) == 0)
      return real.string();
  }
  return {};
}

void add_search_path(std::vector<std::string>& places) {
  std::istringstream path{std::getenv("PATH") != nullptr ? std::getenv("PATH") : ""};
  for (std::string one; std::getline(path, one, ':');) places.push_back(one);
}

} // namespace

expected<compiler_facts> ask_gxx(sandbox& walls, const std::string& compiler,
                                 const std::vector<std::string>& extra_flags) {
  compiler_facts result;
  result.source_name = "kernel.cpp";
  result.mounts = compiler_mounts(compiler);
  auto version = ask(walls, result, compiler, {compiler, "-dumpfullversion"}, gxx_remedy);
  KM_TRY(version);
  while (!version->empty() && version->back() == '\n') version->pop_back();
  auto own = ask(walls, result, compiler, {compiler, "-print-file-name=include"}, gxx_remedy);
  KM_TRY(own);
  result.compile = {compiler,
                    "-std=c++20",
                    "-O3",
                    "-march=native",
                    "-fopenmp",
                    "-fPIC",
                    "-fdiagnostics-color=never",
                    "-fmax-errors=20"};
  // -z defs: an undefined symbol is an error of the build, with a text, not of dlopen.
  result.link = {"-shared", "-Wl,-z,defs"};
  result.identity = std::filesystem::path{compiler}.filename().string() + " " + *version +
                    " -std=c++20 -O3 -march=native -fopenmp";
  add_flags(result, extra_flags);
  auto dry = result.compile;
  dry.insert(dry.end(), {"-###", "-x", "c++", "kernel.cpp", "-o", product_path});
  dry.insert(dry.end(), result.link.begin(), result.link.end());
  auto resolved = ask(walls, result, compiler, dry, gxx_remedy);
  KM_TRY(resolved);
  // With GCC's own headers lie its passes and libgcc.
  auto folder = std::filesystem::path{own->substr(0, own->find('\n'))}.parent_path();
  result.digest = sha256_hex(*version + "\n" + without_temporaries(*resolved) + "\n" +
                             stamp_of({folder.string(), system_headers, beside(compiler)}));
  return result;
}

expected<compiler_facts> ask_nvcc(sandbox& walls, const std::string& compiler,
                                  const std::string& architecture,
                                  const std::vector<std::string>& extra_flags,
                                  const hip_layer* layer) {
  compiler_facts result;
  result.source_name = layer != nullptr ? "kernel.hip" : "kernel.cu";
  auto tools = std::filesystem::path{compiler}.parent_path().string();
  result.path = tools + ":/usr/bin";
  auto version = ask(walls, result, compiler, {compiler, "--version"}, nvcc_remedy);
  KM_TRY(version);
  auto host = ask(walls, result, "g++", {"/usr/bin/g++", "-dumpfullversion"}, gxx_remedy);
  KM_TRY(host);
  result.compile = {
      compiler,     "-std=c++20",
      "-O3",        "-arch=" + architecture,
      "-Xptxas=-v", "-Xcompiler=-fPIC,-fopenmp,-fdiagnostics-color=never,-fmax-errors=20"};
  // The run-time library is inside: nothing that a candidate loads can stand between it and CUDA.
  result.link = {"--shared", "-cudart=static", "-Xlinker=-z,defs"};
  result.identity = "nvcc " + nvcc_release(*version) + " -std=c++20 -O3 -arch=" + architecture;
  if (layer != nullptr) use_layer(result, *layer, nvcc_flags(*layer));
  add_flags(result, extra_flags);
  auto known = dry_run(walls, result, architecture,
                       {compiler, "--dryrun", "-arch=" + architecture, "-c", "kernel.cu"});
  KM_TRY(known);
  result.digest =
      digest_of(result, *version + "\n" + *host + "\n" +
                            stamp_of({system_headers, beside(compiler), version_file(compiler)}) +
                            stamp_of_layer(layer));
  return result;
}

expected<compiler_facts> ask_hipcc(sandbox& walls, const std::string& compiler,
                                   const std::string& architecture,
                                   const std::vector<std::string>& extra_flags) {
  compiler_facts result;
  result.source_name = "kernel.hip";
  result.path = std::filesystem::path{compiler}.parent_path().string() + ":/usr/bin";
  result.mounts = compiler_mounts(compiler);
  result.compile = hipcc_command(compiler, architecture);
  result.compile.insert(result.compile.end(), {"-Rpass-analysis=kernel-resource-usage",
                                               "-fno-color-diagnostics", "-ferror-limit=20"});
  // Without an architecture it would look for a GPU, even to say its version.
  auto version = ask(walls, result, compiler,
                     {compiler, "--offload-arch=" + architecture, "--version"}, hipcc_remedy);
  KM_TRY(version);
  auto dry = result.compile;
  dry.insert(dry.end(), {"-###", "kernel.hip", "-o", product_path});
  auto resolved = dry_run(walls, result, architecture, dry);
  KM_TRY(resolved);
  result.link = {"-Wl,-z,defs"};
  result.identity = "hipcc " + word_after(*version, "HIP version: ") + " (clang " +
                    word_after(*version, "clang version ") +
                    ") -std=c++20 -O3 --offload-arch=" + architecture;
  add_flags(result, extra_flags);
  // The dry run names the host's C++ library and the device libraries, which are packages apart.
  result.digest = digest_of(result, *version + "\n" + without_temporaries(*resolved) + "\n" +
                                        stamp_of({system_headers, beside(compiler)}));
  return result;
}

// ROCm's own lies in a folder that the sandbox must be shown; Debian's in /usr.
expected<compiler_facts> ask_hiprtc(sandbox& walls, compiler_facts result,
                                    const std::string& architecture,
                                    const std::vector<std::string>& extra_flags) {
  const auto inside = result.mounts.front().target;
  std::error_code problem;
  auto rocm = std::filesystem::canonical("/opt/rocm", problem);
  auto library = std::string{"--nvrtc="};
  if (!problem) {
    auto real = std::filesystem::canonical(rocm / "lib/libhiprtc.so", problem);
    if (!problem) library += real.string();
    result.mounts.push_back({rocm.string(), rocm.string(), false});
  }
  auto version = ask(walls, result, "hipRTC", {inside, library, "--version", architecture},
                     "install ROCm's HIP runtime, or use the contract native");
  KM_TRY(version);
  while (!version->empty() && version->back() == '\n') version->pop_back();
  result.source_name = "kernel.hip";
  result.compile = {inside, library, result.source_name, architecture};
  result.identity = "hipRTC " + *version + " -std=c++20 --offload-arch=" + architecture;
  add_flags(result, extra_flags);
  result.digest = digest_of(result, "hiprtc " + *version + "\n" +
                                        stamp_of({library.substr(library.find('=') + 1)}));
  return result;
}

expected<compiler_facts> ask_nvrtc(sandbox& walls, const std::string& program,
                                   const std::string& architecture,
                                   const std::vector<std::string>& extra_flags,
                                   const hip_layer* layer) {
  constexpr const char* inside = "/kernelmill-nvrtc";
  if (::access(program.c_str(), X_OK) != 0)
    return infrastructure_error("toolchain_missing",
                                "failed to run " + program + ": " + std::strerror(errno),
                                "it is installed beside kernelmill; or use the contract native");
  compiler_facts result;
  result.source_name = "kernel.cu";
  result.whole = true;
  result.mounts = {{program, inside, false}};
  if (is_amd_architecture(architecture))
    return ask_hiprtc(walls, std::move(result), architecture, extra_flags);
  auto toolkit = find_toolkit();
  auto library = "--nvrtc=" + find_nvrtc(toolkit);
  auto version = ask(walls, result, "NVRTC", {inside, library, "--version"},
                     "install the CUDA toolkit (libnvrtc), or use the contract native");
  KM_TRY(version);
  while (!version->empty() && version->back() == '\n') version->pop_back();
  result.compile = {inside, library, "kernel.cu", architecture, "--ptxas-options=-v"};
  // The headers of CUDA that device code may want: fp16, mma, and cooperative groups, which need
  // those of the C++ library.
  for (const auto& folder : {toolkit / "include", toolkit / "include" / "cccl"}) {
    std::error_code problem;
    if (folder.is_absolute() && std::filesystem::is_directory(folder, problem))
      result.compile.push_back("--include-path=" + folder.string());
  }
  result.identity = "NVRTC " + *version + " -std=c++20 -arch=" + architecture;
  if (layer != nullptr) use_layer(result, *layer, nvrtc_flags(*layer));
  add_flags(result, extra_flags);
  result.digest = digest_of(result, "nvrtc " + *version + "\n" +
                                        stamp_of({(toolkit / "include").string(),
                                                  library.substr(library.find('=') + 1)}) +
                                        stamp_of_layer(layer));
  return result;
}

std::vector<std::string> nvcc_command(const std::string& compiler,
                                      const std::string& architecture) {
  return {compiler,   "-std=c++20",    "-O3", "-arch=" + architecture, "-Xcompiler=-fPIC,-fopenmp",
          "--shared", "-cudart=static"};
}

std::vector<std::string> hipcc_command(const std::string& compiler,
                                       const std::string& architecture) {
  return {compiler, "-std=c++20", "-O3",      "--offload-arch=" + architecture,
          "-fPIC",  "-shared",    "-include", "hip/hip_runtime.h",
          "-x",     "hip"};
}

std::string find_nvcc() {
  std::vector<std::string> places;
  if (auto* home = std::getenv("CUDA_HOME")) places.push_back(std::string{home} + "/bin");
  places.emplace_back("/usr/local/cuda/bin");
  add_search_path(places);
  return find_program(places, "nvcc");
}

std::string find_hipcc() {
  if (auto* named = std::getenv("HIPCC"); named != nullptr && *named == '/')
    return find_program({"/"}, named);
  std::vector<std::string> places;
  for (auto* name : {"ROCM_PATH", "HIP_PATH"})
    if (auto* home = std::getenv(name)) places.push_back(std::string{home} + "/bin");
  places.emplace_back("/opt/rocm/bin");
  add_search_path(places);
  return find_program(places, "hipcc");
}

std::vector<bind_mount> compiler_mounts(const std::string& compiler) {
  namespace fs = std::filesystem;
  fs::path path{compiler};
  if (compiler.starts_with("/usr/") || !path.has_parent_path()) return {};
  // "/opt/rocm-6.2.0/bin/hipcc" and "/opt/rocm-5.0.0/hip/bin/hipcc" both need what is in
  // "/opt/rocm-6.2.0"; one elsewhere needs what is around its bin.
  auto root = path.parent_path().parent_path();
  for (auto x = root; x.has_relative_path(); x = x.parent_path())
    if (x.filename().string().starts_with("rocm")) root = x;
  if (!root.has_relative_path()) return {};
  return {{root.string(), root.string(), false}};
}

} // namespace kernelmill
