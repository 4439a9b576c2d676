#include "gpu/examine/examine.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu/candidate/lone_calls.hpp"
#include "gpu/profiler/ncu_command.hpp"
#include "gpu/referee/candidate_process.hpp"
#include "gpu/referee/clock.hpp"
#include "messages/base/descriptor.hpp"

namespace kernelmill {

namespace {

namespace fs = std::filesystem;

constexpr size_t most_report = 16 << 20;
constexpr size_t most_said = 4 << 10;
constexpr uint64_t most_written = uint64_t{256} << 20; // of one file: ncu's own report is one
constexpr uint64_t temporary_bytes = uint64_t{512} << 20;
constexpr uint64_t memory_limit = uint64_t{16} << 30; // ncu keeps what a kernel changes
constexpr int farewell_ms = 10'000;
constexpr int most_tries = 6; // of ncu: each finds at least one name that it does not have

constexpr const char* program_inside = "/kernelmill-candidate";
constexpr const char* toolkits = "/opt/nvidia"; // scripts in /usr/local/cuda/bin lead there

expected<descriptor> written_file() {
  descriptor file{::memfd_create("kernelmill-report", MFD_CLOEXEC)};
  if (!file)
    return infrastructure_error("no_memory_file", std::string{"failed to make a memory file: "} +
                                                      std::strerror(errno));
  return file;
}

std::string text_of(int file, size_t most, bool from_end) {
  struct stat about {};
  if (::fstat(file, &about) != 0 || about.st_size <= 0) return {};
  auto size = static_cast<size_t>(about.st_size);
  std::string result(std::min(size, most), '\0');
  auto n = ::pread(file, result.data(), result.size(),
                   static_cast<off_t>(from_end ? size - result.size() : 0));
  result.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return result;
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
}

expected<sandbox_spec> walls_of(const examine_options& options,
                                const std::vector<std::string>& tool) {
  sandbox_spec spec;
  spec.argv = tool;
  spec.argv.insert(spec.argv.end(), {program_inside, "lone"});
  spec.environment = {"PATH=/usr/local/cuda/bin:/usr/bin:/bin", "HOME=/tmp", "TMPDIR=/tmp",
                      "LC_ALL=C", "CUDA_CACHE_DISABLE=1"};
  spec.mounts = {{options.program, program_inside, false}};
  KM_TRY(mount_tool(spec, tool.front()));
  mount_driver(spec, options.driver);
  spec.devices = gpu_device_nodes(options.gpu_node);
  spec.limits.address_space = no_limit;
  spec.limits.file_size = most_written;
  spec.limits.open_files = 4096;
  spec.limits.processes = 1024;
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
  auto spec = walls_of(options, words);
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
  result.report = text_of(report->get(), most_report, false);
  result.said = text_of(said->get(), most_said, true);
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

expected<ncu_examination> examine_by_ncu(sandbox& walls, const examine_options& options,
                                         const std::string& ncu, metric_pack pack, unsigned calls,
                                         const lone_files& files) {
  ncu_examination result;
  auto metrics = ncu_metrics(pack);
  ncu_launches which;
  which.count = files.launches;
  which.skip = (calls - 1) * files.launches;
  which.log_file = report_path();
  auto left = options;
  double until = now_seconds() + options.limit_ms * 1e-3;
  // One limit for all tries: device code can print what makes for another.
  for (int i = 0; i < most_tries; ++i) {
    left.limit_ms = std::max(1, static_cast<int>((until - now_seconds()) * 1e3));
    auto run = examine(walls, left, ncu_command(ncu, metrics, which), files);
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
