// What is known of a kernel's speed without running it: tier 0, of the build that is shown.

#include "gpu/inspect/spill_lines.hpp"
#include "gpu/profiler/tier0.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/judging/inspecting/parts.hpp"
#include "launch/judging/tier0_text.hpp"
#include "launch/judging/verdict_text.hpp"

namespace kernelmill::inspecting {

namespace {

using json = nlohmann::ordered_json;

constexpr uint32_t bytes_of_register = 4;

struct built_kernel {
  kernel_resources takes;
  double occupancy = 0; ///< 0: unknown
};

// clang counts registers that are spilled; each is stored and loaded once.
kernel_resources of_amd(const gcn_resources& x) {
  auto spilled = bytes_of_register * (x.vgpr_spills + x.sgpr_spills);
  return {x.name, x.vgprs, spilled, spilled, x.scratch_bytes, x.lds_bytes};
}

std::vector<built_kernel> kernels_of(const inspected& x, uint32_t threads) {
  std::vector<built_kernel> result;
  for (const auto& code : x.codes) {
    for (const auto& k : code.code.kernels) {
      auto found = occupancy_for(x, k, threads);
      result.push_back({k, found ? found->share : 0});
    }
    for (const auto& k : code.amd) result.push_back({of_amd(k), 0});
  }
  return result;
}

std::vector<diagnostic> spills_of(const inspected& x) {
  std::vector<diagnostic> result;
  for (const auto& code : x.codes) {
    auto more = spill_remarks(code.code.kernels, {code.code.source, {}, code.sass});
    result.insert(result.end(), more.begin(), more.end());
  }
  return result;
}

Message<wire::BuildResult> build_of(const inspected& x, uint32_t threads) {
  auto kernels = kernels_of(x, threads);
  auto spills = spills_of(x);
  return build<wire::BuildResult>([&](wire::BuildResult::Builder out) {
    out.setCompiled(true);
    out.setToolchain("-arch=" + x.architecture);
    auto list = out.initKernels(static_cast<unsigned>(kernels.size()));
    for (unsigned i = 0; i < kernels.size(); ++i) {
      const auto& k = kernels[i].takes;
      list[i].setName(k.name);
      list[i].setRegisters(k.registers);
      list[i].setSpillStores(k.spill_stores);
      list[i].setSpillLoads(k.spill_loads);
      list[i].setStackFrame(k.stack_frame);
      list[i].setSharedBytes(k.shared_bytes);
      list[i].setOccupancy(kernels[i].occupancy);
    }
    auto remarks = out.initDiagnostics(static_cast<unsigned>(spills.size()));
    for (unsigned i = 0; i < spills.size(); ++i) {
      remarks[i].setLine(spills[i].line);
      remarks[i].setSeverity(spills[i].severity);
      remarks[i].setMessage(spills[i].message);
    }
  });
}

// Nothing was run: the machine's peaks take the place of an evaluation.
Message<wire::EvaluateResult> evaluation_of(const surroundings& x) {
  return build<wire::EvaluateResult>([&](wire::EvaluateResult::Builder out) {
    auto list = out.initCounters(3);
    auto set = [&](unsigned i, const char* name, double value) {
      list[i].setName(name);
      list[i].setValue(value);
    };
    set(0, "machine_memory_bandwidth", x.roof.bandwidth.value_or(0));
    set(1, "machine_flops", x.roof.flops.value_or(0));
    set(2, "machine_multiprocessors", x.multiprocessors);
  });
}

Message<wire::ProfileResult> tier0_of(const inspected& x, uint32_t threads) {
  task blank;
  blank.terms.backend = x.is_amd() ? "hip" : "cuda";
  const auto& what = x.around.what ? *x.around.what : blank;
  // Of a module's texts none is the one that lines of all are of.
  auto source = x.codes.size() == 1 ? x.codes.front().code.source : std::string{};
  auto found =
      tier0_profile(what, source, *build_of(x, threads).open(), *evaluation_of(x.around).open());
  return found ? std::move(*found) : Message<wire::ProfileResult>{};
}

// What a profile has and this one has not, each with where to get it.
std::vector<std::string> missing_in(const inspected& x, uint32_t threads) {
  std::vector<std::string> result{
      "times and the place under the roof: nothing was run; `kernelmill eval` times it on a GPU"};
  if (!x.around.no_roof.empty()) result.push_back("peaks of the roofline: " + x.around.no_roof);
  bool torch = x.around.what && x.around.what->contract == contract_kind::torch;
  if (torch)
    result.emplace_back("flops and bytes of a call: a task of the contract torch declares none");
  else if (!x.around.what)
    result.emplace_back("flops and bytes of a call: no task is named (--task)");
  if (x.is_amd())
    result.emplace_back("occupancy: section build has the waves that clang counts");
  else if (!x.around.what || x.around.what->contract != contract_kind::device)
    result.push_back("size of a launch: the host code decides it; occupancy is that of blocks of " +
                     std::to_string(threads) + " threads (--block)");
  return result;
}

json shape_of(const surroundings& x) {
  if (!x.what || x.what->contract == contract_kind::torch) return nullptr;
  return shape_text(*x.what, x.what->timed.scalars);
}

} // namespace

json profile_document(const inspected& x, const showing& how) {
  auto result = profile_json(*tier0_of(x, how.block_threads).open());
  for (const auto& line : missing_in(x, how.block_threads)) result["missing"].push_back(line);
  result["task"] = x.around.what ? json(x.around.what->id) : json(nullptr);
  result["shape"] = shape_of(x.around);
  result["block_threads"] = how.block_threads;
  return result;
}

std::string profile_words(const inspected& x, const showing& how) {
  auto result = tier0_text(*tier0_of(x, how.block_threads).open());
  for (const auto& line : missing_in(x, how.block_threads)) result += "missing: " + line + "\n";
  return result;
}

} // namespace kernelmill::inspecting
