#include "gpu/examine/host_checks.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <sys/mman.h>
#include <unistd.h>

#include "gpu/candidate/checked_calls.hpp"
#include "gpu/candidate/lone_calls.hpp"
#include "gpu/process/core_use.hpp"
#include "gpu/profiler/host_sanitizer_report.hpp"
#include "gpu/referee/candidate_walls.hpp"
#include "gpu/referee/clock.hpp"
#include "gpu/toolchain/compiler_run.hpp"
#include "messages/base/descriptor.hpp"
#include "messages/base/files.hpp"

namespace kernelmill {

namespace {

constexpr size_t most_host_report = 4 << 20; // both of what is read and of the file
constexpr size_t most_host_said = 4 << 10;
constexpr int look_ms = 20;
constexpr int host_farewell_ms = 10'000;

// AddressSanitizer reserves 16 TiB for its shadow and 4 TiB for its heap: 20 TiB are too few on
// x86-64, 24 TiB do. ThreadSanitizer wants no limit at all, and starts itself again under one. So
// what bounds memory is not the address space: the cgroup does where there is one, and we look.
constexpr uint64_t address_sanitizer_space = uint64_t{24} << 40;
constexpr uint64_t most_memory = uint64_t{3} << 30;
constexpr uint64_t cgroup_memory = uint64_t{4} << 30;

std::vector<std::string> settings_of(host_check check) {
  if (check == host_check::threads)
    // libgomp and the C++ library were built without: what they do unseen is no race of the
    // candidate's. The longest history, so that the other side of a race is still known.
    return {"TSAN_OPTIONS=halt_on_error=0:exitcode=0:ignore_noninstrumented_modules=1:"
            "history_size=7:detect_deadlocks=0:report_thread_leaks=0:report_signal_unsafe=0"};
  // Leaks are looked for by stopping the process, which the walls forbid. A red zone of 512 bytes
  // is longer than most strides by which an index goes wrong.
  return {"ASAN_OPTIONS=halt_on_error=0:detect_leaks=0:redzone=512:"
          "detect_stack_use_after_return=1:strict_string_checks=1",
          "UBSAN_OPTIONS=halt_on_error=0:print_stacktrace=1"};
}

sandbox_spec host_walls(const examine_options& options, host_check check,
                        const std::string& runtime) {
  candidate_options as;
  as.program = options.program;
  as.cpus = options.cpus;
  as.threads = 4; // a race needs two, whatever the machine
  auto spec = candidate_walls(as, -1, -1);
  spec.argv.emplace_back("checked");
  auto folder = std::filesystem::path{runtime}.parent_path().string();
  spec.environment.push_back("LD_PRELOAD=" + runtime);
  spec.environment.push_back("LD_LIBRARY_PATH=" + folder);
  for (auto& x : settings_of(check)) spec.environment.push_back(std::move(x));
  // Candidates see the libraries of /usr; a compiler elsewhere has its own.
  if (!folder.starts_with("/usr/lib") && !folder.starts_with("/usr/local/lib"))
    spec.mounts.push_back({folder, folder, false});
  spec.limits.address_space = check == host_check::memory ? address_sanitizer_space : no_limit;
  spec.limits.file_size = most_host_report;
  spec.limits.nice = behind_slots; // others may be timed on these cores
  spec.memory_bytes = cgroup_memory;
  spec.process_count = 128;
  return spec;
}

uint64_t resident_bytes(int pid) {
  unsigned long pages = 0;
  auto path = "/proc/" + std::to_string(pid) + "/statm";
  if (auto* file = std::fopen(path.c_str(), "re"); file != nullptr) {
    if (std::fscanf(file, "%*u %lu", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

bool takes_too_much(int pid) {
  uint64_t all = 0;
  for (int x : descendants_of(pid)) all += resident_bytes(x);
  return all > most_memory;
}

// Waits until it has ended; what takes too long or too much memory is killed.
expected<exit_status> wait_and_look(sandboxed_child& started, double until, examination& result) {
  for (;;) {
    auto status = started.wait(look_ms);
    if (status || status.error().category != "timeout") return status;
    result.timed_out = now_seconds() > until;
    if (!result.timed_out && !takes_too_much(started.pid())) continue;
    started.kill();
    return started.wait(host_farewell_ms);
  }
}

expected<descriptor> text_file() {
  descriptor file{::memfd_create("kernelmill-checked", MFD_CLOEXEC)};
  if (!file)
    return infrastructure_error("no_memory_file", std::string{"failed to make a memory file: "} +
                                                      std::strerror(errno));
  return file;
}

} // namespace

expected<sanitizer_examination> examine_on_host(sandbox& walls, const examine_options& options,
                                                const host_compiler& by, const task& what,
                                                const std::string& source, host_check check) {
  auto compiler = by;
  compiler.cpus = options.cpus; // those of a slot; others may be timed on the rest
  double until = now_seconds() + options.limit_ms * 1e-3;
  auto runtime = sanitizer_runtime(walls, compiler, check);
  KM_TRY(runtime);
  double left = std::max(1e-3, until - now_seconds());
  auto library = build_checked(walls, compiler, check, source, static_cast<int>(left * 1e3));
  KM_TRY(library);
  auto files = lay_out_library(what, *library, shown_cases(what), 1, draw_seed());
  KM_TRY(files);
  auto report = text_file();
  KM_TRY(report);
  auto said = text_file();
  KM_TRY(said);
  auto spec = host_walls(options, check, *runtime);
  // The sanitizers write to 2, wherever that leads.
  spec.descriptors = {{said->get(), 1},
                      {report->get(), 2},
                      {files->program.descriptor(), lone_program},
                      {files->calls.descriptor(), lone_calls}};
  auto started = walls.start(spec);
  KM_TRY(started);
  sanitizer_examination result;
  double began = now_seconds();
  auto status = wait_and_look(*started, until, result.run);
  KM_TRY(status);
  result.run.seconds = now_seconds() - began;
  result.run.status = *status;
  result.run.report = read_first(report->get(), most_host_report);
  result.run.said = read_last(said->get(), most_host_said);
  result.report = read_host_sanitizer_report(result.run.report, checked_calls_end);
  return result;
}

} // namespace kernelmill
