#include "gpu/toolchain/diagnostics.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <map>
#include <memory>
#include <string_view>

#include <cxxabi.h>

#include "messages/base/text.hpp"
#include "messages/base/utf8.hpp"

namespace kernelmill {

namespace {

constexpr size_t most_diagnostics = 100;
constexpr size_t longest_file_name = 200;

// Takes "digits:" from the front.
bool take_number(std::string_view& text, uint32_t& value) {
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  auto used = static_cast<size_t>(end - text.data());
  if (failed != std::errc{} || used == text.size() || text[used] != ':') return false;
  text.remove_prefix(used + 1);
  return true;
}

// Takes " error: " and its like from the front.
bool take_severity(std::string_view& text, std::string& severity) {
  using pair = std::pair<std::string_view, const char*>;
  for (auto [word, name] :
       {pair{" fatal error: ", "error"}, pair{" error: ", "error"}, pair{" warning: ", "warning"},
        pair{" note: ", "note"}, pair{" sorry, unimplemented: ", "error"},
        pair{" internal compiler error: ", "error"}})
    if (text.starts_with(word)) {
      text.remove_prefix(word.size());
      severity = name;
      return true;
    }
  return false;
}

// "FILE:LINE:COLUMN: error: MESSAGE", "FILE:LINE: Error: MESSAGE" (the assembler),
// "cc1plus: error: MESSAGE".
bool parse_located(std::string_view line, diagnostic& out) {
  // "error: MESSAGE" of a pass of LLVM that knows no place.
  if (line.starts_with("error: ")) {
    out = {"", 0, 0, "error", std::string{line.substr(7)}};
    return true;
  }
  auto colon = line.find(':');
  if (colon == line.npos || colon == 0) return false;
  out.file = line.substr(0, colon);
  auto rest = line.substr(colon + 1);
  bool located = take_number(rest, out.line);
  if (located) take_number(rest, out.column);
  if (located && rest.starts_with(" Error: ")) {
    out.severity = "error";
    rest.remove_prefix(8);
  } else if (!take_severity(rest, out.severity)) {
    return false;
  }
  if (!located) out.file.clear(); // the name of a program
  out.message = rest;
  return true;
}

// "ptxas error   : MESSAGE", "ptxas fatal   : MESSAGE",
// "ptxas application ptx input, line 23; error   : MESSAGE": a line that the source does not have.
bool parse_assembler(std::string_view line, diagnostic& out) {
  if (!line.starts_with("ptxas ") && !line.starts_with("nvlink ")) return false;
  auto rest = line.substr(line.find(' ') + 1);
  if (auto semicolon = rest.find("; "); semicolon != rest.npos && semicolon < rest.find(" : "))
    rest.remove_prefix(semicolon + 2);
  auto colon = rest.find(": ");
  if (colon == rest.npos || !(rest.starts_with("error") || rest.starts_with("fatal"))) return false;
  out = {"", 0, 0, "error", std::string{rest.substr(colon + 2)}};
  return true;
}

// "FILE(LINE): error: MESSAGE", "FILE(LINE): catastrophic error: MESSAGE" and
// "FILE(LINE): warning #177-D: MESSAGE" of the front end of nvcc and NVRTC.
bool parse_nvcc(std::string_view line, diagnostic& out) {
  auto open = line.find('(');
  auto close = line.find("): ", open == line.npos ? 0 : open);
  if (open == line.npos || close == line.npos || open == 0) return false;
  auto number = line.substr(open + 1, close - open - 1);
  auto [end, failed] = std::from_chars(number.data(), number.data() + number.size(), out.line);
  if (failed != std::errc{} || end != number.data() + number.size()) return false;
  auto rest = line.substr(close + 3);
  for (std::string_view stronger : {"catastrophic ", "internal "})
    if (rest.starts_with(stronger)) rest.remove_prefix(stronger.size());
  for (std::string_view severity : {"error", "warning", "note"}) {
    if (!rest.starts_with(severity)) continue;
    auto colon = rest.find(": ");
    if (colon == rest.npos) return false;
    out.file = line.substr(0, open);
    out.severity = severity;
    out.message = rest.substr(colon + 2);
    return true;
  }
  return false;
}

// "/usr/bin/ld: FILE: undefined reference to `x'" and other words of the linker.
bool parse_linker(std::string_view line, diagnostic& out) {
  for (std::string_view word : {": undefined reference to", ": multiple definition of",
                                ": relocation truncated", "ld: cannot find"}) {
    auto at = line.find(word);
    if (at == line.npos) continue;
    out = {"", 0, 0, "error", std::string{line.substr(line.find(' ', at) + 1)}};
    return true;
  }
  return false;
}

std::string make_printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    auto size = utf8_length(text);
    bool control = size == 1 && static_cast<unsigned char>(text[0]) < 0x20 && text[0] != '\n' &&
                   text[0] != '\t';
    if (size == 0 || control || text[0] == 0x7f)
      result += '?';
    else
      result.append(text.substr(0, size));
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return result;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
    text.replace(at, from.size(), to);
}

// Names that g++ and clang make up and that differ from run to run: /tmp/ccAbCdEf.o,
// /tmp/kernel-9034ee.o, /tmp/kernel-96f266/kernel-gfx90a.o.
void name_temporaries(std::string& text) {
  for (std::string_view begin : {"/tmp/cc", "/tmp/kernel-"})
    for (size_t at = 0; (at = text.find(begin, at)) != text.npos;) {
      auto end = text.find_first_not_of(
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", at + begin.size());
      if (end == text.npos) end = text.size();
      bool folder = end < text.size() && text[end] == '/';
      text.replace(at, end - at + (folder ? 1 : 0), folder ? "" : "kernel");
    }
}

} // namespace

namespace {

// `#line 1 "All gates pass"` would have a candidate's words stand where a reader looks for ours.
bool may_be_file(std::string_view name) {
  bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    auto u = static_cast<unsigned char>(c);
    return std::isalnum(u) != 0 || std::string_view{"_./+-"}.find(c) != std::string_view::npos;
  });
  auto dot = name.rfind('.');
  std::string_view ending = dot == name.npos ? std::string_view{} : name.substr(dot);
  return plain && name.size() <= longest_file_name &&
         (name.starts_with('/') || (ending.size() > 1 && ending.size() <= 4) ||
          ending == ".cpp_sources" || ending == ".cuda_sources"); // of load_inline
}

} // namespace

std::vector<diagnostic> parse_diagnostics(const std::string& text) {
  std::vector<diagnostic> result;
  for (std::string_view rest = text; !rest.empty() && result.size() < most_diagnostics;) {
    auto line = next_line(rest);
    diagnostic x;
    if (parse_linker(line, x) || parse_assembler(line, x) || parse_nvcc(line, x) ||
        parse_located(line, x)) {
      if (!may_be_file(x.file)) x.file.clear();
      result.push_back(std::move(x));
    }
  }
  return result;
}

namespace {

// The number before `unit`, as in "Used 31 registers, 1024 bytes smem".
uint32_t number_before(std::string_view line, std::string_view unit) {
  auto at = line.find(unit);
  if (at == line.npos) return 0;
  auto begin = line.find_last_not_of("0123456789", at - 1);
  begin = begin == line.npos ? 0 : begin + 1;
  uint32_t result = 0;
  std::from_chars(line.data() + begin, line.data() + at, result);
  return result;
}

constexpr size_t longest_symbol = 4000;
constexpr double most_work = 8 << 20; // letters that are written on the way to a name

// At most how many letters a symbol stands for. "S0_" stands for something before it that has no
// "S0_" of its own: each of n of them is as long as all the rest at most, so that together they
// make it 1 + n times as long. What "T_" stands for hangs on the place; "Dp" and "sp" repeat what
// follows for each of a list.
double letters_of(std::string_view symbol) {
  std::map<std::string_view, double> repeated;
  double result = static_cast<double>(symbol.size());
  for (size_t at = 0; at < symbol.size(); ++at) {
    auto pair = symbol.substr(at, 2);
    if (pair == "Dp" || pair == "sp") result *= static_cast<double>(symbol.size());
    if (symbol[at] != 'S' && symbol[at] != 'T') continue;
    auto end = symbol.find_first_not_of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", at + 1);
    if (end == symbol.npos || symbol[end] != '_') continue;
    if (symbol[at] == 'T')
      result *= 2;
    else
      ++repeated[symbol.substr(at, end - at)];
  }
  for (const auto& [name, count] : repeated) result *= 1 + count;
  return result;
}

} // namespace

std::string readable_symbol(std::string_view symbol) {
  std::string name{symbol};
  // "f" alone would be the type float.
  if (!name.starts_with("_Z") || name.size() > longest_symbol || letters_of(name) > most_work)
    return name;
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> plain{
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free};
  std::string_view found = status == 0 && plain ? plain.get() : "";
  return found.empty() || found.size() > longest_symbol ? name : std::string{found};
}

std::vector<kernel_resources> take_kernel_resources(std::string& text) {
  std::vector<kernel_resources> result;
  std::string kept;
  for (std::string_view rest = text; !rest.empty();) {
    auto line = next_line(rest);
    constexpr std::string_view begin = "Compiling entry function '";
    bool of_stack = line.find(" bytes stack frame") != line.npos;
    if (!line.starts_with("ptxas info") && !(of_stack && !result.empty())) {
      kept.append(line).push_back('\n');
      continue;
    }
    if (auto at = line.find(begin); at != line.npos && result.size() < most_diagnostics) {
      auto name = line.substr(at + begin.size());
      result.push_back({readable_symbol(name.substr(0, name.find('\''))), 0, 0, 0, 0, 0});
    } else if (of_stack && !result.empty()) {
      result.back().stack_frame = number_before(line, " bytes stack frame");
      result.back().spill_stores = number_before(line, " bytes spill stores");
      result.back().spill_loads = number_before(line, " bytes spill loads");
    } else if (line.find("Used ") != line.npos && !result.empty()) {
      result.back().registers = number_before(line, " registers");
      result.back().shared_bytes = number_before(line, " bytes smem");
    }
  }
  text = std::move(kept);
  return result;
}

namespace {

// Sets what a remark tells; false for the remark that ends a kernel's.
bool take_remark(std::string_view what, kernel_resources& x) {
  auto colon = what.find(": ");
  if (colon == what.npos) return true;
  auto name = what.substr(0, colon);
  uint32_t value = 0;
  std::from_chars(what.data() + colon + 2, what.data() + what.size(), value);
  if (name == "VGPRs") x.registers = value;
  if (name == "ScratchSize [bytes/lane]") x.stack_frame = value;
  if (name == "VGPRs Spill") x.spill_stores = x.spill_loads = 4 * value;
  if (name == "LDS Size [bytes/block]") x.shared_bytes = value;
  return name != "LDS Size [bytes/block]";
}

} // namespace

std::vector<kernel_resources> take_hip_kernel_resources(std::string& text) {
  constexpr std::string_view mark = " [-Rpass-analysis=kernel-resource-usage]";
  constexpr std::string_view begin = "Function Name: ";
  std::vector<kernel_resources> result;
  std::string kept;
  bool inside = false; // between the first and the last remark of a kernel
  for (std::string_view rest = text; !rest.empty();) {
    auto line = next_line(rest);
    auto at = line.find(": remark: ");
    if (at == line.npos || !line.ends_with(mark)) {
      diagnostic other;
      inside = inside && !parse_located(line, other);
      if (!inside) kept.append(line).push_back('\n');
      continue;
    }
    auto what = line.substr(at + 10, line.size() - at - 10 - mark.size());
    what.remove_prefix(std::min(what.find_first_not_of(' '), what.size()));
    if (what.starts_with(begin)) {
      inside = result.size() < most_diagnostics;
      if (inside) result.push_back({readable_symbol(what.substr(begin.size())), 0, 0, 0, 0, 0});
    } else if (inside) {
      inside = take_remark(what, result.back());
    }
  }
  text = std::move(kept);
  return result;
}

double register_occupancy(uint32_t registers, const std::string& architecture) {
  // CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
  static const std::map<std::string, uint32_t> most_warps = {
      {"sm_70", 64}, {"sm_75", 32},  {"sm_80", 64},  {"sm_86", 48},  {"sm_87", 48}, {"sm_89", 48},
      {"sm_90", 64}, {"sm_100", 64}, {"sm_103", 64}, {"sm_120", 48}, {"sm_121", 48}};
  constexpr uint32_t registers_in_all = 65536;
  constexpr uint32_t unit = 256; // of a warp's share
  constexpr uint32_t partitions = 4;
  auto found = most_warps.find(architecture);
  if (found == most_warps.end() || registers == 0) return 0;
  uint32_t warp = (registers * 32 + unit - 1) / unit * unit;
  uint32_t alive = registers_in_all / warp / partitions * partitions;
  return static_cast<double>(std::min(alive, found->second)) / found->second;
}

std::string clean_log(const std::string& text, size_t limit) {
  auto result = make_printable(text);
  replace_all(result, "/build/", "");
  replace_all(result, "/proc/self/fd/5", "kernel.so");
  name_temporaries(result);
  if (result.size() <= limit) return result;
  constexpr std::string_view mark = "... (cut)\n";
  auto end = result.rfind('\n', limit - mark.size());
  result.resize(end == result.npos ? 0 : end + 1);
  return result.append(mark);
}

} // namespace kernelmill
