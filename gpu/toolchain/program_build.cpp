#include "gpu/toolchain/program_build.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "gpu/toolchain/build_attribution.hpp"
#include "gpu/toolchain/compiler_facts.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/text.hpp"

namespace kernelmill {

namespace {

namespace fs = std::filesystem;

constexpr const char* files_folder = "/build/files";
constexpr int not_prepared = 98; // exit code of what stands before the task's command

// The task's command is the first parameter. An archive in one order and without times, so that the
// same files have the same digest.
constexpr const char* build_script =
    "mkdir /tmp/program && cp -r /build/files/. /tmp/program && chmod -R u+rwX /tmp/program && "
    "cd /tmp/program || exit 98\n"
    "/bin/sh -c \"$1\" </dev/null || exit $?\n"
    "exec tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf /proc/self/fd/5 .\n";

// Numbers of a version: "12.8" is {12, 8}.
std::pair<int, int> version_of(std::string_view x) {
  int major = 0, minor = 0;
  auto [end, problem] = std::from_chars(x.data(), x.data() + x.size(), major);
  if (problem == std::errc{} && end != x.data() + x.size() && *end == '.')
    std::from_chars(end + 1, x.data() + x.size(), minor);
  return {major, minor};
}

// "sm_90" and "sm_90a" are 9.0, "sm_120" is 12.0.
std::pair<int, int> capability_of(std::string_view architecture) {
  auto at = architecture.find('_');
  int number = 0;
  if (at != architecture.npos)
    std::from_chars(architecture.data() + at + 1, architecture.data() + architecture.size(),
                    number);
  return {number / 10, number % 10};
}

// What nvcc's identity says: "nvcc 13.0 -std=c++20 ..."
std::string release_in(const std::string& identity) {
  auto words = split(identity, ' ');
  return words.size() > 1 ? words[1] : std::string{};
}

std::string first_that_is_there(const std::vector<std::string>& paths) {
  std::error_code ignored;
  for (const auto& x : paths)
    if (fs::exists(x, ignored)) return x;
  return {};
}

std::vector<std::string> own_files_of(const program_task& x) {
  return writable_files(x);
}

std::string shown_text(const compiler_outcome& x) {
  return clean_log(x.text, most_log);
}

} // namespace

expected<program_tools> ask_program_tools(sandbox& walls, const program_tool_choice& x) {
  program_tools result;
  bool cuda = x.backend == "cuda";
  auto host = ask_gxx(walls, cuda || x.compiler.empty() ? "/usr/bin/g++" : x.compiler, {});
  KM_TRY(host);
  result.path = host->path + ":/usr/bin:/bin";
  result.mounts = host->mounts;
  result.identity = host->identity.substr(0, host->identity.find(" -"));
  result.digest = host->digest;
  if (!cuda) return result;
  auto nvcc = x.compiler.empty() ? find_nvcc() : x.compiler;
  auto device =
      ask_nvcc(walls, nvcc.empty() ? "/usr/local/cuda/bin/nvcc" : nvcc, x.architecture, {});
  KM_TRY(device);
  auto root = fs::path{nvcc}.parent_path().parent_path().string();
  result.path = device->path + ":/bin";
  result.mounts = device->mounts;
  if (device->mounts.empty()) result.mounts = compiler_mounts(nvcc);
  result.architecture = x.architecture;
  result.toolkit = release_in(device->identity);
  result.library_path = root + "/lib64:" + root + "/lib:" + root + "/targets/x86_64-linux/lib";
  result.cupti = first_that_is_there({root + "/extras/CUPTI/lib64/libcupti.so",
                                      root + "/lib64/libcupti.so", root + "/lib/libcupti.so",
                                      root + "/targets/x86_64-linux/lib/libcupti.so"});
  result.identity = "nvcc " + result.toolkit + " " + x.architecture + ", " + result.identity;
  result.digest = sha256_hex(host->digest + device->digest);
  return result;
}

expected<void> check_needs(const program_needs& x, const program_tools& tools) {
  auto unmet = [](const std::string& needs, const std::string& has) {
    return configuration_error("needs_unmet",
                               "the task needs " + needs + ", and this machine has " + has,
                               "judge it on a machine that has it");
  };
  if (tools.architecture.empty()) return {};
  if (!x.toolkit.empty() && version_of(tools.toolkit) < version_of(x.toolkit))
    return unmet("CUDA " + x.toolkit + " or later", "CUDA " + tools.toolkit);
  if (!x.compute_capability.empty() &&
      capability_of(tools.architecture) < version_of(x.compute_capability))
    return unmet("a GPU of compute capability " + x.compute_capability + " or later",
                 "one of " + tools.architecture);
  return {};
}

std::string command_for(const std::string& build, const std::string& architecture) {
  if (architecture.empty()) return build;
  std::string result = build;
  for (const std::string flag :
       {"-arch=native", "-arch native", "--gpu-architecture=native", "--gpu-architecture native"})
    for (auto at = result.find(flag); at != result.npos; at = result.find(flag, at + 1))
      result.replace(at + flag.size() - 6, 6, architecture);
  return result;
}

expected<compiler_outcome> run_program_build(sandbox& walls, const program_tools& tools,
                                             const program_task& x,
                                             const std::vector<program_file>& answer,
                                             int deadline_ms, uint64_t memory_bytes) {
  compiler_job job;
  std::vector<descriptor> kept;
  std::vector<std::string> written;
  auto add = [&](const program_file& file) -> expected<void> {
    auto text = memory_file(file.text);
    KM_TRY(text);
    job.files.push_back({text->get(), std::string{files_folder} + "/" + file.path});
    written.push_back(file.path);
    kept.push_back(std::move(*text));
    return {};
  };
  // An answer's file stands in place of the one that the task has.
  for (const auto& file : answer) KM_TRY(add(file));
  for (const auto* list : {&x.context, &x.tests})
    for (const auto& file : *list)
      if (std::find(written.begin(), written.end(), file.path) == written.end()) KM_TRY(add(file));
  auto build = command_for(x.build, tools.architecture);
  job.argv = {"/bin/sh", "-c", build_script, "sh", trimmed(build).empty() ? ":" : build};
  job.path = tools.path;
  job.environment = {"HOME=/tmp"};
  job.mounts = tools.mounts;
  job.source_name = "task"; // run_compiler wants one file; this one says which task it is
  job.source = x.suite_id + "\n";
  job.deadline_ms = deadline_ms;
  job.memory_bytes = memory_bytes;
  job.address_space = 4 * memory_bytes; // cicc and the linker reserve much more than they use
  job.cpu_seconds = static_cast<uint64_t>(std::max(2, deadline_ms / 500));
  job.product_bytes = most_program_bytes;
  return run_compiler(walls, job);
}

namespace {

expected<void> build_baseline(sandbox& walls, const program_tools& tools, const program_task& x,
                              int deadline_ms, uint64_t memory_bytes) {
  auto control = run_program_build(walls, tools, x, x.baseline, deadline_ms, memory_bytes);
  KM_TRY(control);
  if (!has_failed(*control)) return {};
  const std::string what = "the task's own baseline";
  if (control->killed || control->timed_out || control->status.code == not_prepared ||
      speaks_of_machine(control->text))
    return tl::unexpected<error>{fault_of_control(*control, what)};
  auto found = parse_diagnostics(shown_text(*control));
  auto said = found.empty() ? shown_text(*control).substr(0, 400)
                            : found.front().file + ": " + found.front().message;
  return configuration_error("bad_task", "failed to build " + what + ": " + said,
                             "`kernelmill task check` builds and tests it");
}

} // namespace

expected<compiler_outcome> build_program(sandbox& walls, const program_tools& tools,
                                         const program_task& x,
                                         const std::vector<program_file>& answer, int deadline_ms,
                                         uint64_t memory_bytes) {
  expected<compiler_outcome> latest = compiler_outcome{};
  auto own = own_files_of(x);
  KM_TRY(attribute({[&] {
                      latest =
                          run_program_build(walls, tools, x, answer, deadline_ms, memory_bytes);
                      return evidence_of(latest, own);
                    },
                    [&] { return build_baseline(walls, tools, x, deadline_ms, memory_bytes); }}));
  return latest;
}

build_findings findings_of(const compiler_outcome& x, const program_tools& tools,
                           const std::string& build, int deadline_ms) {
  build_findings result;
  result.seconds = x.seconds;
  auto text = x.text;
  if (command_for(build, tools.architecture) != build)
    text = "-arch=native stands for " + tools.architecture + " here\n" + text;
  result.log = clean_log(text, most_log);
  result.diagnostics = parse_diagnostics(result.log);
  if (!has_failed(x)) return result;
  result.fault = fault_of_compiler(x, result.diagnostics, deadline_ms);
  result.repeatable = x.repeatable();
  return result;
}

} // namespace kernelmill
