#include "gpu/inspect/spill_lines.hpp"

#include "gpu/inspect/listed_build.hpp"
#include "gpu/profiler/spill_remark.hpp"

namespace kernelmill {

namespace {

constexpr size_t most_of_a_kernel = 6;

} // namespace

std::vector<diagnostic> spill_remarks(const std::vector<kernel_resources>& kernels,
                                      const listed_text& text) {
  std::vector<diagnostic> result;
  for (const auto& kernel : kernels) {
    if (kernel.spill_stores + kernel.spill_loads == 0) continue;
    auto lines = lines_with("local memory", text, kernel.name);
    if (lines.size() > most_of_a_kernel) lines.resize(most_of_a_kernel);
    for (const auto& x : lines)
      result.push_back({listed_source_name, x.line, 0, spill_remark_severity,
                        spill_remark({kernel.name, x.instructions})});
  }
  return result;
}

std::vector<diagnostic> find_spill_lines(sandbox& walls, const std::string& source,
                                         const std::string& architecture) {
  auto tools = find_listing_tools();
  if (tools.nvcc.empty() || tools.nvdisasm.empty()) return {};
  auto built = build_listing(walls, tools, source, architecture);
  if (!built || !built->compiled) return {};
  return spill_remarks(built->kernels, {source, {}, read_sass(built->sass, listed_source_name)});
}

} // namespace kernelmill
