#include "gpu/profiler/sanitizer_report.hpp"

#include <algorithm>
#include <charconv>

#include "gpu/profiler/sanitizer_parts.hpp"
#include "messages/base/text.hpp"

namespace kernelmill {

namespace sanitizer_parts {

uint64_t count_at(std::string_view x) {
  uint64_t result = 0;
  for (char c : x) {
    if (c == ',') continue;
    if (c < '0' || c > '9' || result > UINT64_MAX / 100) break;
    result = result * 10 + static_cast<uint64_t>(c - '0');
  }
  return result;
}

uint64_t count_after(std::string_view x, std::string_view words) {
  auto at = x.find(words);
  return at == x.npos ? 0 : count_at(x.substr(at + words.size()));
}

bool take_file(std::string_view x, code_place& to) {
  auto colon = x.rfind(':');
  if (colon == x.npos || colon + 1 == x.size()) return false;
  uint32_t line = 0;
  auto [end, problem] = std::from_chars(x.data() + colon + 1, x.data() + x.size(), line);
  if (problem != std::errc{} || end != x.data() + x.size()) return false;
  auto file = x.substr(0, colon);
  to.file = cut(file.substr(file.find_last_of("/\\") + 1));
  to.line = line;
  return true;
}

namespace {

constexpr size_t most_findings = 64;

bool is_same(const sanitizer_finding& a, const sanitizer_finding& b) {
  return a.family == b.family && a.is_warning == b.is_warning && a.words == b.words &&
         a.at.kernel == b.at.kernel && a.at.offset == b.at.offset && a.at.line == b.at.line;
}

} // namespace

void keep(sanitizer_report& report, sanitizer_finding& x) {
  if (x.words.empty()) return;
  for (auto& known : report.findings)
    if (is_same(known, x)) {
      known.times += 1;
      known.hazards += x.hazards;
      x = {};
      return;
    }
  // Warnings, of which there may be many, hide no error.
  auto place = report.findings.end();
  if (report.findings.size() == most_findings && !x.is_warning)
    place = std::find_if(report.findings.begin(), report.findings.end(),
                         [](auto& known) { return known.is_warning; });
  if (place != report.findings.end())
    *place = std::move(x);
  else if (report.findings.size() < most_findings)
    report.findings.push_back(std::move(x));
  x = {};
}

} // namespace sanitizer_parts

using namespace sanitizer_parts;

namespace {

constexpr std::string_view mark = "=========";

// -- places ---------------------------------------------------------------------------------------

// "0x60 in f(int*)", and of older tools "0x3c8 in x.cu:42:f(int*)".
code_place place_by_offset(std::string_view x) {
  code_place result;
  result.offset = cut(x.substr(0, x.find(' ')), 20);
  auto in = x.find(" in ");
  if (in == x.npos) return result;
  auto rest = x.substr(in + 4);
  for (size_t colon = rest.find(':'); colon != rest.npos; colon = rest.find(':', colon + 1)) {
    auto next = rest.find_first_not_of("0123456789", colon + 1);
    if (next == colon + 1 || (next != rest.npos && rest[next] != ':')) continue;
    (void)take_file(rest.substr(0, next), result);
    if (next != rest.npos) result.kernel = cut(rest.substr(next + 1));
    return result;
  }
  result.kernel = cut(rest);
  return result;
}

// "f(float *)+0xb0 in x.cu:28", "f():0x160 in x.cu:6", "f(float *)+0xb0".
code_place place_of(std::string_view x) {
  x = trimmed(x);
  if (x.starts_with("0x")) return place_by_offset(x);
  code_place result;
  auto in = x.rfind(" in ");
  if (in != x.npos && take_file(trimmed(x.substr(in + 4)), result)) x = x.substr(0, in);
  for (std::string_view joint : {"+0x", ":0x"})
    if (auto at = x.rfind(joint); at != x.npos) {
      auto offset = x.substr(at + 1);
      result.offset = cut(offset.substr(0, offset.find_first_not_of("0123456789abcdefx")), 20);
      x = x.substr(0, at);
      break;
    }
  result.kernel = cut(x);
  return result;
}

// -- findings -------------------------------------------------------------------------------------

std::string_view hint_of(const sanitizer_finding& x) {
  switch (x.family) {
    case memory_fault::out_of_bounds:
      return "compare the index with the length before the access; think of the last block";
    case memory_fault::misaligned:
      return "an access of 8 or 16 bytes needs an address that is a multiple of it";
    case memory_fault::uninitialized:
      return x.space == "shared" ? "write the shared element before it is read: what is there was "
                                   "left by another block"
                                 : "write each element of an output before it is read";
    case memory_fault::race:
      return "a __syncthreads() lies between a write and a read by another thread, or each thread "
             "keeps to its own elements";
    case memory_fault::barrier:
      return "all threads of a block must reach __syncthreads(): no barrier behind a condition or "
             "an early return";
    case memory_fault::leak: return "free what was allocated";
    case memory_fault::api_error: return "look at the call's arguments and at errors before it";
    case memory_fault::use_after_free: return "end the life of memory behind its last use";
    case memory_fault::undefined: return "use a wider type, or test the operands before";
    case memory_fault::other: return "see the tool's words";
  }
  return {};
}

// "__global__ write of size 4 bytes", "__shared__ memory read of size 4 bytes".
void take_access(std::string_view line, sanitizer_finding& x) {
  for (std::string_view space : {"global", "shared", "local"})
    if (has_words(line, "__" + std::string{space} + "__")) x.space = space;
  for (std::string_view access : {"read", "write", "atomic"})
    if (has_words(line, " " + std::string{access})) x.access = access;
  x.bytes = static_cast<uint32_t>(std::min<uint64_t>(count_after(line, "of size "), 1 << 20));
}

void begin_race(std::string_view line, sanitizer_finding& x) {
  x.family = memory_fault::race;
  x.space = "shared";
  x.access = has_words(line, "between Write access") ? "write" : "read";
  auto at = line.find(" access at ");
  if (at != line.npos) x.at = place_of(line.substr(at + 11));
}

// Whether a line begins a finding; the words before it say how serious it is.
bool begins(std::string_view line, sanitizer_finding& x) {
  x.words = cut(line);
  if (take_prefix(line, "Warning: ") || take_prefix(line, "WARNING: ") ||
      take_prefix(line, "WARN: "))
    x.is_warning = true;
  else if (!take_prefix(line, "Error: "))
    (void)take_prefix(line, "ERROR: ");
  if (line.starts_with("Race reported between ")) {
    begin_race(line, x);
    return true;
  }
  if (line.starts_with("Potential ") && has_words(line, " hazard detected at ")) {
    x.family = memory_fault::race;
    x.space = "shared";
    return true;
  }
  if (line.starts_with("Invalid __")) {
    x.family = memory_fault::out_of_bounds;
    take_access(line, x);
    return true;
  }
  if (line.starts_with("Uninitialized __")) {
    x.family = memory_fault::uninitialized;
    take_access(line, x);
    return true;
  }
  if (line.starts_with("Barrier error detected")) {
    x.family = memory_fault::barrier;
    return true;
  }
  if (line.starts_with("Leaked ")) {
    x.family = memory_fault::leak;
    return true;
  }
  if (line.starts_with("Program hit ")) {
    x.family = memory_fault::api_error;
    return true;
  }
  return false;
}

void take_detail(std::string_view line, sanitizer_finding& x) {
  if (take_prefix(line, "at ")) {
    x.at = place_of(line);
  } else if (take_prefix(line, "by thread ")) {
    x.thread = cut(line.substr(0, line.find(' ')), 40);
    if (auto at = line.find("in block "); at != line.npos)
      x.block = cut(line.substr(at + 9, line.find(')', at) - at - 8), 40);
  } else if (take_prefix(line, "Address ") || line.starts_with("Access at 0x") ||
             line.starts_with("Access to 0x")) {
    if (!take_prefix(line, "Access at ")) (void)take_prefix(line, "Access to ");
    x.address = cut(line.substr(0, line.find(' ')), 40);
    if (has_words(line, "misaligned")) x.family = memory_fault::misaligned;
  } else if (take_prefix(line, "Device Frame: ")) {
    // Callers of what was inlined or called, the kernel last.
    if (auto caller = place_of(line); !caller.kernel.empty()) x.at.kernel = caller.kernel;
  } else if (line.starts_with("and ") && has_words(line, " access at ") &&
             x.family == memory_fault::race) {
    if (x.others.size() < most_others) {
      auto place = line.substr(line.find(" access at ") + 11);
      x.others.push_back(place_of(place.substr(0, place.rfind(" ["))));
    }
  }
  if (auto at = line.rfind(" hazards]"); at != line.npos)
    if (auto open = line.rfind('[', at); open != line.npos)
      x.hazards += count_at(line.substr(open + 1));
}

void keep_with_hint(sanitizer_report& report, sanitizer_finding& x) {
  x.hint = hint_of(x);
  keep(report, x);
}

// "ERROR SUMMARY: 3 errors", "RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)".
bool take_summary(std::string_view line, sanitizer_report& report) {
  if (line.starts_with("ERROR SUMMARY: ")) {
    // Of those that it has counted before.
    if (has_words(line, " were not printed") || has_words(line, " was not printed")) return true;
    report.errors += count_after(line, "ERROR SUMMARY: ");
    return true;
  }
  if (!line.starts_with("RACECHECK SUMMARY: ")) return false;
  auto open = line.find('(');
  if (open == line.npos) return true;
  report.errors += count_at(line.substr(open + 1));
  report.warnings += count_after(line.substr(open), ", ");
  return true;
}

} // namespace

std::string_view to_string(memory_fault x) {
  switch (x) {
    case memory_fault::out_of_bounds: return "out_of_bounds";
    case memory_fault::misaligned: return "misaligned";
    case memory_fault::uninitialized: return "uninitialized";
    case memory_fault::race: return "race";
    case memory_fault::barrier: return "barrier";
    case memory_fault::leak: return "leak";
    case memory_fault::api_error: return "api_error";
    case memory_fault::use_after_free: return "use_after_free";
    case memory_fault::undefined: return "undefined";
    case memory_fault::other: return "other";
  }
  return "other";
}

sanitizer_report read_sanitizer_report(std::string_view text) {
  sanitizer_report result;
  sanitizer_finding current;
  bool has_summary = false;
  while (!text.empty()) {
    auto line = next_line(text);
    if (!take_prefix(line, mark)) continue;
    line = trimmed(line);
    if (sanitizer_finding next; begins(line, next)) {
      keep_with_hint(result, current);
      current = std::move(next);
    } else if (take_summary(line, result)) {
      keep_with_hint(result, current);
      has_summary = true;
    } else if (has_words(line, "Device not supported") ||
               has_words(line, "not supported by compute-sanitizer")) {
      result.problem = sanitizer_problem::not_supported;
      result.words = cut(line);
    } else {
      take_detail(line, current);
    }
  }
  keep_with_hint(result, current);
  if (!has_summary && result.findings.empty() && result.problem == sanitizer_problem::none)
    result.problem = sanitizer_problem::no_report;
  return result;
}

} // namespace kernelmill
