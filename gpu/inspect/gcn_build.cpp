#include "gpu/inspect/gcn_build.hpp"

#include <algorithm>

#include "gpu/toolchain/compiler_facts.hpp"
#include "gpu/toolchain/compiler_run.hpp"
#include "gpu/toolchain/diagnostics.hpp"
#include "messages/base/files.hpp"

namespace kernelmill {

namespace {

constexpr size_t most_assembly = 8 << 20;
constexpr size_t longest_hip_log = 16 << 10;

// The flags of what is timed, up to what comes out.
std::vector<std::string> listing_command(const std::string& hipcc,
                                         const std::string& architecture) {
  auto result = hipcc_command(hipcc, architecture);
  std::erase(result, "-shared");
  // What is for the linker is not used then, and clang would say so of each.
  result.insert(result.end(), {"--cuda-device-only", "-S", "-gline-tables-only",
                               "-Qunused-arguments", "-fno-color-diagnostics", "-ferror-limit=20",
                               listed_hip_name, "-o", product_path});
  return result;
}

} // namespace

expected<gcn_build> build_gcn(sandbox& walls, const std::string& hipcc, const std::string& source,
                              const std::string& architecture) {
  if (hipcc.empty())
    return infrastructure_error("toolchain_missing", "failed to find hipcc, which makes assembly",
                                "apt install hipcc, or set ROCM_PATH or HIPCC");
  auto facts = ask_hipcc(walls, hipcc, architecture, {}); // whether it knows the architecture
  KM_TRY(facts);
  compiler_job job;
  job.argv = listing_command(hipcc, architecture);
  job.path = facts->path;
  job.mounts = facts->mounts;
  job.source_name = listed_hip_name;
  // In the sandbox the file is one of memory, and its own name would be in the line table.
  job.source = "#line 1 \"";
  job.source.append(listed_hip_name).append("\"\n").append(source);
  job.memory_bytes = uint64_t{4} << 30;
  job.cpu_seconds = 60;
  auto outcome = run_compiler(walls, job);
  KM_TRY(outcome);
  gcn_build result;
  result.compiled = outcome->status.code == 0 && !outcome->timed_out;
  result.log = clean_log(outcome->text, longest_hip_log);
  if (result.compiled) result.assembly = read_first(outcome->product.get(), most_assembly);
  return result;
}

} // namespace kernelmill
