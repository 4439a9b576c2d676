// `kernelmill inspect`: what the compiler made of a kernel, beside its source.

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gpu/inspect/listed_build.hpp"
#include "gpu/inspect/listing.hpp"
#include "gpu/profiler/occupancy.hpp"
#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/options.hpp"
#include "launch/judging/candidate_judging.hpp"
#include "launch/machine/accelerators.hpp"
#include "launch/machine/programs.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

constexpr const char* usual_architecture = "sm_90";
constexpr size_t narrowest_two_columns = 100; // of a terminal

// That of the first GPU, for what is not said.
std::string architecture_of(const invocation& in) {
  if (auto wanted = in.value("--arch"); !wanted.empty()) return wanted;
  for (const auto& gpu : find_accelerators().gpus)
    if (!gpu.architecture.empty()) return gpu.architecture;
  return usual_architecture;
}

struct inspected {
  std::string source;
  std::string architecture;
  listed_build build;
  std::vector<kernel_listing> ptx;
  std::vector<kernel_listing> sass;
};

expected<inspected> inspect_source(const invocation& in) {
  auto source = read_candidate(in.value("FILE"));
  if (!source) return tl::unexpected<error>{source.error()};
  auto processes = start_spawner();
  if (!processes) return tl::unexpected<error>{processes.error()};
  sandbox walls{*processes};
  inspected x;
  x.source = std::move(*source);
  x.architecture = architecture_of(in);
  auto build = build_listing(walls, find_listing_tools(), x.source, x.architecture);
  if (!build) return tl::unexpected<error>{build.error()};
  x.build = std::move(*build);
  x.ptx = read_ptx(x.build.ptx, listed_source_name);
  x.sass = read_sass(x.build.sass, listed_source_name);
  return x;
}

// -- documents ------------------------------------------------------------------------------------

// By registers and static shared memory, for blocks of `threads`; nothing of an unknown GPU.
std::optional<occupancy> occupancy_for(const inspected& x, const kernel_resources& k,
                                       uint32_t threads) {
  auto limits = limits_of(x.architecture);
  if (!limits) return std::nullopt;
  return occupancy_of(*limits, {threads, k.registers, k.shared_bytes});
}

json build_document(const inspected& x, uint32_t threads) {
  auto kernels = json::array();
  for (const auto& k : x.build.kernels) {
    json one = {{"name", cli::clean(k.name)},     {"registers", k.registers},
                {"spill_stores", k.spill_stores}, {"spill_loads", k.spill_loads},
                {"stack_frame", k.stack_frame},   {"shared_bytes", k.shared_bytes},
                {"block_threads", threads},       {"occupancy", nullptr},
                {"occupancy_limit", nullptr}};
    if (auto found = occupancy_for(x, k, threads)) {
      one["occupancy"] = found->share;
      one["occupancy_limit"] = to_string(found->limit);
    }
    kernels.push_back(std::move(one));
  }
  return {{"kernels", std::move(kernels)}, {"log", cli::clean(x.build.log)}};
}

json listing_document(const std::vector<kernel_listing>& list) {
  auto result = json::array();
  for (const auto& x : list) {
    auto lines = json::array();
    for (const auto& line : x.lines)
      lines.push_back({{"line", line.source_line}, {"text", cli::clean(line.text)}});
    result.push_back(
        {{"name", cli::clean(x.name)}, {"mix", instruction_mix(x)}, {"code", std::move(lines)}});
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
  for (const auto& view : side_by_side(x.source, x.ptx, x.sass)) {
    auto rows = json::array();
    for (const auto& row : view.rows)
      rows.push_back({{"line", row.line},
                      {"source", cli::clean(row.source)},
                      {"ptx", texts(row.ptx)},
                      {"sass", texts(row.sass)}});
    result.push_back({{"name", cli::clean(view.name)}, {"rows", std::move(rows)}});
  }
  return result;
}

// -- for people -----------------------------------------------------------------------------------

std::string build_text(const inspected& x, uint32_t threads) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& k : x.build.kernels) {
    auto found = occupancy_for(x, k, threads);
    rows.push_back(
        {cli::clean(k.name), std::to_string(k.registers),
         std::to_string(k.spill_stores + k.spill_loads), std::to_string(k.stack_frame),
         std::to_string(k.shared_bytes),
         found ? fmt::format("{:.0f} % ({})", found->share * 100, to_string(found->limit)) : "-"});
  }
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

std::string listing_text(const std::vector<kernel_listing>& list, bool colour) {
  std::string result;
  for (const auto& x : list) {
    result += cli::paint(colour, cli::colour::bold, cli::clean(x.name)) + "  " + mix_text(x) + "\n";
    for (const auto& line : x.lines)
      result +=
          (line.source_line > 0 ? fmt::format("{:>5}  ", line.source_line) : std::string(7, ' ')) +
          cli::clean(line.text) + "\n";
  }
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
  for (const auto& view : side_by_side(x.source, x.ptx, x.sass)) {
    result += cli::paint(colour, cli::colour::bold, cli::clean(view.name)) + "\n";
    for (const auto& row : view.rows) {
      auto head = row.line > 0 ? fmt::format("{:>5}  {}", row.line, cli::clean(row.source))
                               : std::string{"    -  (no line is known)"};
      result += cli::paint(colour, cli::colour::yellow, head) + "\n" + code_text(row, width);
    }
  }
  return result;
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
  auto wants = [&](const char* name) { return x->build.compiled && (all || section == name); };
  if (in.json) {
    json document = {{"architecture", x->architecture}, {"compiled", x->build.compiled}};
    if (!x->build.compiled) document["log"] = cli::clean(x->build.log);
    if (wants("build")) document["build"] = build_document(*x, block);
    if (wants("ptx")) document["ptx"] = listing_document(x->ptx);
    if (wants("sass")) document["sass"] = listing_document(x->sass);
    if (wants("triview")) document["triview"] = triview_document(*x);
    document["missing"] = x->build.missing;
    cli::print_json(document);
    return cli::exit_ok;
  }
  if (!x->build.compiled) {
    cli::print(cli::clean(x->build.log) + "\nnot compiled\n");
    return cli::exit_ok;
  }
  if (wants("build")) cli::print(build_text(*x, block) + "\n");
  if (section == "ptx") cli::print(listing_text(x->ptx, in.colour_out));
  if (section == "sass") cli::print(listing_text(x->sass, in.colour_out));
  if (wants("triview")) cli::print(triview_text(*x, in.colour_out));
  for (const auto& what : x->build.missing) cli::talk("missing: " + cli::clean(what));
  return cli::exit_ok;
}

} // namespace

cli::command inspect_row() {
  return {"inspect",
          "Shows what the compiler made of a kernel: source, PTX and SASS side by side.",
          "kernelmill inspect kernel.cu --arch sm_90\n"
          "kernelmill inspect kernel.cu --section sass\n"
          "kernelmill inspect kernel.cu --section triview --json",
          "FILE is CUDA C++ of the contract native or device. nvcc builds it anew in the sandbox, "
          "with -lineinfo; what is timed\n"
          "is built apart. No GPU is needed. SASS needs nvdisasm, which knows lines, or cuobjdump. "
          "Without a section: build\n"
          "and triview; with --json all.",
          {{"FILE", "Source file; - reads stdin.", true, false, completes::file, {}}},
          {{"--section",
            "NAME",
            "What to show: resources of the `build`, `ptx`, `sass`, or `triview`.",
            "",
            false,
            {"build", "ptx", "sass", "triview"},
            nothing},
           {"--arch",
            "ARCH",
            "Target architecture. Default: this machine's GPU, else sm_90.",
            "",
            false,
            {},
            nothing},
           {"--block", "N", "Threads of a block, for the occupancy.", "256", false, {}, nothing}},
          inspect};
}

} // namespace kernelmill::commands
