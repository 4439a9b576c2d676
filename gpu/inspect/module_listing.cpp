#include "gpu/inspect/module_listing.hpp"

#include <algorithm>
#include <map>

#include "gpu/inspect/listing.hpp"
#include "messages/base/base64.hpp"
#include "messages/base/text.hpp"

namespace kernelmill {

namespace {

constexpr size_t most_texts = 64;
constexpr const char* module_file = "candidate.py"; // record.py imports it from there

// Before it a compiler names the headers that lead there.
std::string first_error(const std::string& log) {
  std::string_view rest = log;
  while (!rest.empty())
    if (auto line = trimmed(next_line(rest)); line.find("error") != line.npos)
      return std::string{line};
  return log.substr(0, log.find('\n'));
}

listed_code code_of_extension(sandbox& walls, const listing_tools& tools, const listed_extension& x,
                              std::vector<std::string>& missing) {
  listed_code result{x.name, x.name, x.source, x.ptx, {}, {}, {}};
  auto log = x.log;
  result.kernels = take_kernel_resources(log);
  if (x.cubin.empty())
    missing.push_back(x.name + ": nvcc made no cubin: " + first_error(log));
  else
    result.sass = disassemble(walls, tools, x.cubin, missing);
  result.cubin = x.cubin;
  return result;
}

// Triton's cache has a folder for each kernel with its options, and in it a file for each stage:
// "HASH/softmax.ptx".
using triton_stages = std::map<std::string, std::string>;

std::map<std::string, triton_stages> kernels_of_triton(const listed_module& x) {
  std::map<std::string, triton_stages> result;
  for (const auto& [path, text] : x.triton_files) {
    auto dot = path.rfind('.');
    if (dot == path.npos) continue;
    auto bytes = from_base64(text);
    if (bytes) result[path.substr(0, dot)][path.substr(dot + 1)] = std::move(*bytes);
  }
  std::erase_if(result, [](const auto& one) { return !one.second.contains("ptx"); });
  return result;
}

listed_code code_of_triton(sandbox& walls, const listing_tools& tools, const std::string& place,
                           const triton_stages& stages, const std::string& source,
                           std::vector<std::string>& missing) {
  auto stage = [&](const char* name) {
    auto found = stages.find(name);
    return found == stages.end() ? std::string{} : found->second;
  };
  listed_code result{
      place.substr(place.find('/') + 1), module_file, source, stage("ptx"), {}, {}, {}};
  for (const char* name : {"ttir", "ttgir", "llir"})
    if (auto text = stage(name); !text.empty()) result.stages.emplace_back(name, std::move(text));
  if (auto cubin = stage("cubin"); !cubin.empty()) {
    result.sass = disassemble(walls, tools, cubin, missing);
    result.kernels = read_resource_usage(resource_usage(walls, tools, cubin));
    result.cubin = std::move(cubin);
  }
  return result;
}

} // namespace

std::vector<listed_code> code_of_module(sandbox& walls, const listing_tools& tools,
                                        const listed_module& x, const std::string& source,
                                        std::vector<std::string>& missing) {
  std::vector<listed_code> result;
  for (const auto& one : x.extensions)
    if (result.size() < most_texts) result.push_back(code_of_extension(walls, tools, one, missing));
  for (const auto& [place, stages] : kernels_of_triton(x))
    if (result.size() < most_texts)
      result.push_back(code_of_triton(walls, tools, place, stages, source, missing));
  if (!x.triton_problem.empty())
    missing.push_back("Triton kernels, not all of them: " + x.triton_problem);
  // Each says it anew.
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  return result;
}

} // namespace kernelmill
