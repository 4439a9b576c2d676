#include "gpu/examine/compiled_code.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <sstream>

#include "gpu/toolchain/compiler_facts.hpp"
#include "gpu/toolchain/compiler_run.hpp"
#include "messages/base/files.hpp"

namespace kernelmill {

namespace {

constexpr size_t most_code_text = 8 << 20;
constexpr double alike = 0.8; // stretches that have this share of their instructions in common

// -- PTX ------------------------------------------------------------------------------------------

// "@%p1 bra $L__BB0_2;" is conditional; `op` is empty of what is no instruction.
struct ptx_line {
  std::string op;
  bool is_conditional = false;
};

ptx_line read_ptx_line(std::string_view line) {
  auto skip = [&] { line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size())); };
  skip();
  ptx_line result;
  if (line.starts_with('@')) {
    result.is_conditional = true;
    line.remove_prefix(std::min(line.find_first_of(" \t"), line.size()));
    skip();
  }
  if (line.empty() || line[0] < 'a' || line[0] > 'z' || line.find(';') == line.npos) return {};
  result.op = line.substr(0, line.find_first_of(" \t;"));
  return result;
}

bool moves_registers(const std::string& op) {
  return op.starts_with("mov.") || op.starts_with("cvta") || op.starts_with("ld.param") ||
         op.starts_with("st.param") || op == "ret" || op == "exit";
}

void count_device(const ptx_line& x, compiled_code& into) {
  bool is_jump = x.op.starts_with("bra");
  bool is_access = x.op.starts_with("ld.") || x.op.starts_with("st.");
  bool is_wide = x.op.find(".v2") != x.op.npos || x.op.find(".v4") != x.op.npos;
  ++into.instructions;
  into.vector_instructions += is_access && is_wide;
  into.divisions += x.op.starts_with("div") || x.op.starts_with("rem");
  into.calls += x.op.starts_with("call");
  into.branches += is_jump && x.is_conditional;
}

// -- compiling ------------------------------------------------------------------------------------

// Words that steer the compiler are no part of what is computed.
std::string without_pragmas(const std::string& source) {
  std::istringstream lines{source};
  std::string result;
  for (std::string line; std::getline(lines, line);) {
    auto words = line;
    std::erase_if(words, [](char c) { return c == ' ' || c == '\t'; });
    bool steers = words.starts_with("#pragmaGCC") || words.starts_with("#pragmaunroll") ||
                  words.starts_with("#pragmanounroll");
    result += (steers ? std::string{} : line) + "\n";
  }
  return result;
}

expected<std::vector<std::string>> host_command(const host_compiler& by, code_build how) {
#if !defined(__x86_64__)
  return infrastructure_error("tool_missing", "failed to read assembly: it is not that of x86-64");
#endif
  std::vector<std::string> result{by.path,    "-std=c++20", "-march=native",
                                  "-fopenmp", "-fPIC",      "-fno-asynchronous-unwind-tables"};
  result.emplace_back(how == code_build::plain ? "-O1" : "-O3");
  // An attribute of this name would choose another level for a function.
  if (how == code_build::plain) result.emplace_back("-Doptimize(...)=unused");
  result.insert(result.end(), {"-S", "kernel.cpp"});
  return result;
}

expected<std::vector<std::string>> device_command(const std::string& architecture, code_build how) {
  auto nvcc = find_nvcc();
  if (nvcc.empty()) return infrastructure_error("tool_missing", "there is no nvcc");
  std::vector<std::string> result{nvcc, "-std=c++20", "-arch=" + architecture};
  if (how == code_build::plain) result.insert(result.end(), {"-Xcicc", "-O1"});
  result.insert(result.end(), {"-ptx", "kernel.cu"});
  return result;
}

// Of two sorted lists.
double share_in_common(const std::vector<std::string>& x, const std::vector<std::string>& y) {
  std::vector<std::string> both;
  std::set_intersection(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(both));
  return static_cast<double>(both.size()) / static_cast<double>(x.size() + y.size() - both.size());
}

} // namespace

compiled_code read_device_code(std::string_view ptx) {
  compiled_code result;
  result.blocks.emplace_back();
  while (!ptx.empty()) {
    auto line = ptx.substr(0, ptx.find('\n'));
    ptx.remove_prefix(std::min(ptx.size(), line.size() + 1));
    if (line.starts_with("$L") || line.starts_with("}")) result.blocks.emplace_back();
    auto x = read_ptx_line(line);
    if (x.op.empty()) continue;
    count_device(x, result);
    bool is_jump = x.op.starts_with("bra");
    if (is_jump ? x.is_conditional : !moves_registers(x.op))
      result.blocks.back().push_back(is_jump ? "jump" : x.op);
    if (is_jump) result.blocks.emplace_back();
  }
  std::erase_if(result.blocks, [](const auto& x) { return x.empty(); });
  for (auto& x : result.blocks) std::sort(x.begin(), x.end());
  return result;
}

double kept_share(const compiled_code& starter, const compiled_code& candidate) {
  auto blocks = starter.blocks;
  auto left = candidate.blocks;
  std::stable_sort(blocks.begin(), blocks.end(),
                   [](const auto& x, const auto& y) { return x.size() > y.size(); });
  size_t all = 0, kept = 0;
  for (const auto& x : blocks) {
    all += x.size();
    auto best = left.end();
    double most = 0;
    for (auto y = left.begin(); y != left.end(); ++y)
      if (auto share = share_in_common(x, *y); share > most) {
        most = share;
        best = y;
      }
    if (most < alike) continue;
    kept += x.size();
    left.erase(best);
  }
  return all == 0 ? 0 : static_cast<double>(kept) / static_cast<double>(all);
}

expected<compiled_code> compile_code(sandbox& walls, const code_compilers& by, code_build how,
                                     const std::string& source, const std::string& function,
                                     int deadline_ms) {
  bool device = !by.architecture.empty();
  auto command = device ? device_command(by.architecture, how) : host_command(by.host, how);
  KM_TRY(command);
  compiler_job job;
  job.argv = std::move(*command);
  job.argv.insert(job.argv.end(), {"-o", product_path});
  // nvcc finds its own tools beside itself.
  if (device) job.path = std::filesystem::path{job.argv[0]}.parent_path().string() + ":/usr/bin";
  job.source_name = device ? "kernel.cu" : "kernel.cpp";
  job.source = how == code_build::plain ? without_pragmas(source) : source;
  job.deadline_ms = deadline_ms;
  job.memory_bytes = by.host.memory_bytes;
  job.cpus = by.host.cpus;
  auto outcome = run_compiler(walls, job);
  KM_TRY(outcome);
  if (outcome->timed_out || outcome->status.code != 0)
    return candidate_error("compile_error", "it does not compile to assembly");
  auto text = read_first(outcome->product.get(), most_code_text);
  return device ? read_device_code(text) : read_host_code(text, function);
}

} // namespace kernelmill
