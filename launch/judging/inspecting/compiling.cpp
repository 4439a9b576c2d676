#include "launch/judging/inspecting/compiling.hpp"

#include <algorithm>
#include <utility>

#include "gpu/inspect/gcn_build.hpp"
#include "gpu/toolchain/build_cache.hpp"
#include "gpu/toolchain/compiler_facts.hpp"
#include "gpu/toolchain/torch_toolchain.hpp"

namespace kernelmill::inspecting {

namespace {

constexpr int longest_build_ms = 120'000;

// Each text says anew what it lacks.
void say_once(std::vector<std::string>& missing) {
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
}

void tell_what_was_cut(inspected& x) {
  for (const auto& code : x.codes)
    for (auto [name, listing] :
         {std::pair{"PTX", &code.ptx}, {"SASS", &code.sass}, {"GCN", &code.gcn}})
      if (is_full(*listing))
        x.missing.push_back(std::string{name} +
                            ": what lies behind its first 64 kernels or 100,000 "
                            "lines, if any; it is not counted either");
  say_once(x.missing);
}

expected<inspected> inspect_cuda(sandbox& walls, std::string source,
                                 const std::string& architecture) {
  auto tools = find_listing_tools();
  auto build = build_listing(walls, tools, source, architecture);
  KM_TRY(build);
  inspected x{architecture, build->compiled, std::move(build->log), {}, std::move(build->missing)};
  auto life = life_ranges(walls, tools, build->cubin, x.missing);
  x.codes.emplace_back(listed_code{"",
                                   listed_source_name,
                                   std::move(source),
                                   std::move(build->ptx),
                                   std::move(build->sass),
                                   std::move(build->kernels),
                                   {},
                                   {},
                                   std::move(build->cubin),
                                   std::move(life)});
  tell_what_was_cut(x);
  return x;
}

expected<inspected> inspect_hip(sandbox& walls, std::string source,
                                const std::string& architecture) {
  auto build = build_gcn(walls, find_hipcc(), source, architecture);
  KM_TRY(build);
  inspected x{architecture, build->compiled, std::move(build->log), {}, {}};
  x.codes.emplace_back(listed_code{
      "", listed_hip_name, std::move(source), {}, {}, {}, {}, std::move(build->assembly)});
  tell_what_was_cut(x);
  return x;
}

} // namespace

expected<inspected> inspect_source(sandbox& walls, std::string source,
                                   const std::string& architecture) {
  return architecture.starts_with("gfx") ? inspect_hip(walls, std::move(source), architecture)
                                         : inspect_cuda(walls, std::move(source), architecture);
}

inspected of_module(sandbox& walls, const listing_tools& tools, const listed_module& x,
                    const std::string& source, const std::string& architecture) {
  inspected result{architecture, x.fault.cls == fault_class::none, x.log, {}, {}};
  if (!result.compiled) {
    result.log = x.fault.message + "\n" + x.log;
    return result;
  }
  for (auto& code : code_of_module(walls, tools, x, source, result.missing)) {
    code.life_ranges = life_ranges(walls, tools, code.cubin, result.missing);
    result.codes.emplace_back(std::move(code));
  }
  tell_what_was_cut(result);
  if (result.codes.empty())
    result.missing.emplace_back(
        "GPU code: the module gives no CUDA source to torch, and Triton compiled nothing");
  return result;
}

expected<inspected> inspect_module(sandbox& walls, const std::string& source,
                                   const std::string& problem, toolchain_options options) {
  build_cache cache{options.cache_directory};
  auto architecture = options.architecture;
  torch_toolchain toolchain{walls, std::move(options), cache};
  auto module = toolchain.list(source, problem, longest_build_ms);
  KM_TRY(module);
  return of_module(walls, find_listing_tools(), *module, source, architecture);
}

} // namespace kernelmill::inspecting
