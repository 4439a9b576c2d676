#include "gpu/toolchain/compiler_facts.hpp"

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include <unistd.h>

#include "gpu/toolchain/compiler_run.hpp"
#include "messages/digest.hpp"

namespace kernelmill {

namespace {

constexpr int ask_deadline_ms = 20'000;

expected<std::string> ask(sandbox& walls, const compiler_facts& facts, const std::string& compiler,
                          std::vector<std::string> argv, const char* remedy) {
  compiler_job job;
  job.argv = std::move(argv);
  job.path = facts.path;
  job.source_name = facts.source_name;
  job.mounts = facts.mounts;
  job.deadline_ms = ask_deadline_ms;
  auto outcome = run_compiler(walls, job);
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

constexpr const char* gxx_remedy = "apt install g++, or name the compiler in the configuration";
constexpr const char* nvcc_remedy =
    "install the CUDA toolkit, set CUDA_HOME, or name nvcc in the configuration";

// The NVRTC of a toolkit by its real path, because the sandbox does not show what links lead over;
// empty when it has none, and then the loader looks.
std::string find_nvrtc(const std::filesystem::path& toolkit) {
  for (const auto& folder : {toolkit / "lib64", toolkit / "targets" / "x86_64-linux" / "lib"}) {
    std::error_code problem;
    auto real = std::filesystem::canonical(folder / "libnvrtc.so", problem);
    if (!problem) return real.string();
  }
  return {};
}

// "Cuda compilation tools, release 13.0, V13.0.88" is the line that has it.
std::string nvcc_release(const std::string& text) {
  auto at = text.find(", V");
  if (at == text.npos) return "of unknown version";
  auto end = text.find_first_not_of("0123456789.", at + 3);
  return text.substr(at + 3, end == text.npos ? end : end - at - 3);
}

} // namespace

expected<compiler_facts> ask_gxx(sandbox& walls, const std::string& compiler,
                                 const std::vector<std::string>& extra_flags) {
  compiler_facts result;
  result.source_name = "kernel.cpp";
  auto version = ask(walls, result, compiler, {compiler, "-dumpfullversion"}, gxx_remedy);
  if (!version) return tl::unexpected{version.error()};
  while (!version->empty() && version->back() == '\n') version->pop_back();
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
  if (!resolved) return tl::unexpected{resolved.error()};
  result.digest = sha256_hex(*version + "\n" + without_temporaries(*resolved));
  return result;
}

expected<compiler_facts> ask_nvcc(sandbox& walls, const std::string& compiler,
                                  const std::string& architecture,
                                  const std::vector<std::string>& extra_flags) {
  compiler_facts result;
  result.source_name = "kernel.cu";
  auto tools = std::filesystem::path{compiler}.parent_path().string();
  result.path = tools + ":/usr/bin";
  auto version = ask(walls, result, compiler, {compiler, "--version"}, nvcc_remedy);
  if (!version) return tl::unexpected{version.error()};
  auto host = ask(walls, result, "g++", {"/usr/bin/g++", "-dumpfullversion"}, gxx_remedy);
  if (!host) return tl::unexpected{host.error()};
  result.compile = {
      compiler,     "-std=c++20",
      "-O3",        "-arch=" + architecture,
      "-Xptxas=-v", "-Xcompiler=-fPIC,-fopenmp,-fdiagnostics-color=never,-fmax-errors=20"};
  // The run-time library is inside: nothing that a candidate loads can stand between it and CUDA.
  result.link = {"--shared", "-cudart=static", "-Xlinker=-z,defs"};
  result.identity = "nvcc " + nvcc_release(*version) + " -std=c++20 -O3 -arch=" + architecture;
  add_flags(result, extra_flags);
  std::string flags;
  for (auto* list : {&result.compile, &result.link})
    for (auto& x : *list) flags += x + '\n';
  result.digest = sha256_hex(*version + "\n" + *host + "\n" + flags);
  return result;
}

expected<compiler_facts> ask_nvrtc(sandbox& walls, const std::string& program,
                                   const std::string& architecture) {
  constexpr const char* inside = "/kernelmill-nvrtc";
  compiler_facts result;
  result.source_name = "kernel.cu";
  result.whole = true;
  result.mounts = {{program, inside, false}};
  auto toolkit = std::filesystem::path{find_nvcc()}.parent_path().parent_path();
  auto library = "--nvrtc=" + find_nvrtc(toolkit);
  auto version = ask(walls, result, "NVRTC", {inside, library, "--version"},
                     "install the CUDA toolkit (libnvrtc), or use the contract native");
  if (!version) return tl::unexpected{version.error()};
  while (!version->empty() && version->back() == '\n') version->pop_back();
  result.compile = {inside, library, "kernel.cu", architecture, "--ptxas-options=-v"};
  // The headers of CUDA that device code may want: fp16, mma, and cooperative groups, which need
  // those of the C++ library.
  for (const auto& folder : {toolkit / "include", toolkit / "include" / "cccl"}) {
    std::error_code problem;
    if (std::filesystem::is_directory(folder, problem))
      result.compile.push_back("--include-path=" + folder.string());
  }
  result.identity = "NVRTC " + *version + " -std=c++20 -arch=" + architecture;
  std::string flags;
  for (auto& x : result.compile) flags += x + '\n';
  result.digest = sha256_hex("nvrtc " + *version + "\n" + flags);
  return result;
}

std::vector<std::string> nvcc_command(const std::string& compiler,
                                      const std::string& architecture) {
  return {compiler,   "-std=c++20",    "-O3", "-arch=" + architecture, "-Xcompiler=-fPIC,-fopenmp",
          "--shared", "-cudart=static"};
}

std::string find_nvcc() {
  namespace fs = std::filesystem;
  std::vector<std::string> places;
  if (auto* home = std::getenv("CUDA_HOME")) places.push_back(std::string{home} + "/bin");
  places.emplace_back("/usr/local/cuda/bin");
  std::istringstream path{std::getenv("PATH") != nullptr ? std::getenv("PATH") : ""};
  for (std::string one; std::getline(path, one, ':');) places.push_back(one);
  for (auto& place : places) {
    std::error_code code;
    auto real = fs::canonical(fs::path{place} / "nvcc", code);
    if (!code && ::access(real.c_str(), X_OK) == 0) return real.string();
  }
  return {};
}

} // namespace kernelmill
