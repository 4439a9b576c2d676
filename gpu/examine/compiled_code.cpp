#include "gpu/examine/compiled_code.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <sstream>

#include "gpu/toolchain/compiler_facts.hpp"
#include "gpu/toolchain/compiler_run.hpp"
#include "messages/base/files.hpp"

namespace kernelmill {

namespace {

constexpr size_t most_code_text = 8 << 20;
constexpr size_t most_blocks = 20'000; // each is held against each of the starter's
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

std::set<std::string_view> jump_targets(std::string_view ptx) {
  std::set<std::string_view> result;
  while (!ptx.empty()) {
    auto line = ptx.substr(0, ptx.find('\n'));
    ptx.remove_prefix(std::min(ptx.size(), line.size() + 1));
    auto end = line.rfind(';');
    if (end == line.npos || line.find("bra") == line.npos) continue;
    auto begin = line.find_last_of(" \t", end);
    if (begin != line.npos) result.insert(line.substr(begin + 1, end - begin - 1));
  }
  return result;
}

// -- compiling ------------------------------------------------------------------------------------

// Words that steer the compiler are no part of what is computed: pragmas, as the preprocessor
// leaves them, but for those of OpenMP that make threads.
std::string without_pragmas(const std::string& source) {
  std::istringstream lines{source};
  std::string result;
  for (std::string line; std::getline(lines, line);) {
    auto begin = line.find_first_not_of(" \t");
    if (begin != line.npos && line[begin] == '#' &&
        line.find("pragma", begin) == line.find_first_not_of(" \t", begin + 1)) {
      bool threads = line.find("omp") != line.npos && line.find("declare") == line.npos;
      auto simd = line.find("simd");
      if (!threads || line.find("omp simd") != line.npos) line.clear();
      if (threads && simd != line.npos) line.resize(std::min(line.size(), simd));
    }
    result += line + "\n";
  }
  return result;
}

// "optimize("O3")" of an attribute as "unused"; a function of that name takes no text or number.
std::string without_levels(const std::string& source) {
  constexpr std::string_view word = "optimize";
  std::string result;
  size_t from = 0;
  for (auto at = source.find(word); at != source.npos; at = source.find(word, at + 1)) {
    auto begin = at, end = at + word.size();
    while (begin > from && source[begin - 1] == '_') --begin;
    while (end < source.size() && source[end] == '_') ++end;
    auto open = source.find_first_not_of(" \t\n", end);
    if (open == source.npos || source[open] != '(') continue;
    auto first = source.find_first_not_of(" \t\n", open + 1);
    auto close = source.find(')', open);
    if (close == source.npos ||
        (source[first] != '"' && (source[first] < '0' || source[first] > '9')))
      continue;
    result.append(source, from, begin - from).append("unused");
    from = close + 1;
  }
  return result.append(source, from);
}

expected<std::vector<std::string>> host_command(const host_compiler& by) {
#if !defined(__x86_64__)
  return infrastructure_error("tool_missing", "failed to read assembly: it is not that of x86-64");
#endif
  return std::vector<std::string>{by.path,    "-std=c++20", "-march=native",
                                  "-fopenmp", "-fPIC",      "-fno-asynchronous-unwind-tables"};
}

expected<std::vector<std::string>> device_command(const build_target& by, const hip_layer* layer,
                                                  code_build how) {
  if (is_amd_architecture(by.architecture))
    return infrastructure_error("tool_missing", "the code of AMD GPUs is not compared");
  auto nvcc = find_nvcc();
  if (nvcc.empty()) return infrastructure_error("tool_missing", "there is no nvcc");
  std::vector<std::string> result{nvcc, "-std=c++20", "-arch=" + by.architecture};
  if (layer != nullptr)
    for (auto& word : nvcc_flags(*layer)) result.push_back(word);
  if (how == code_build::plain) result.insert(result.end(), {"-Xcicc", "-O1"});
  result.insert(result.end(), {"-ptx", "kernel.cu"});
  return result;
}

expected<std::string> output_of(sandbox& walls, const host_compiler& by, compiler_job job,
                                const std::vector<std::string>& more) {
  job.argv.insert(job.argv.end(), more.begin(), more.end());
  job.argv.insert(job.argv.end(), {"-o", product_path});
  job.memory_bytes = by.memory_bytes;
  job.cpus = by.cpus;
  auto outcome = run_compiler(walls, job);
  KM_TRY(outcome);
  if (outcome->timed_out || outcome->status.code != 0)
    return candidate_error("compile_error", "it does not compile to assembly");
  auto text = read_first(outcome->product.get(), most_code_text);
  if (text.size() >= most_code_text)
    return candidate_error("compile_error", "its assembly is too long to be compared");
  return text;
}

// The preprocessor sees what it sees in the judged build, so that no macro tells the two apart.
expected<std::string> plain_assembly(sandbox& walls, const host_compiler& by,
                                     const compiler_job& job) {
  auto text = output_of(walls, by, job, {"-O3", "-E", "-P", "kernel.cpp"});
  KM_TRY(text);
  auto next = job;
  next.source = without_levels(without_pragmas(*text));
  auto assembly = output_of(walls, by, next, {"-fpreprocessed", "-O1", "-S", "kernel.cpp"});
  KM_TRY(assembly);
  if (assembly->find("\n#APP") != std::string::npos)
    return candidate_error("compile_error", "inline assembly cannot be compared");
  return assembly;
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
  const auto targets = jump_targets(ptx);
  while (!ptx.empty()) {
    auto line = ptx.substr(0, ptx.find('\n'));
    ptx.remove_prefix(std::min(ptx.size(), line.size() + 1));
    // A label that nothing names and a brace are no jump: inline assembly may write them anywhere.
    bool is_target = line.starts_with("$L") && targets.contains(line.substr(0, line.find(':')));
    bool is_function = line.starts_with('.') &&
                       (line.find(".entry ") != line.npos || line.find(".func ") != line.npos);
    if (is_target || is_function) result.blocks.emplace_back();
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

static expected<compiled_code> comparable(compiled_code x) {
  if (x.blocks.size() <= most_blocks) return x;
  return candidate_error("compile_error", "its assembly has too many jumps to be compared");
}

expected<compiled_code> compile_code(sandbox& walls, const code_compilers& by, code_build how,
                                     const std::string& source, const std::string& function,
                                     int deadline_ms) {
  bool device = !by.device.architecture.empty();
  auto layer = layer_of(by.device);
  KM_TRY(layer);
  auto command =
      device ? device_command(by.device, *layer ? &**layer : nullptr, how) : host_command(by.host);
  KM_TRY(command);
  compiler_job job;
  job.argv = std::move(*command);
  if (*layer) job.mounts = mounts_of(**layer);
  // nvcc finds its own tools beside itself.
  if (device) job.path = std::filesystem::path{job.argv[0]}.parent_path().string() + ":/usr/bin";
  job.source_name = device ? "kernel.cu" : "kernel.cpp";
  job.source = device && how == code_build::plain ? without_pragmas(source) : source;
  job.deadline_ms = deadline_ms;
  if (device) {
    auto text = output_of(walls, by.host, job, {});
    KM_TRY(text);
    return comparable(read_device_code(*text));
  }
  auto text = how == code_build::plain
                  ? plain_assembly(walls, by.host, job)
                  : output_of(walls, by.host, job, {"-O3", "-S", "kernel.cpp"});
  KM_TRY(text);
  return comparable(read_host_code(*text, function));
}

} // namespace kernelmill
