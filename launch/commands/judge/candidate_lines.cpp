#include "launch/commands/judge/candidate_lines.hpp"

#include "gpu/inspect/module_listing.hpp"
#include "launch/config/paths.hpp"

namespace kernelmill::commands {

namespace {

constexpr int longest_listing_ms = 120'000;

std::vector<listed_text> texts_of_cuda(examined_candidate& x, std::vector<std::string>& missing) {
  const auto& source = x.candidate.parsed.kernel;
  auto built = build_listing(x.bench.walls(), find_listing_tools(), source, x.gpu.architecture);
  if (!built || !built->compiled) {
    missing.push_back("lines of the source: " +
                      (built ? "nvcc refuses what was built otherwise" : built.error().message));
    return {};
  }
  missing.insert(missing.end(), built->missing.begin(), built->missing.end());
  return {{source, read_ptx(built->ptx, listed_source_name),
           read_sass(built->sass, listed_source_name)}};
}

std::vector<listed_text> texts_of_module(examined_candidate& x, std::vector<std::string>& missing) {
  toolchain_options options;
  options.backend = "cuda";
  options.architecture = x.gpu.architecture;
  options.python = x.python;
  build_cache cache{default_build_cache()};
  torch_toolchain toolchain{x.bench.walls(), options, cache};
  const auto& source = x.candidate.parsed.kernel;
  auto module = toolchain.list(source, x.what().directory, longest_listing_ms);
  if (!module || module->fault.cls != fault_class::none) {
    missing.push_back("lines of the source: " +
                      (module ? module->fault.message : module.error().message));
    return {};
  }
  std::vector<listed_text> result;
  for (auto& code :
       code_of_module(x.bench.walls(), find_listing_tools(), *module, source, missing)) {
    auto ptx = read_ptx(code.ptx, code.file), sass = read_sass(code.sass, code.file);
    result.push_back({std::move(code.source), std::move(ptx), std::move(sass)});
  }
  return result;
}

} // namespace

std::vector<listed_text> listed_texts(examined_candidate& x, std::vector<std::string>& missing) {
  return x.what().contract == contract_kind::torch ? texts_of_module(x, missing)
                                                   : texts_of_cuda(x, missing);
}

} // namespace kernelmill::commands
