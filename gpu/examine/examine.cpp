#include "gpu/examine/examine.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <regex>

#include <sys/mman.h>
#include <unistd.h>

#include "gpu/candidate/lone_calls.hpp"
#include "gpu/profiler/ncu_command.hpp"
#include "gpu/referee/candidate_process.hpp"
#include "gpu/referee/clock.hpp"
#include "gpu/toolchain/compiler_run.hpp"
#include "messages/base/descriptor.hpp"
#include "messages/base/files.hpp"

namespace kernelmill {

namespace {

namespace fs = std::filesystem;

constexpr size_t most_report = 16 << 20;
constexpr size_t most_said = 4 << 10;
constexpr uint64_t most_written = uint64_t{256} << 20; // of one file: ncu's own report is one
constexpr uint64_t temporary_bytes = uint64_t{512} << 20;
constexpr uint64_t memory_limit = uint64_t{16} << 30; // ncu keeps what a kernel changes
constexpr int farewell_ms = 10'000;
constexpr unsigned most_launches = 64; // of a library or a module: each is run many times over
constexpr int most_tries = 6;          // of ncu: each finds at least one name that it does not have

constexpr const char* program_inside = "/kernelmill-candidate";
constexpr const char* toolkits = "/opt/nvidia"; // scripts in /usr/local/cuda/bin lead there

expected<descriptor> written_file() {
  descriptor file{::memfd_create("kernelmill-report", MFD_CLOEXEC)};
  if (!file)
    return infrastructure_error("no_memory_file", std::string{"failed to make a memory file: "} +
                                                      std::strerror(errno));
  return file;
}

bool lies_below(const std::string& path, const std::string& folder) {
  return path.starts_with(folder + "/");
}

// Whether more than a toolkit lies there: a home, the root.
bool holds_more_than_tools(const fs::path& folder) {
  if (!folder.has_relative_path() || !folder.parent_path().has_relative_path()) return true;
  const char* home = std::getenv("HOME");
  return home != nullptr && lies_below(std::string{home} + "/", folder.string());
}

// What of a tool is not in /usr, which a sandbox sees anyway.
expected<void> mount_tool(sandbox_spec& spec, const std::string& tool) {
  std::error_code none;
  if (fs::is_directory(toolkits, none)) spec.mounts.push_back({toolkits, toolkits, false});
  if (lies_below(tool, "/usr") || lies_below(tool, toolkits)) return {};
  auto folder = fs::path{tool}.parent_path();
  if (holds_more_than_tools(folder))
    return infrastructure_error(
        "tool_missing", "failed to run " + tool + ": a sandbox would see all of " + folder.string(),
        "install the tool below /usr or /opt/nvidia");
  spec.mounts.push_back({folder, folder, false});
  return {};
}

void mount_driver(sandbox_spec& spec, const std::string& driver) {
  if (driver.empty()) return;
  auto folder = fs::path{driver}.parent_path().string();
  if (folder.empty() || lies_below(driver, "/usr/lib") || lies_below(driver, "/lib")) return;
  spec.mounts.push_back({folder, "/driver", false});
  spec.environment.emplace_back("LD_LIBRARY_PATH=/driver");
  spec.environment.emplace_back("TRITON_LIBCUDA_PATH=/driver");
}

expected<sandbox_spec> walls_of(const examine_options& options,
                                const std::vector<std::string>& tool, const lone_files& files) {
  sandbox_spec spec;
  spec.argv = tool;
  if (files.argv.empty())
    spec.argv.insert(spec.argv.end(), {program_inside, "lone"});
  else
    spec.argv.insert(spec.argv.end(), files.argv.begin(), files.argv.end());
  spec.environment = {"PATH=/usr/local/cuda/bin:/usr/bin:/bin", "HOME=/tmp", "TMPDIR=/tmp",
                      "LC_ALL=C", "CUDA_CACHE_DISABLE=1"};
  spec.environment.insert(spec.environment.end(), files.environment.begin(),
                          files.environment.end());
  spec.mounts = {{options.program, program_inside, false}};
  spec.mounts.insert(spec.mounts.end(), files.mounts.begin(), files.mounts.end());
  KM_TRY(mount_tool(spec, tool.front()));
  mount_driver(spec, options.driver);
  spec.devices = gpu_device_nodes(options.gpu_node);
  spec.limits.address_space = no_limit;
  spec.limits.file_size = most_written;
  spec.limits.open_files = 4096;
  spec.limits.processes = 1024;
  spec.limits.nice = behind_slots; // others may be timed on these cores
  spec.memory_bytes = memory_limit;
  spec.process_count = 1024;
  spec.tmpfs_bytes = temporary_bytes;
  spec.may_use_loopback = true;
  spec.cpus = options.cpus;
  return spec;
}

} // namespace

std::string report_path() {
  return "/proc/self/fd/" + std::to_string(lone_report);
}

expected<examination> examine(sandbox& walls, const examine_options& options,
                              const std::vector<std::string>& tool, const lone_files& files) {
  std::error_code problem;
  auto words = tool;
  // By its real path: the sandbox does not show what links lead over.
  words.front() = fs::canonical(tool.front(), problem).string();
  if (problem || ::access(words.front().c_str(), X_OK) != 0)
    return infrastructure_error("tool_missing",
                                "failed to run " + tool.front() + ": " +
                                    std::strerror(problem ? problem.value() : errno));
  auto report = written_file();
  KM_TRY(report);
  auto said = written_file();
  KM_TRY(said);
  auto spec = walls_of(options, words, files);
  KM_TRY(spec);
  spec->descriptors = {{said->get(), 1},
                       {said->get(), 2},
                       {files.program.descriptor(), lone_program},
                       {files.calls.descriptor(), lone_calls},
                       {report->get(), lone_report}};
  auto started = walls.start(*spec);
  KM_TRY(started);
  examination result;
  double began = now_seconds();
  auto status = started->wait(options.limit_ms);
  if (!status && status.error().category == "timeout") {
    result.timed_out = true;
    started->kill();
    status = started->wait(farewell_ms);
  }
  result.seconds = now_seconds() - began;
  KM_TRY(status);
  result.status = *status;
  result.report = read_first(report->get(), most_report);
  result.said = read_last(said->get(), most_said);
  return result;
}

// -- ncu ------------------------------------------------------------------------------------------

std::vector<std::string> take_refused(std::string_view words, std::vector<std::string>& metrics) {
  std::vector<std::string> refused;
  auto is_named = [&](const std::string& name) {
    for (auto at = words.find(name); at != words.npos; at = words.find(name, at + 1)) {
      auto next = at + name.size() < words.size() ? words[at + name.size()] : ' ';
      bool goes_on = std::isalnum(static_cast<unsigned char>(next)) != 0 || next == '_';
      if (!goes_on) return true;
    }
    return false;
  };
  std::erase_if(metrics, [&](const std::string& name) {
    if (!is_named(name)) return false;
    refused.push_back(name);
    return true;
  });
  return refused;
}

namespace {

// Of device code the launches of a call are known. ncu counts those alone that have the wanted
// name, so that they are all profiled, and chosen afterwards.
ncu_launches launches_of(const ncu_wish& wish, unsigned calls, const lone_files& files) {
  ncu_launches result;
  result.log_file = report_path();
  if (files.marks_last) {
    result.marked = true;
    result.count = most_launches;
    result.kernel = wish.kernel;
  } else {
    result.count = files.launches;
    result.skip = (calls - 1) * files.launches;
  }
  return result;
}

void keep_named(const std::string& wanted, ncu_report& report) {
  if (wanted.empty() || report.kernels.empty()) return;
  const std::regex name{wanted};
  std::erase_if(report.kernels,
                [&](const ncu_kernel& x) { return !std::regex_search(x.metrics.kernel, name); });
  if (report.kernels.empty()) report.problem = ncu_problem::no_kernels;
}

expected<void> check_name(const std::string& wanted) {
  try {
    const std::regex name{wanted};
  } catch (const std::regex_error&) {
    return configuration_error("usage", "failed to read a regular expression: " + wanted,
                               "name kernels as in: --kernel 'row_sum|total'");
  }
  return {};
}

} // namespace

expected<ncu_examination> examine_by_ncu(sandbox& walls, const examine_options& options,
                                         const ncu_wish& wish, unsigned calls,
                                         const lone_files& files) {
  KM_TRY(check_name(wish.kernel));
  ncu_examination result;
  auto metrics = ncu_metrics(wish.pack);
  auto which = launches_of(wish, calls, files);
  auto left = options;
  double until = now_seconds() + options.limit_ms * 1e-3;
  // One limit for all tries: device code can print what makes for another.
  for (int i = 0; i < most_tries; ++i) {
    left.limit_ms = std::max(1, static_cast<int>((until - now_seconds()) * 1e3));
    auto run = examine(walls, left, ncu_command(wish.ncu, metrics, which), files);
    KM_TRY(run);
    result.run = std::move(*run);
    result.report = read_ncu_report(result.run.report);
    // What keeps it from beginning it may say beside the report. Device code can print such a line
    // too: what it gains is a profile that is missing.
    if (result.report.problem == ncu_problem::no_report)
      if (auto beside = read_ncu_report(result.run.said); beside.problem != ncu_problem::none) {
        result.report.problem = beside.problem;
        result.report.words = beside.words;
      }
    if (result.report.problem != ncu_problem::unknown_metric || result.run.timed_out) break;
    auto refused = take_refused(result.run.report + result.run.said, metrics);
    if (refused.empty() || metrics.empty()) break;
    result.refused.insert(result.refused.end(), refused.begin(), refused.end());
  }
  keep_named(wish.kernel, result.report);
  return result;
}

// -- compute-sanitizer ----------------------------------------------------------------------------

expected<sanitizer_examination> examine_by_sanitizer(sandbox& walls, const examine_options& options,
                                                     const std::string& sanitizer,
                                                     const std::string& check,
                                                     const lone_files& files) {
  std::vector<std::string> words{sanitizer, "--tool", check, "--log-file", report_path()};
  // What we ask the driver of a kernel's parameters ends with a call that fails.
  // Buffers lie side by side: past the end of one another would begin.
  if (check == "memcheck")
    words.insert(words.end(), {"--report-api-errors", "no", "--padding", "512"});
  auto run = examine(walls, options, words, files);
  KM_TRY(run);
  sanitizer_examination result;
  result.run = std::move(*run);
  result.report = read_sanitizer_report(result.run.report);
  return result;
}

} // namespace kernelmill
