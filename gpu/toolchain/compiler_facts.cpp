#include "gpu/toolchain/compiler_facts.hpp"

#include <filesystem>
#include <sstream>

#include "gpu/toolchain/compiler_run.hpp"
#include "messages/digest.hpp"

namespace kernelmill {

namespace {

constexpr int ask_deadline_ms = 20'000;

expected<std::string> ask(sandbox& walls, const std::string& compiler,
                          std::vector<std::string> argv) {
  compiler_job job;
  job.argv = std::move(argv);
  job.source_name = "kernel.cpp";
  job.deadline_ms = ask_deadline_ms;
  auto outcome = run_compiler(walls, job);
  if (outcome && outcome->status.code == 0) return outcome->text;
  if (!outcome && outcome.error().category != "cannot_execute")
    return tl::unexpected{outcome.error()};
  auto cause =
      outcome ? outcome->text.substr(0, outcome->text.find('\n')) : outcome.error().message;
  return infrastructure_error("toolchain_missing", "failed to run " + compiler + ": " + cause,
                              "apt install g++, or name the compiler in the configuration");
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

} // namespace

expected<compiler_facts> ask_compiler(sandbox& walls, const std::string& compiler,
                                      const std::vector<std::string>& extra_flags) {
  auto version = ask(walls, compiler, {compiler, "-dumpfullversion"});
  if (!version) return tl::unexpected{version.error()};
  while (!version->empty() && version->back() == '\n') version->pop_back();
  compiler_facts result;
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
  for (auto& x : extra_flags) {
    (for_linker(x) ? result.link : result.compile).push_back(x);
    result.identity += " " + x;
  }
  auto dry = result.compile;
  dry.insert(dry.end(), {"-###", "-x", "c++", "kernel.cpp", "-o", product_path});
  dry.insert(dry.end(), result.link.begin(), result.link.end());
  auto resolved = ask(walls, compiler, dry);
  if (!resolved) return tl::unexpected{resolved.error()};
  result.digest = sha256_hex(*version + "\n" + without_temporaries(*resolved));
  return result;
}

} // namespace kernelmill
