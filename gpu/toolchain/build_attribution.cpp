#include "gpu/toolchain/build_attribution.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>

#include "gpu/toolchain/build_findings.hpp"
#include "gpu/toolchain/control_source.hpp"
#include "gpu/toolchain/diagnostics.hpp"
#include "messages/base/text.hpp"

namespace kernelmill {

namespace {

constexpr int most_repetitions = 5;
constexpr double enough_seconds = 60; // of repetitions; one there is in any case

// strerror's texts, and what drivers, front ends and linkers make of them.
constexpr std::array machine_words = std::to_array<std::string_view>({
    "No space left on device",
    "Disk quota exceeded",
    "File size limit exceeded",
    "Cannot allocate memory",
    "virtual memory exhausted",
    "memory exhausted",
    "out of memory",
    "bad_alloc",
    "can't start new thread",
    "Resource temporarily unavailable",
    "Device or resource busy",
    "Text file busy",
    "Too many open files",
    "Input/output error",
    "Stale file handle",
    "Structure needs cleaning",
    "Transport endpoint is not connected",
    "Read-only file system",
    "Permission denied",
    "Operation not permitted",
    "Not a directory",
    "Exec format error",
    "Bus error",
    "internal compiler error",
    "Internal compiler error",
    "internal error",
    "Internal error",
    "submit a bug report",
    "submit a full bug report",
    "died due to signal",
    "terminated with signal",
    "signal terminated program",
    "unable to execute",
    "Killed",
    "Terminated",
    "Segmentation fault",
    "cannot execute",
    "command not found",
    "error while loading shared libraries",
    "cannot open shared object file",
    "cannot find -l",
    "unable to find library",
    "cannot open output file",
    "cannot open temporary file",
    "Cannot create temporary file",
    "Could not open output file",
    "file truncated",
    "file not recognized",
    "file format not recognized",
    "icense", // a compiler without its licence
});

// What a line says is missing: "kernel.cpp:1:10: fatal error: omp.h: No such file or directory",
// "'omp.h' file not found" of clang, "cannot open source file "omp.h"" of NVIDIA's front end.
std::optional<std::string_view> missing_file(std::string_view line) {
  constexpr std::string_view open = "open source file \"";
  constexpr std::string_view absent = "' file not found";
  constexpr std::string_view no_such = ": No such file or directory";
  if (auto at = line.find(open); at != line.npos) {
    auto rest = line.substr(at + open.size());
    return rest.substr(0, rest.find('"'));
  }
  if (auto at = line.find(absent); at != line.npos) {
    auto begin = line.rfind('\'', at - 1);
    begin = at == 0 || begin == line.npos ? 0 : begin + 1;
    return line.substr(begin, at - begin);
  }
  auto at = line.find(no_such);
  if (at == line.npos) return std::nullopt;
  auto begin = line.rfind(": ", at - (at > 0 ? 1 : 0));
  return line.substr(begin == line.npos ? 0 : begin + 2, at - (begin == line.npos ? 0 : begin + 2));
}

// "   12 | y[i] = x[i];" and "      |        ^".
bool quotes_source(std::string_view line) {
  return line.starts_with(' ') && line.find(" | ") != line.npos;
}

bool is_of(std::string_view line, const std::vector<std::string>& own_files) {
  if (line.starts_with("/build/")) line.remove_prefix(7);
  return std::any_of(own_files.begin(), own_files.end(), [&](const std::string& x) {
    return line.starts_with(x) && line.size() > x.size() &&
           (line[x.size()] == ':' || line[x.size()] == '(');
  });
}

// "kernel.cpp:5:10:   required from here": an instance of a template of others.
bool required_by(std::string_view text, const std::vector<std::string>& own_files) {
  while (!text.empty()) {
    auto line = next_line(text);
    if (is_of(line, own_files) && line.find("required from") != line.npos) return true;
  }
  return false;
}

bool spent_its_time(const compiler_outcome& x) {
  return x.status.signal == SIGXCPU || contains_any(x.text, {"CPU time limit exceeded"});
}

// The line of a control's words that tells most.
std::string telling_line(const std::string& text) {
  std::string_view rest = text;
  while (!rest.empty()) {
    auto line = next_line(rest);
    if (missing_file(line) || speaks_of_machine(line)) return std::string{line.substr(0, 400)};
  }
  for (const auto& x : parse_diagnostics(text))
    if (x.severity == "error") return x.file.empty() ? x.message : x.file + ": " + x.message;
  return text.substr(0, std::min(text.find('\n'), size_t{400}));
}

} // namespace

bool speaks_of_machine(std::string_view text, const std::vector<std::string>& own_files) {
  while (!text.empty()) {
    auto line = next_line(text);
    if (quotes_source(line)) continue;
    if (auto missing = missing_file(line))
      if (!is_of(line, own_files) || is_toolchain_header(*missing)) return true;
    if (std::any_of(machine_words.begin(), machine_words.end(),
                    [&](auto word) { return line.find(word) != line.npos; }))
      return true;
  }
  return false;
}

bool has_failed(const compiler_outcome& x) {
  return x.status.code != 0 || x.timed_out || x.flooded;
}

namespace {

// Its time was over while it neither worked nor wanted a core: it waits for something, such as a
// process that could not be started. A source that makes it wait does so again.
bool stood_still(const compiler_outcome& x) {
  constexpr double little = 0.25; // of the time
  return x.timed_out && !x.cores.wants_more && x.cores.seconds < little * x.seconds;
}

} // namespace

build_evidence evidence_of(const compiler_outcome& x, const std::vector<std::string>& own_files) {
  if (stood_still(x)) return build_evidence::unclear;
  // Limits of its own. A compiler that something outside ended is judged without its words.
  if (x.timed_out || x.flooded || x.out_of_memory || x.killed || spent_its_time(x))
    return build_evidence::source;
  if (speaks_of_machine(x.text, own_files)) return build_evidence::machine;
  bool any = false;
  bool in_system = false;
  std::string_view rest = x.text;
  while (!rest.empty()) {
    auto line = next_line(rest);
    auto found = parse_diagnostics(std::string{line});
    if (found.empty() || found.front().severity != "error") continue;
    if (is_of(line, own_files)) return build_evidence::source;
    any = true;
    // A header of the machine is broken, unless the source made it so: that is told by controls.
    in_system = in_system || found.front().file.starts_with('/');
  }
  if (required_by(x.text, own_files)) return build_evidence::source;
  return any && !in_system ? build_evidence::unclear : build_evidence::machine;
}

std::optional<build_evidence> evidence_of(const expected<compiler_outcome>& x,
                                          const std::vector<std::string>& own_files) {
  if (!x || !has_failed(*x)) return std::nullopt;
  return evidence_of(*x, own_files);
}

expected<void> attribute(const attributed_build& x) {
  auto evidence = x.build();
  auto begin = std::chrono::steady_clock::now();
  for (int i = 0; evidence && *evidence != build_evidence::source && i < most_repetitions; ++i) {
    if (i > 0 && *evidence == build_evidence::unclear) break;
    std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    if (i > 0 && spent.count() > enough_seconds) break;
    KM_TRY(x.control());
    evidence = x.build();
  }
  return {};
}

error fault_of_control(const compiler_outcome& control, const std::string& what) {
  auto text = clean_log(control.text, most_log);
  auto said = telling_line(text);
  auto end = [&](const char* category, const std::string& why, std::string hint) {
    return error{fault_class::infrastructure, category,
                 "failed to build " + what + " on this machine: " + why, std::move(hint)};
  };
  if (control.killed || contains_any(control.text, {"Killed", "signal 9", "SIGKILL"}))
    return end("compiler_killed", "something outside its sandbox ended the compiler",
               "does the machine have memory left? its kernel log says whom it ended");
  if (control.timed_out)
    return end("machine_busy",
               "after " + seconds_text(control.seconds) + " the compiler had a core for " +
                   seconds_text(control.cores.seconds),
               "run less beside the compilers");
  auto package = package_of(said);
  if (!package.empty()) return end("toolchain_missing", said, "install what it lacks: " + package);
  if (said.empty()) said = "it ended with exit code " + std::to_string(control.status.code);
  return end("toolchain_failed", said,
             "see to the machine's disk, memory and limits of processes; `kernelmill doctor` tries "
             "the compilers");
}

expected<void> result_of_control(const expected<compiler_outcome>& control,
                                 const std::string& what) {
  KM_TRY(control);
  if (!has_failed(*control)) return {};
  return tl::unexpected<error>{fault_of_control(*control, what)};
}

} // namespace kernelmill
