// `kernelmill inspect`: what the compiler made of a kernel, beside its source.

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gpu/inspect/listing.hpp"
#include "gpu/inspect/module_listing.hpp"
#include "gpu/profiler/occupancy.hpp"
#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/tasks_root.hpp"
#include "launch/config/paths.hpp"
#include "launch/judging/candidate_judging.hpp"
#include "launch/machine/accelerators.hpp"
#include "launch/machine/programs.hpp"
#include "launch/machine/python.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

constexpr const char* usual_architecture = "sm_90";
constexpr int longest_build_ms = 120'000;
constexpr size_t narrowest_two_columns = 100; // of a terminal

// That of the first GPU, for what is not said.
std::string architecture_of(const invocation& in) {
  if (auto wanted = in.value("--arch"); !wanted.empty()) return wanted;
  for (const auto& gpu : find_accelerators().gpus)
    if (!gpu.architecture.empty()) return gpu.architecture;
  return usual_architecture;
}

// Code with its listings read.
struct inspected_code {
  explicit inspected_code(listed_code x)
      : code(std::move(x)), ptx(read_ptx(code.ptx, code.file)),
        sass(read_sass(code.sass, code.file)) {}

  listed_code code;
  std::vector<kernel_listing> ptx;
  std::vector<kernel_listing> sass;

  std::vector<kernel_view> views() const { return side_by_side(code.source, ptx, sass); }
};

using code_listing = std::vector<kernel_listing> inspected_code::*;

struct inspected {
  std::string architecture;
  bool compiled = false;
  std::string log;
  std::vector<inspected_code> codes; ///< of CUDA C++ one without a name
  std::vector<std::string> missing;
};

expected<void> inspect_cuda(sandbox& walls, std::string source, inspected& x) {
  auto build = build_listing(walls, find_listing_tools(), source, x.architecture);
  KM_TRY(build);
  x.compiled = build->compiled;
  x.log = std::move(build->log);
  x.missing = std::move(build->missing);
  x.codes.emplace_back(listed_code{"",
                                   listed_source_name,
                                   std::move(source),
                                   std::move(build->ptx),
                                   std::move(build->sass),
                                   std::move(build->kernels),
                                   {}});
  return {};
}

// The folder of the problem whose inputs a module is compiled for; empty without --task.
expected<std::string> problem_of(const invocation& in) {
  if (!in.has("--task")) return std::string{};
  auto roots = tasks_roots(in);
  KM_TRY(roots);
  auto what = choose_task(*roots, in.value("--task"));
  KM_TRY(what);
  if ((*what)->contract != contract_kind::torch)
    return configuration_error("unsupported_contract",
                               "a Python module answers no task of the contract native: " +
                                   (*what)->id,
                               "name a task of the contract torch; `kernelmill task list`");
  return (*what)->directory;
}

expected<void> inspect_module(const invocation& in, sandbox& walls, const std::string& source,
                              inspected& x) {
  auto problem = problem_of(in);
  KM_TRY(problem);
  auto python = find_python(in.value("--python"));
  KM_TRY(python);
  auto tools = find_listing_tools();
  toolchain_options options;
  options.backend = "cuda";
  options.architecture = x.architecture;
  options.python = python->path;
  build_cache cache{default_build_cache()};
  torch_toolchain toolchain{walls, options, cache};
  auto module = toolchain.list(source, *problem, longest_build_ms);
  KM_TRY(module);
  x.compiled = module->fault.cls == fault_class::none;
  x.log = x.compiled ? module->log : module->fault.message + "\n" + module->log;
  if (!x.compiled) return {};
  for (auto& code : code_of_module(walls, tools, *module, source, x.missing))
    x.codes.emplace_back(std::move(code));
  if (problem->empty())
    x.missing.emplace_back("Triton kernels: which inputs they get is not known; give --task");
  else if (x.codes.empty())
    x.missing.emplace_back(
        "GPU code: the module gives no CUDA source to torch, and Triton compiled nothing");
  return {};
}

expected<inspected> inspect_source(const invocation& in) {
  auto source = read_candidate(in.value("FILE"));
  KM_TRY(source);
  auto processes = start_spawner();
  KM_TRY(processes);
  sandbox walls{*processes};
  inspected x;
  x.architecture = architecture_of(in);
  auto done = in.has("--task") || in.value("FILE").ends_with(".py")
                  ? inspect_module(in, walls, *source, x)
                  : inspect_cuda(walls, std::move(*source), x);
  KM_TRY(done);
  return x;
}

// -- documents ------------------------------------------------------------------------------------

template <class F>
void each_kernel(const inspected& x, F&& take) {
  for (const auto& one : x.codes)
    for (const auto& k : one.code.kernels) take(one.code, k);
}

// By registers and static shared memory, for blocks of `threads`; nothing of an unknown GPU.
std::optional<occupancy> occupancy_for(const inspected& x, const kernel_resources& k,
                                       uint32_t threads) {
  auto limits = limits_of(x.architecture);
  if (!limits) return std::nullopt;
  return occupancy_of(*limits, {threads, k.registers, k.shared_bytes});
}

// Whose a document is, where there may be several texts.
json named(const listed_code& code, json document) {
  if (!code.name.empty()) document["of"] = cli::clean(code.name);
  return document;
}

json build_document(const inspected& x, uint32_t threads) {
  auto kernels = json::array();
  each_kernel(x, [&](const listed_code& code, const kernel_resources& k) {
    json one = {{"name", cli::clean(k.name)},     {"registers", k.registers},
                {"spill_stores", k.spill_stores}, {"spill_loads", k.spill_loads},
                {"stack_frame", k.stack_frame},   {"shared_bytes", k.shared_bytes},
                {"block_threads", threads},       {"occupancy", nullptr},
                {"occupancy_limit", nullptr}};
    if (auto found = occupancy_for(x, k, threads)) {
      one["occupancy"] = found->share;
      one["occupancy_limit"] = to_string(found->limit);
    }
    kernels.push_back(named(code, std::move(one)));
  });
  return {{"kernels", std::move(kernels)}, {"log", cli::clean(x.log)}};
}

json listing_document(const inspected& x, code_listing which) {
  auto result = json::array();
  for (const auto& one : x.codes)
    for (const auto& kernel : one.*which) {
      auto lines = json::array();
      for (const auto& line : kernel.lines)
        lines.push_back({{"line", line.source_line}, {"text", cli::clean(line.text)}});
      result.push_back(named(one.code, {{"name", cli::clean(kernel.name)},
                                        {"mix", instruction_mix(kernel)},
                                        {"code", std::move(lines)}}));
    }
  return result;
}

json triview_document(const inspected& x) {
  auto texts = [](const std::vector<std::string>& list) {
    auto result = json::array();
    for (const auto& text : list) result.push_back(cli::clean(text));
    return result;
  };
  auto result = json::array();
  for (const auto& one : x.codes)
    for (const auto& view : one.views()) {
      auto rows = json::array();
      for (const auto& row : view.rows)
        rows.push_back({{"line", row.line},
                        {"source", cli::clean(row.source)},
                        {"ptx", texts(row.ptx)},
                        {"sass", texts(row.sass)}});
      result.push_back(
          named(one.code, {{"name", cli::clean(view.name)}, {"rows", std::move(rows)}}));
    }
  return result;
}

json stages_document(const inspected& x) {
  auto result = json::array();
  for (const auto& one : x.codes)
    for (const auto& [stage, text] : one.code.stages)
      result.push_back(named(one.code, {{"stage", stage}, {"text", cli::clean(text)}}));
  return result;
}

// -- for people -----------------------------------------------------------------------------------

std::string build_text(const inspected& x, uint32_t threads) {
  std::vector<std::vector<std::string>> rows;
  each_kernel(x, [&](const listed_code&, const kernel_resources& k) {
    auto found = occupancy_for(x, k, threads);
    rows.push_back(
        {cli::clean(k.name), std::to_string(k.registers),
         std::to_string(k.spill_stores + k.spill_loads), std::to_string(k.stack_frame),
         std::to_string(k.shared_bytes),
         found ? fmt::format("{:.0f} % ({})", found->share * 100, to_string(found->limit)) : "-"});
  });
  if (rows.empty()) return {};
  return cli::format_table({"KERNEL", "REGISTERS>", "SPILLED>", "STACK>", "SHARED>",
                            fmt::format("OCCUPANCY AT {} THREADS>", threads)},
                           rows);
}

std::string mix_text(const kernel_listing& x) {
  std::string result;
  for (const auto& [name, count] : instruction_mix(x))
    result += fmt::format("{}{} {}", result.empty() ? "" : ", ", count, name);
  return result;
}

// Before the first of a text's kernels; nothing where there is one text.
std::string heading(const listed_code& x, bool colour) {
  if (x.name.empty()) return {};
  return cli::paint(colour, cli::colour::bold, "== " + cli::clean(x.name)) + "\n";
}

std::string listing_text(const inspected& x, code_listing which, bool colour) {
  std::string result;
  for (const auto& one : x.codes) {
    result += heading(one.code, colour);
    for (const auto& kernel : one.*which) {
      result += cli::paint(colour, cli::colour::bold, cli::clean(kernel.name)) + "  " +
                mix_text(kernel) + "\n";
      for (const auto& line : kernel.lines)
        result += (line.source_line > 0 ? fmt::format("{:>5}  ", line.source_line)
                                        : std::string(7, ' ')) +
                  cli::clean(line.text) + "\n";
    }
  }
  return result;
}

std::string stage_text(const inspected& x, const std::string& wanted, bool colour) {
  std::string result;
  for (const auto& one : x.codes)
    for (const auto& [stage, text] : one.code.stages)
      if (stage == wanted) result += heading(one.code, colour) + cli::clean(text) + "\n";
  return result;
}

// PTX at the left, SASS at the right; on a narrow terminal one below the other.
std::string code_text(const source_row& row, size_t width) {
  std::string result;
  if (width < narrowest_two_columns) {
    for (const auto& x : row.ptx) result += "       ptx   " + cli::clean(x) + "\n";
    for (const auto& x : row.sass) result += "       sass  " + cli::clean(x) + "\n";
    return result;
  }
  size_t half = (width - 10) / 2;
  for (size_t i = 0; i < std::max(row.ptx.size(), row.sass.size()); ++i) {
    auto left = cli::shorten(i < row.ptx.size() ? cli::clean(row.ptx[i]) : "", half);
    auto right = cli::shorten(i < row.sass.size() ? cli::clean(row.sass[i]) : "", half);
    if (!right.empty())
      left += std::string(half - std::min(half, cli::columns_of(left)), ' ') + " | " + right;
    result += "       " + left + "\n";
  }
  return result;
}

std::string triview_text(const inspected& x, bool colour) {
  auto width = cli::terminal_width(1);
  if (width == 0) width = 140;
  std::string result;
  for (const auto& one : x.codes) {
    result += heading(one.code, colour);
    for (const auto& view : one.views()) {
      result += cli::paint(colour, cli::colour::bold, cli::clean(view.name)) + "\n";
      for (const auto& row : view.rows) {
        auto head = row.line > 0 ? fmt::format("{:>5}  {}", row.line, cli::clean(row.source))
                                 : std::string{"    -  (no line is known)"};
        result += cli::paint(colour, cli::colour::yellow, head) + "\n" + code_text(row, width);
      }
    }
  }
  return result;
}

bool is_stage(const std::string& section) {
  return section == "ttir" || section == "ttgir" || section == "llir";
}

// -- the command ----------------------------------------------------------------------------------

expected<int> inspect(const invocation& in) {
  auto threads = in.integer("--block", 1, 1024);
  if (!threads) return tl::unexpected<error>{threads.error()};
  auto block = static_cast<uint32_t>(*threads);
  auto x = inspect_source(in);
  if (!x) return tl::unexpected<error>{x.error()};
  auto section = in.value("--section");
  bool all = section.empty();
  auto wants = [&](const char* name) { return x->compiled && (all || section == name); };
  if (in.json) {
    json document = {{"architecture", x->architecture}, {"compiled", x->compiled}};
    if (!x->compiled) document["log"] = cli::clean(x->log);
    if (wants("build")) document["build"] = build_document(*x, block);
    if (wants("ptx")) document["ptx"] = listing_document(*x, &inspected_code::ptx);
    if (wants("sass")) document["sass"] = listing_document(*x, &inspected_code::sass);
    if (wants("triview")) document["triview"] = triview_document(*x);
    if (x->compiled && (all || is_stage(section))) document["stages"] = stages_document(*x);
    document["missing"] = x->missing;
    cli::print_json(document);
    return cli::exit_ok;
  }
  if (!x->compiled) {
    cli::print(cli::clean(x->log) + "\nnot compiled\n");
    return cli::exit_ok;
  }
  if (wants("build"))
    if (auto text = build_text(*x, block); !text.empty()) cli::print(text + "\n");
  if (section == "ptx") cli::print(listing_text(*x, &inspected_code::ptx, in.colour_out));
  if (section == "sass") cli::print(listing_text(*x, &inspected_code::sass, in.colour_out));
  if (is_stage(section)) cli::print(stage_text(*x, section, in.colour_out));
  if (wants("triview")) cli::print(triview_text(*x, in.colour_out));
  for (const auto& what : x->missing) cli::talk("missing: " + cli::clean(what));
  return cli::exit_ok;
}

} // namespace

cli::command inspect_row() {
  return {"inspect",
          "Shows what the compiler made of a kernel: source, PTX and SASS side by side.",
          "kernelmill inspect kernel.cu --arch sm_90\n"
          "kernelmill inspect kernel.cu --section sass\n"
          "kernelmill inspect kernel.cu --section triview --json\n"
          "kernelmill inspect answer.py --task kernelbench/level1/19_ReLU --section triview\n"
          "kernelmill inspect answer.py --task kernelbench/level1/19_ReLU --section ttgir",
          "FILE is CUDA C++ of the contract native or device, or a Python module (.py): its CUDA "
          "sources, and the Triton "
          "kernels that it\n"
          "launches for the inputs of TASK, with Triton's stages. It is built anew in the sandbox, "
          "with -lineinfo; what is timed\n"
          "is built apart. No GPU is needed. SASS needs nvdisasm, which knows lines, or cuobjdump. "
          "Without a section: build\n"
          "and triview; with --json all.",
          {{"FILE", "Source file; - reads stdin.", true, false, completes::file, {}}},
          {{"--section",
            "NAME",
            "What to show: resources of the `build`, `ptx`, `sass`, `triview`, or a stage of "
            "Triton's: `ttir`, `ttgir`, "
            "`llir`.",
            "",
            false,
            {"build", "ptx", "sass", "triview", "ttir", "ttgir", "llir"},
            nothing},
           {"--arch",
            "ARCH",
            "Target architecture. Default: this machine's GPU, else sm_90.",
            "",
            false,
            {},
            nothing},
           {"--task",
            "TASK",
            "Id of the task that a Python module answers.",
            "",
            false,
            {},
            completes::task},
           python_path(),
           tasks_root(),
           {"--block", "N", "Threads of a block, for the occupancy.", "256", false, {}, nothing}},
          inspect};
}

} // namespace kernelmill::commands
