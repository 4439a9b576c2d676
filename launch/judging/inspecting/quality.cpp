// Facts of the code: each is a count of instructions, with the lines that they are of.

#include <algorithm>

#include <fmt/format.h>

#include "gpu/inspect/code_quality.hpp"
#include "gpu/inspect/loops.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/judging/inspecting/parts.hpp"

namespace kernelmill::inspecting {

namespace {

using json = nlohmann::ordered_json;

constexpr size_t name_columns = 22;

const char* listing_name(const inspected_code& x) {
  if (!x.gcn.empty()) return "gcn";
  return x.sass.empty() ? "ptx" : "sass";
}

const kernel_resources* resources_of(const inspected_code& x, const std::string& name) {
  for (const auto& k : x.code.kernels)
    if (k.name == name) return &k;
  return nullptr;
}

const gcn_resources* amd_resources_of(const inspected_code& x, const std::string& name) {
  for (const auto& k : x.amd)
    if (k.name == name) return &k;
  return nullptr;
}

// -- documents ------------------------------------------------------------------------------------

json lines_json(const counted_code& x) {
  auto lines = json::array();
  for (const auto& one : x.lines)
    lines.push_back({{"line", one.line}, {"instructions", one.instructions}});
  return {{"what", x.what}, {"instructions", x.instructions}, {"lines", std::move(lines)}};
}

json access_json(const counted_accesses& x) {
  auto result = lines_json(x);
  result["bits"] = json::object();
  for (auto [bits, count] : x.by_bits) result["bits"][std::to_string(bits)] = count;
  result["wide_share"] = x.wide_share();
  return result;
}

json loop_json(const loop_facts& x) {
  auto repeated = json::array();
  for (const auto& one : x.repeated)
    repeated.push_back(
        {{"line", one.line}, {"opcode", cli::clean(one.opcode)}, {"times", one.times}});
  return {{"first_line", x.first_line},     {"last_line", x.last_line}, {"depth", x.depth},
          {"instructions", x.instructions}, {"barriers", x.barriers},   {"repeated", repeated}};
}

json spills_json(const inspected_code& code, const std::string& name) {
  if (const auto* k = resources_of(code, name))
    return {{"store_bytes", k->spill_stores},
            {"load_bytes", k->spill_loads},
            {"stack_frame", k->stack_frame}};
  if (const auto* k = amd_resources_of(code, name))
    return {
        {"vgprs", k->vgpr_spills}, {"sgprs", k->sgpr_spills}, {"stack_frame", k->scratch_bytes}};
  return nullptr;
}

json kernel_json(const inspected_code& code, const kernel_listing& kernel) {
  auto x = quality_of(kernel);
  json result = {{"name", cli::clean(x.name)},
                 {"listing", listing_name(code)},
                 {"instructions", x.instructions},
                 {"mix", x.mix},
                 {"spills", spills_json(code, x.name)},
                 {"accesses", json::array()},
                 {"kinds", json::array()},
                 {"loops", nullptr},
                 {"live_registers", nullptr},
                 {"takes_doubles", x.takes_doubles ? json(*x.takes_doubles) : json(nullptr)}};
  for (const auto& one : x.accesses) result["accesses"].push_back(access_json(one));
  for (const auto& one : x.kinds) result["kinds"].push_back(lines_json(one));
  if (x.loops) {
    result["loops"] = json::array();
    for (const auto& one : *x.loops) result["loops"].push_back(loop_json(one));
  }
  if (x.live) result["live_registers"] = {{"most", x.live->registers}, {"line", x.live->line}};
  return result;
}

// -- texts ----------------------------------------------------------------------------------------

std::string row(std::string name, const std::string& text) {
  name = "  " + name;
  name.resize(std::max(name.size() + 1, name_columns), ' ');
  return cli::hanging(name, name_columns, text);
}

// "line 41 (5), line 50"
std::string lines_text(const counted_code& x) {
  std::string result;
  uint32_t told = 0;
  for (const auto& one : x.lines) {
    told += one.instructions;
    result += fmt::format("{}line {}", result.empty() ? "; " : ", ", one.line);
    if (one.instructions > 1) result += fmt::format(" ({})", one.instructions);
  }
  if (told < x.instructions) result += fmt::format("; {} elsewhere", x.instructions - told);
  return result;
}

std::string access_text(const counted_accesses& x) {
  std::string widths;
  for (auto [bits, count] : x.by_bits)
    widths += fmt::format("{}{} of {} bits", widths.empty() ? "" : ", ", count, bits);
  return fmt::format("{}: {}; {:.0f} % of 64 bits or more{}", x.instructions, widths,
                     100 * x.wide_share(), lines_text(x));
}

std::string spills_text(const inspected_code& code, const std::string& name) {
  if (const auto* k = resources_of(code, name)) {
    if (k->spill_stores + k->spill_loads == 0) return "none";
    return fmt::format(
        "{} bytes stored, {} loaded a thread, among the instructions on local memory",
        k->spill_stores, k->spill_loads);
  }
  if (const auto* k = amd_resources_of(code, name)) {
    if (k->vgpr_spills + k->sgpr_spills == 0) return "none";
    return fmt::format("{} VGPRs, {} SGPRs", k->vgpr_spills, k->sgpr_spills);
  }
  return "unknown: the build does not tell";
}

std::string kind_text(const counted_code& x, const code_quality& of) {
  if (x.instructions == 0) return "none";
  auto result = std::to_string(x.instructions) + lines_text(x);
  if (x.what == "double precision" && of.takes_doubles == false)
    result += "; no parameter of the kernel is a double";
  return result;
}

std::string loop_text(const loop_facts& x) {
  auto place = x.first_line == 0 ? std::string{"no line is known"}
               : x.first_line == x.last_line
                   ? fmt::format("line {}", x.first_line)
                   : fmt::format("lines {} to {}", x.first_line, x.last_line);
  auto result = fmt::format("{}{}, {} instructions a pass", place,
                            x.depth > 1 ? fmt::format(", depth {}", x.depth) : "", x.instructions);
  if (x.barriers > 0)
    result += fmt::format(", {} barrier{}", x.barriers, x.barriers == 1 ? "" : "s");
  for (const auto& one : x.repeated)
    result += fmt::format("; {} of line {} stands there {} times", cli::clean(one.opcode), one.line,
                          one.times);
  return result;
}

std::string mix_row(const code_quality& x) {
  std::string result = std::to_string(x.instructions) + ":";
  for (const auto& [name, count] : x.mix)
    result += fmt::format("{} {} {}", result.ends_with(':') ? "" : ",", count, name);
  return result;
}

std::string kernel_text(const inspected_code& code, const kernel_listing& kernel, bool colour) {
  auto x = quality_of(kernel);
  auto result = cli::paint(colour, cli::colour::bold, cli::clean(x.name)) + "  by its " +
                listing_name(code) + "\n";
  result += row("instructions", mix_row(x));
  if (x.live)
    result += row(
        "live registers",
        fmt::format("at most {}{}", x.live->registers,
                    x.live->line > 0 ? fmt::format(", at line {}", x.live->line) : std::string{}));
  result += row("spills", spills_text(code, x.name));
  for (const auto& one : x.accesses) result += row(std::string{one.what}, access_text(one));
  for (const auto& one : x.kinds) result += row(std::string{one.what}, kind_text(one, x));
  if (!x.loops)
    return result +
           row("loops", "unknown: the listing does not tell where a jump leads, or has too many");
  if (x.loops->empty()) result += row("loops", "none");
  for (const auto& one : *x.loops) result += row("loop", loop_text(one));
  if (x.loops->size() == most_loops)
    result += row("loops", "there may be more; the first are told");
  return result;
}

} // namespace

json quality_document(const inspected& x) {
  auto result = json::array();
  for (const auto& code : x.codes)
    for (const auto& kernel : code.nearest())
      result.push_back(named(code.code, kernel_json(code, kernel)));
  return result;
}

std::string quality_text(const inspected& x, const showing& how) {
  std::string result;
  for (const auto& code : x.codes) {
    result += heading(code.code, how.colour);
    for (const auto& kernel : code.nearest()) result += kernel_text(code, kernel, how.colour);
  }
  return result;
}

} // namespace kernelmill::inspecting
