// `kernelmill inspect`: what the compiler made of a kernel, beside its source.

#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/judge/candidate_source.hpp"
#include "launch/commands/judge/left_bundle.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/tasks_root.hpp"
#include "launch/config/paths.hpp"
#include "launch/judging/candidate_judging.hpp"
#include "launch/judging/inspecting/compiling.hpp"
#include "launch/machine/accelerators.hpp"
#include "launch/machine/amd_gpu.hpp"
#include "launch/machine/backend.hpp"
#include "launch/machine/programs.hpp"
#include "launch/machine/python.hpp"
#include "launch/node/task_choice.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

// That of the first GPU of the kind that the file is for, for what is not said.
std::string architecture_of(const invocation& in) {
  if (auto wanted = in.value("--arch"); !wanted.empty()) return wanted;
  if (is_hip_name(in.value("FILE"))) {
    auto found = amd_architecture();
    return found.empty() ? usual_amd_architecture : found;
  }
  for (const auto& gpu : find_accelerators().gpus)
    if (!gpu.architecture.empty()) return gpu.architecture;
  return usual_architecture;
}

// Null without --task.
expected<task_ptr> named_task(const invocation& in) {
  if (!in.has("--task")) return nullptr;
  auto roots = tasks_roots(in);
  KM_TRY(roots);
  auto what = choose_task(*roots, in.value("--task"));
  KM_TRY(what);
  if ((*what)->contract == contract_kind::program)
    return configuration_error("unsupported_contract",
                               "failed to list the code of a program: task " + (*what)->id +
                                   " builds it by a command of its own",
                               "leave --task out to list the code of one file");
  if (in.value("FILE").ends_with(".py") && (*what)->contract != contract_kind::torch)
    return configuration_error("unsupported_contract",
                               "a Python module answers no task of the contract native: " +
                                   (*what)->id,
                               "name a task of the contract torch; `kernelmill task list`");
  return *what;
}

expected<inspecting::inspected> inspect_python(const invocation& in, sandbox& walls,
                                               const std::string& source, const task_ptr& what) {
  auto python = find_python(in.value("--python"));
  KM_TRY(python);
  toolchain_options options;
  options.backend = "cuda";
  options.architecture = architecture_of(in);
  options.python = python->path;
  options.cache_directory = default_build_cache();
  return inspecting::inspect_module(walls, source, what ? what->directory : std::string{},
                                    std::move(options));
}

// What a GPU of this machine can do at most, where the code is for one.
void add_roof(const std::string& architecture, inspecting::surroundings& to) {
  if (architecture.starts_with("gfx")) {
    to.no_roof = "they are asked of NVIDIA's driver alone";
    return;
  }
  for (const auto& gpu : find_accelerators().gpus) {
    if (gpu.architecture != architecture) continue;
    auto peaks = peaks_of(gpu);
    to.roof = {peaks.flops_per_second, peaks.memory_bytes_per_second};
    to.multiprocessors = peaks.multiprocessors.value_or(0);
    to.no_roof = peaks.memory_bytes_per_second ? "" : "the driver does not tell them";
    return;
  }
  to.no_roof = "this machine has no GPU of " + architecture;
}

// The task on the terms of this very candidate, and the GPU.
expected<inspecting::surroundings>
surroundings_of(const std::string& architecture, const std::string& source, const task_ptr& what) {
  inspecting::surroundings result;
  if (what) {
    judging_terms terms;
    terms.backend = architecture.starts_with("gfx") ? "hip" : "cuda";
    auto here = on_terms(*what, std::move(terms));
    KM_TRY(here);
    auto there = on_contract(*here, "auto", source);
    KM_TRY(there);
    result.what = std::move(*there);
  }
  add_roof(architecture, result);
  return result;
}

// A CPU's source compiles as CUDA as well, in seconds, and every section would be empty.
expected<void> check_gpu_source(const std::string& file, const std::string& source) {
  bool is_cpp = !is_hip_name(file) && (file.ends_with(".cpp") || file.ends_with(".cc") ||
                                       file.ends_with(".cxx") || file.ends_with(".c"));
  if (!is_cpp || source.find("__global__") != std::string::npos) return {};
  return configuration_error("usage",
                             "failed to inspect " + file +
                                 ": it defines no kernel of a GPU, and `inspect` shows the code of "
                                 "those",
                             "`kernelmill build " + file + "` compiles a CPU's source");
}

// A file of CUDA whose kernels are none of its own.
void say_without_kernels(const std::string& file, inspecting::inspected& x) {
  for (const auto& one : x.codes)
    if (!one.nearest().empty() || !one.code.kernels.empty() || !one.amd.empty()) return;
  x.missing.insert(x.missing.begin(), "kernels of a GPU: " + file +
                                          " defines none; `kernelmill build " + file +
                                          "` compiles a CPU's source");
}

struct inspected_file {
  std::string source;
  task_ptr what; ///< null: none was named
  inspecting::inspected found;
};

expected<inspected_file> inspect_file(const invocation& in, const inspecting::showing& how) {
  auto what = named_task(in);
  KM_TRY(what);
  auto source = read_candidate(in.value("FILE"));
  KM_TRY(source);
  bool python =
      in.value("FILE").ends_with(".py") || (*what && (*what)->contract == contract_kind::torch);
  if (!python) KM_TRY(check_gpu_source(in.value("FILE"), *source));
  auto processes = start_spawner();
  KM_TRY(processes);
  sandbox walls{*processes};
  cli::show_activity("compiling");
  auto x = python ? inspect_python(in, walls, *source, *what)
                  : inspecting::inspect_source(walls, *source, architecture_of(in));
  KM_TRY(x);
  if (!python && x->compiled) say_without_kernels(in.value("FILE"), *x);
  if (how.wants("profile")) {
    auto around = surroundings_of(x->architecture, *source, *what);
    KM_TRY(around);
    x->around = std::move(*around);
  }
  return inspected_file{std::move(*source), std::move(*what), std::move(*x)};
}

void show_inspected(const invocation& in, const inspecting::inspected& x,
                    const inspecting::showing& how, const json& document) {
  if (in.json) return cli::print_json(document);
  if (!x.compiled) return cli::print(cli::clean(x.log) + "\nnot compiled\n");
  cli::print(inspecting::text_of(x, how));
  for (const auto& what : x.missing) cli::talk("missing: " + cli::clean(what));
}

// What compiled it for looking at, in the place of the build that is timed.
Message<wire::BuildResult> as_build(const inspecting::inspected& x, const std::string& toolchain) {
  return build<wire::BuildResult>([&](wire::BuildResult::Builder out) {
    out.setCompiled(x.compiled);
    out.setLog(x.log);
    out.setToolchain(toolchain);
    std::vector<kernel_resources> all;
    for (const auto& one : x.codes)
      all.insert(all.end(), one.code.kernels.begin(), one.code.kernels.end());
    auto kernels = out.initKernels(static_cast<unsigned>(all.size()));
    for (unsigned i = 0; i < kernels.size(); ++i) {
      kernels[i].setName(all[i].name);
      kernels[i].setRegisters(all[i].registers);
      kernels[i].setSpillStores(all[i].spill_stores);
      kernels[i].setSpillLoads(all[i].spill_loads);
      kernels[i].setStackFrame(all[i].stack_frame);
      kernels[i].setSharedBytes(all[i].shared_bytes);
    }
  });
}

expected<void> leave_inspected(const invocation& in, const inspected_file& file, json document,
                               left_bundle& bundle) {
  const auto& x = file.found;
  chosen_backend machine;
  machine.name = x.is_amd() ? "hip" : "cuda";
  machine.architecture = x.architecture;
  auto toolchain = x.is_amd() ? std::string{"hipcc"} : "nvcc " + find_accelerators().nvcc_version;
  offered_candidate candidate;
  auto shown = std::make_shared<task>(file.what ? *file.what : task{});
  shown->terms.backend = machine.name;
  if (in.value("FILE").ends_with(".py")) shown->contract = contract_kind::torch;
  candidate.what = shown;
  candidate.parsed = as_source(file.source, *shown);
  candidate.sha256 = sha256_hex(candidate.parsed.kernel);
  bundle.facts = facts_of(candidate, as_build(x, toolchain), {}, std::nullopt);
  bundle.output = std::move(document);
  add_listings(x, bundle.tools);
  return bundle.leave(candidate, machine, {});
}

expected<int> inspect(const invocation& in) {
  auto threads = in.integer("--block", 1, 1024);
  KM_TRY(threads);
  inspecting::showing how{in.value("--section"), static_cast<uint32_t>(*threads),
                          cli::terminal_width(1), in.colour_out};
  auto bundle = left_bundle::begin(in, "inspect");
  KM_TRY(bundle);
  auto file = inspect_file(in, how);
  KM_TRY(file);
  const auto& x = file->found;
  json document = {{"architecture", x.architecture}, {"compiled", x.compiled}};
  if (!x.compiled)
    document["log"] = cli::clean(x.log);
  else if (in.json || bundle->wanted())
    document.update(inspecting::document_of(x, how));
  document["missing"] = json::array();
  for (const auto& what : x.missing) document["missing"].push_back(cli::clean(what));
  show_inspected(in, x, how, document);
  if (bundle->wanted()) KM_TRY(leave_inspected(in, *file, std::move(document), *bundle));
  return cli::exit_ok;
}

} // namespace

cli::command inspect_row() {
  return {"inspect",
          "Shows what the compiler made of a kernel: source, PTX and SASS, or GCN, side by side.",
          "kernelmill inspect kernel.cu --arch sm_90\n"
          "kernelmill inspect kernel.cu --section quality\n"
          "kernelmill inspect kernel.cu --section profile --task native/row_sum\n"
          "kernelmill inspect kernel.cu --section triview --json\n"
          "kernelmill inspect kernel.hip --arch gfx90a\n"
          "kernelmill inspect answer.py --task kernelbench/level1/19_ReLU --section triview\n"
          "kernelmill inspect answer.py --task kernelbench/level1/19_ReLU --section ttgir",
          "FILE is CUDA C++ of the contract native or device, HIP (.hip, .hip.cpp), or a Python "
          "module (.py): its CUDA sources,\n"
          "and the Triton kernels that it launches for the inputs of TASK, with Triton's stages. "
          "It is built again in the sandbox,\n"
          "with a table of lines; what is timed is built apart. No GPU is needed. SASS needs "
          "nvdisasm, which knows lines, or\n"
          "cuobjdump. HIP needs hipcc; --arch decides for which GPU. Without a section: build and "
          "triview; with --json all.\n"
          "Section `quality` counts what the instructions do, with lines: widths of loads and "
          "stores, spills, tensor cores, double\n"
          "precision, barriers, loops. Section `profile` tells what the build and the machine do "
          "without a run.",
          {{"FILE", "Source file; - reads stdin.", true, false, completes::file, {}}},
          {{"--section", "NAME",
            "What to show: resources of the `build`, `ptx`, `sass`, `gcn` of an AMD GPU, "
            "`triview`, `profile`, `quality`, or a stage of Triton's: `ttir`, `ttgir`, `llir`.",
            "", false, inspecting::section_names(), nothing},
           architecture_option(),
           {"--task",
            "TASK",
            "Id of the task that FILE answers. Triton's kernels and the section `profile` need "
            "one.",
            "",
            false,
            {},
            completes::task},
           python_path(),
           bundle_option(),
           tasks_root(),
           {"--block", "N", "Threads of a block, for the occupancy.", "256", false, {}, nothing}},
          inspect};
}

} // namespace kernelmill::commands
