#include "gpu/inspect/listed_build.hpp"

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include <unistd.h>

#include "gpu/toolchain/compiler_facts.hpp"
#include "gpu/toolchain/compiler_run.hpp"
#include "messages/base/files.hpp"

namespace kernelmill {

namespace {

constexpr size_t most_listing = 8 << 20; // bytes of PTX or SASS
constexpr size_t longest_log = 16 << 10;
constexpr const char* behind_the_first =
    ": what lies behind its first 8 MiB; it is not counted either";

std::string find_tool(const std::string& nvcc, const char* name) {
  namespace fs = std::filesystem;
  std::vector<fs::path> places;
  if (!nvcc.empty()) places.push_back(fs::path{nvcc}.parent_path());
  std::istringstream path{std::getenv("PATH") != nullptr ? std::getenv("PATH") : ""};
  for (std::string one; std::getline(path, one, ':');) places.emplace_back(one);
  for (const auto& place : places) {
    std::error_code problem;
    // By its real path: the sandbox does not show what links lead over.
    auto real = fs::canonical(place / name, problem);
    if (!problem && ::access(real.c_str(), X_OK) == 0) return real.string();
  }
  return {};
}

compiler_job job_of(const listing_tools& tools) {
  compiler_job job;
  job.path = std::filesystem::path{tools.nvcc}.parent_path().string() + ":/usr/bin";
  job.memory_bytes = uint64_t{4} << 30;
  job.cpu_seconds = 60;
  return job;
}

// Says what a tool of the toolkit prints of a cubin.
expected<compiler_outcome> ask_of_cubin(sandbox& walls, const listing_tools& tools,
                                        const std::string& tool, std::vector<std::string> options,
                                        const std::string& cubin) {
  auto job = job_of(tools);
  job.source_name = "kernel.cubin";
  job.source = cubin;
  job.kept_text = most_listing;
  // Of the machine's programs the sandbox shows what lies below /usr.
  if (!tool.starts_with("/usr/")) job.mounts.push_back({tool, tool, false});
  job.argv = {tool};
  job.argv.insert(job.argv.end(), options.begin(), options.end());
  job.argv.push_back(job.source_name);
  return run_compiler(walls, job);
}

bool came_to_its_end(const expected<compiler_outcome>& x) {
  return x && x->status.code == 0 && !x->timed_out;
}

// The tool's own error, where it has one: warnings come before.
std::string reason_of(const std::string& tool, const expected<compiler_outcome>& x) {
  if (!x) return x.error().message;
  auto name = tool.substr(tool.rfind('/') + 1);
  if (x->timed_out) return name + " took too long";
  if (x->flooded) return name + " printed too much";
  auto at = x->text.find("error");
  auto begin = at == x->text.npos ? 0 : x->text.rfind('\n', at) + 1;
  auto line = x->text.substr(begin, x->text.find('\n', begin) - begin);
  return name + ": " + line;
}

expected<compiler_outcome> compile_to(sandbox& walls, const listing_tools& tools,
                                      const std::string& source, const std::string& architecture,
                                      const char* kind) {
  auto job = job_of(tools);
  job.argv = {tools.nvcc,   "-std=c++20", "-O3",        "-arch=" + architecture, "-lineinfo", kind,
              "-Xptxas=-v", "-o",         product_path, listed_source_name};
  job.source_name = listed_source_name;
  // In the sandbox the file is one of memory, and its own name would be in the line table.
  job.source = "#line 1 \"";
  job.source.append(listed_source_name).append("\"\n").append(source);
  return run_compiler(walls, job);
}

} // namespace

listing_tools find_listing_tools() {
  listing_tools result;
  result.nvcc = find_nvcc();
  result.nvdisasm = find_tool(result.nvcc, "nvdisasm");
  result.cuobjdump = find_tool(result.nvcc, "cuobjdump");
  return result;
}

std::string disassemble(sandbox& walls, const listing_tools& tools, const std::string& cubin,
                        std::vector<std::string>& missing) {
  if (tools.nvdisasm.empty() && tools.cuobjdump.empty()) {
    missing.emplace_back("SASS: neither nvdisasm nor cuobjdump was found; install cuda-nvdisasm");
    return {};
  }
  bool lines = !tools.nvdisasm.empty();
  const auto& tool = lines ? tools.nvdisasm : tools.cuobjdump;
  // Of what was inlined from a header, -gi says where it was called; -g does not.
  auto outcome = ask_of_cubin(walls, tools, tool,
                              lines ? std::vector<std::string>{"-gi", "-c"}
                                    : std::vector<std::string>{"--dump-sass"},
                              cubin);
  if (came_to_its_end(outcome)) {
    if (!lines)
      missing.emplace_back(
          "lines and live registers of SASS: cuobjdump knows none; install nvdisasm");
    if (outcome->text.size() >= most_listing)
      missing.push_back(std::string{"SASS"} + behind_the_first);
    return outcome->text;
  }
  missing.push_back("SASS: " + reason_of(tool, outcome));
  return {};
}

std::string life_ranges(sandbox& walls, const listing_tools& tools, const std::string& cubin,
                        std::vector<std::string>& missing) {
  if (tools.nvdisasm.empty() || cubin.empty()) return {};
  auto outcome = ask_of_cubin(walls, tools, tools.nvdisasm, {"-c", "-lrm", "count"}, cubin);
  if (came_to_its_end(outcome)) {
    if (outcome->text.size() >= most_listing)
      missing.push_back(std::string{"live registers"} + behind_the_first);
    return outcome->text;
  }
  missing.push_back("live registers: " + reason_of(tools.nvdisasm, outcome));
  return {};
}

std::string resource_usage(sandbox& walls, const listing_tools& tools, const std::string& cubin) {
  if (tools.cuobjdump.empty()) return {};
  auto outcome = ask_of_cubin(walls, tools, tools.cuobjdump, {"--dump-resource-usage"}, cubin);
  return came_to_its_end(outcome) ? outcome->text : std::string{};
}

expected<listed_build> build_listing(sandbox& walls, const listing_tools& tools,
                                     const std::string& source, const std::string& architecture) {
  if (tools.nvcc.empty())
    return infrastructure_error("toolchain_missing", "failed to find nvcc, which makes PTX",
                                "install the CUDA toolkit (cuda-nvcc), or set CUDA_HOME");
  listed_build result;
  auto ptx = compile_to(walls, tools, source, architecture, "-ptx");
  if (!ptx) return tl::unexpected<error>{ptx.error()};
  result.compiled = ptx->status.code == 0 && !ptx->timed_out;
  result.log = clean_log(ptx->text, longest_log);
  if (!result.compiled) return result;
  result.ptx = read_first(ptx->product.get(), most_listing);
  if (result.ptx.size() >= most_listing)
    result.missing.push_back(std::string{"PTX"} + behind_the_first);
  auto cubin = compile_to(walls, tools, source, architecture, "-cubin");
  if (!cubin) return tl::unexpected<error>{cubin.error()};
  result.kernels = take_kernel_resources(cubin->text);
  if (cubin->status.code != 0) {
    result.missing.push_back("SASS: nvcc made no cubin: " +
                             cubin->text.substr(0, cubin->text.find('\n')));
  } else {
    result.cubin = read_first(cubin->product.get(), most_listing);
    result.sass = disassemble(walls, tools, result.cubin, result.missing);
  }
  return result;
}

} // namespace kernelmill
