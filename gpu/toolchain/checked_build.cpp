#include "gpu/toolchain/checked_build.hpp"

#include <algorithm>
#include <filesystem>

#include "gpu/toolchain/build_attribution.hpp"
#include "gpu/toolchain/compiler_run.hpp"
#include "gpu/toolchain/control_source.hpp"
#include "gpu/toolchain/diagnostics.hpp"
#include "messages/base/files.hpp"

namespace kernelmill {

namespace {

constexpr int runtime_ask_ms = 20'000;
constexpr size_t most_reason = 400;

constexpr const char* openmp_source = "/kernelmill-openmp/watched_openmp.cpp";
constexpr const char* openmp_folder = "/kernelmill-openmp";

std::vector<std::string> checked_flags(host_check check) {
  // The dialect and the instructions of candidates, so that the same code is looked at; lines and
  // frames, and accesses that stay in their loop, so that a report says where. What -O3 makes of
  // undefined code hides what it was.
  std::vector<std::string> result = {"-std=c++20",
                                     "-O1",
                                     "-fno-tree-loop-im",
                                     "-g",
                                     "-fno-omit-frame-pointer",
                                     "-march=native",
                                     "-fopenmp",
                                     "-fPIC",
                                     "-fdiagnostics-color=never",
                                     "-fmax-errors=20"};
  // To go on behind a finding: one more may be on the way.
  if (check == host_check::memory)
    result.insert(result.end(),
                  {"-fsanitize=address,undefined", "-fsanitize-recover=address,undefined"});
  else
    result.emplace_back("-fsanitize=thread");
  return result;
}

// The lines that say what is wrong, as one.
std::string why_not_built(const std::string& text) {
  for (const auto& x : parse_diagnostics(text))
    if (x.severity != "note" && x.severity != "warning") return x.message.substr(0, most_reason);
  for (const char* words : {"undefined reference to", "multiple definition of"})
    if (auto at = text.find(words); at != text.npos)
      return text.substr(at, std::min(most_reason, text.find('\n', at) - at));
  return text.substr(0, std::min(most_reason, text.find('\n')));
}

} // namespace

std::string_view to_string(host_check x) {
  return x == host_check::memory ? "memcheck" : "racecheck";
}

expected<std::string> sanitizer_runtime(sandbox& walls, const host_compiler& by, host_check check) {
  const std::string name = check == host_check::memory ? "libasan.so" : "libtsan.so";
  auto find = [&](const std::string& library) -> expected<std::string> {
    compiler_job job;
    job.argv = {by.path, "-print-file-name=" + library};
    job.source_name = "kernel.cpp";
    job.deadline_ms = runtime_ask_ms;
    job.memory_bytes = by.memory_bytes;
    job.cpus = by.cpus;
    auto outcome = run_compiler(walls, job);
    KM_TRY(outcome);
    // One that it does not have comes back as it was asked for.
    std::error_code problem;
    auto path = outcome->text.substr(0, outcome->text.find('\n'));
    auto real = path.starts_with('/') ? std::filesystem::canonical(path, problem).string() : "";
    if (!real.empty() && !problem) return real;
    return infrastructure_error("tool_missing", "failed to find " + library + " of " + by.path,
                                "install the sanitizers of this g++ (libgcc-12-dev of Debian 12)");
  };
  if (check == host_check::memory) KM_TRY(find("libubsan.so"));
  return find(name);
}

expected<std::string> build_checked(sandbox& walls, const host_compiler& by, host_check check,
                                    const std::string& source, int deadline_ms) {
  compiler_job job;
  job.argv = checked_flags(check);
  job.argv.insert(job.argv.begin(), by.path);
  job.argv.insert(job.argv.end(), {"kernel.cpp", "-o", product_path, "-shared", "-Wl,-z,defs"});
  descriptor openmp;
  descriptor no_archive;
  if (check == host_check::threads) {
    auto text = memory_file(watched_openmp_text);
    KM_TRY(text);
    auto empty = memory_file("!<arch>\n");
    KM_TRY(empty);
    openmp = std::move(*text);
    no_archive = std::move(*empty);
    // An empty libgomp comes first: what is not defined in our source stays undefined.
    job.files = {{openmp.get(), openmp_source},
                 {no_archive.get(), std::string{openmp_folder} + "/libgomp.a"}};
    job.argv.insert(job.argv.end(), {openmp_source, std::string{"-L"} + openmp_folder});
  }
  job.source_name = "kernel.cpp";
  job.source = source;
  job.deadline_ms = deadline_ms;
  job.memory_bytes = by.memory_bytes;
  job.cpus = by.cpus;
  auto control = job;
  control.source = control_source(control_kind::host, source);
  expected<compiler_outcome> outcome = compiler_outcome{};
  KM_TRY(attribute({[&] {
                      outcome = run_compiler(walls, job);
                      return evidence_of(outcome, {job.source_name});
                    },
                    [&] {
                      return result_of_control(run_compiler(walls, control),
                                               "a C++ source of ours with sanitizers");
                    }}));
  KM_TRY(outcome);
  if (outcome->timed_out)
    return candidate_error("compile_timeout", "its build with sanitizers did not end in time");
  if (outcome->status.code != 0)
    return candidate_error("compile_error",
                           "it does not compile with sanitizers: " + why_not_built(outcome->text));
  auto bytes = read_whole(outcome->product.get());
  if (!bytes || bytes->empty())
    return infrastructure_error("io_error", "failed to read what was built with sanitizers");
  return std::move(*bytes);
}

} // namespace kernelmill
