#include "launch/commands/judge/trace_reports.hpp"

#include <fmt/format.h>

#include "gpu/profiler/cards.hpp"
#include "gpu/profiler/rocm_smi.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/judge/tool_reports.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

// -- documents ------------------------------------------------------------------------------------

template <class T>
json or_null(const std::optional<T>& x) {
  return x ? json(*x) : json();
}

json times_json(const std::optional<kernel_times>& x) {
  if (!x) return {};
  return {{"total_ns", x->total_ns},
          {"median_ns", x->median_ns},
          {"min_ns", x->min_ns},
          {"max_ns", x->max_ns}};
}

json traced_json(const trace_report& report) {
  auto result = json::array();
  for (const auto& x : report.kernels) {
    auto counters = json::array();
    for (const auto& one : x.counters)
      counters.push_back({{"name", cli::clean(one.name)},
                          {"dispatches", one.dispatches},
                          {"mean", one.mean},
                          {"min", one.min},
                          {"max", one.max}});
    auto values = values_of(x, report.gpu);
    result.push_back({{"kernel", cli::clean(x.kernel)},
                      {"calls", x.calls},
                      {"times", times_json(x.times)},
                      {"grid", or_null(x.shape.grid)},
                      {"block", or_null(x.shape.block)},
                      {"registers", or_null(x.shape.registers)},
                      {"shared_bytes", or_null(x.shape.shared)},
                      {"metrics", values_json(values)},
                      {"counters", std::move(counters)},
                      {"cards", cards_json(read_cards(values))}});
  }
  return result;
}

json devices_json(const trace_report& report) {
  auto result = json::array();
  for (const auto& x : report.devices)
    result.push_back({{"device", x.device},
                      {"launches", x.launches},
                      {"span_ns", x.span_ns},
                      {"busy_ns", x.busy_ns},
                      {"kernel_ns", x.kernel_ns},
                      {"copy_ns", x.copy_ns},
                      {"overlap_ns", x.overlap_ns},
                      {"launch_gaps", x.launch_gaps},
                      {"launch_gap_ns", x.launch_gap_ns},
                      {"cards", cards_json(read_cards(values_of(x)))}});
  return result;
}

json copies_json(const trace_report& report) {
  auto result = json::array();
  for (const auto& x : report.copies)
    result.push_back({{"kind", cli::clean(x.kind)},
                      {"count", x.count},
                      {"total_ns", x.total_ns},
                      {"bytes", or_null(x.bytes)}});
  return result;
}

json readings_json(const trace_report& report) {
  auto result = json::array();
  for (const auto& x : report.readings) {
    json one = {{"card", cli::clean(x.card)},
                {"name", cli::clean(x.name)},
                {"architecture", cli::clean(x.architecture)}};
    for (const auto& row : reading_table()) one[std::string{row.name}] = or_null(x.*row.value);
    result.push_back(std::move(one));
  }
  return result;
}

json gpu_json(const trace_gpu& x) {
  if (x.name.empty() && x.architecture.empty()) return {};
  return {{"name", cli::clean(x.name)},
          {"architecture", x.architecture},
          {"multiprocessors", x.multiprocessors}};
}

// -- text -----------------------------------------------------------------------------------------

std::string microseconds(uint64_t ns) {
  return fmt::format("{:.2f}", static_cast<double>(ns) / 1e3);
}

std::string extent_text(const std::optional<extent>& x) {
  if (!x) return "-";
  if ((*x)[1] == 1 && (*x)[2] == 1) return fmt::format("{}", (*x)[0]);
  return fmt::format("{}x{}x{}", (*x)[0], (*x)[1], (*x)[2]);
}

template <class T>
std::string or_dash(const std::optional<T>& x) {
  return x ? fmt::format("{}", *x) : "-";
}

std::string kernels_text(const trace_report& report) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& x : report.kernels) {
    auto time = [&](uint64_t kernel_times::*which) {
      return x.times ? microseconds((*x.times).*which) : "-";
    };
    rows.push_back({cli::shorten(cli::clean(x.kernel), 60), fmt::format("{}", x.calls),
                    time(&kernel_times::total_ns), time(&kernel_times::median_ns),
                    time(&kernel_times::min_ns), time(&kernel_times::max_ns),
                    extent_text(x.shape.grid), extent_text(x.shape.block),
                    or_dash(x.shape.registers), or_dash(x.shape.shared)});
  }
  return cli::format_table({"KERNEL", "CALLS>", "TOTAL us>", "MEDIAN us>", "MIN us>", "MAX us>",
                            "GRID>", "BLOCK>", "REGISTERS>", "SHARED>"},
                           rows);
}

std::string counters_text(const trace_report& report) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& x : report.kernels)
    for (const auto& one : x.counters)
      rows.push_back({cli::shorten(cli::clean(x.kernel), 60), cli::clean(one.name),
                      fmt::format("{}", one.dispatches), fmt::format("{:.6g}", one.mean),
                      fmt::format("{:.6g}", one.min), fmt::format("{:.6g}", one.max)});
  if (rows.empty()) return {};
  return "\n" +
         cli::format_table({"KERNEL", "COUNTER", "DISPATCHES>", "MEAN>", "MIN>", "MAX>"}, rows);
}

std::string copies_text(const trace_report& report) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& x : report.copies)
    rows.push_back({cli::clean(x.kind), fmt::format("{}", x.count), microseconds(x.total_ns),
                    or_dash(x.bytes)});
  if (rows.empty()) return {};
  return "\n" + cli::format_table({"COPY", "COUNT>", "TOTAL us>", "BYTES>"}, rows);
}

double percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

std::string device_text(const trace_device& x) {
  auto idle = x.span_ns - x.busy_ns;
  auto result = fmt::format(
      "\nGPU {}: {} us from first to last, {:.0f} % with a kernel\n  idle between launches: {} us "
      "({:.0f} %), gaps of up to 50 us: {}\n  idle for longer: {} us ({:.0f} %)\n",
      x.device, microseconds(x.span_ns), percent(x.kernel_ns, x.span_ns),
      microseconds(x.launch_gap_ns), percent(x.launch_gap_ns, x.span_ns), x.launch_gaps,
      microseconds(idle - x.launch_gap_ns), percent(idle - x.launch_gap_ns, x.span_ns));
  if (x.copy_ns > 0)
    result += fmt::format("  copies take {} us, {:.0f} % of it beside a kernel\n",
                          microseconds(x.copy_ns), percent(x.overlap_ns, x.copy_ns));
  auto cards = read_cards(values_of(x));
  return cards.empty() ? result : result + card_text(cards);
}

// Of the kernels that take most; --json has all.
std::string traced_cards_text(const trace_report& report, bool colour) {
  constexpr size_t most = 5;
  std::string result;
  for (size_t i = 0; i < report.kernels.size() && i < most; ++i) {
    const auto& x = report.kernels[i];
    auto cards = read_cards(values_of(x, report.gpu));
    if (cards.empty()) continue;
    result += "\n" + cli::paint(colour, cli::colour::bold, cli::clean(x.kernel)) + "\n" +
              card_text(cards);
  }
  return result;
}

std::string readings_text(const trace_report& report) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& x : report.readings)
    rows.push_back({cli::clean(x.card), x.name.empty() ? "-" : cli::clean(x.name),
                    or_dash(x.edge_celsius), or_dash(x.junction_celsius), or_dash(x.memory_celsius),
                    or_dash(x.core_mhz), or_dash(x.memory_mhz), or_dash(x.use),
                    or_dash(x.power_watts),
                    x.memory_used_bytes ? cli::format_bytes(*x.memory_used_bytes) : "-",
                    x.memory_bytes ? cli::format_bytes(*x.memory_bytes) : "-"});
  return cli::format_table({"CARD", "NAME", "EDGE C>", "JUNCTION C>", "MEMORY C>", "CORE MHz>",
                            "MEMORY MHz>", "USE %>", "POWER W>", "USED>", "MEMORY>"},
                           rows);
}

} // namespace

json trace_document(const trace_report& report) {
  json result = {{"tool", to_string(report.tool)},
                 {"version", cli::clean(report.version)},
                 {"problem", to_string(report.problem)},
                 {"words", cli::clean(report.words)}};
  if (report.tool == trace_tool::rocm_smi) {
    result["gpus"] = readings_json(report);
    return result;
  }
  result["launches"] = report.launches;
  result["gpu"] = gpu_json(report.gpu);
  result["kernels"] = traced_json(report);
  result["devices"] = devices_json(report);
  result["copies"] = copies_json(report);
  result["notes"] = report.notes;
  return result;
}

std::string trace_text(const trace_report& report, bool colour) {
  std::string result;
  if (!report.readings.empty()) result += readings_text(report);
  if (!report.kernels.empty()) result += kernels_text(report);
  result += counters_text(report) + copies_text(report);
  for (const auto& x : report.devices) result += device_text(x);
  result += traced_cards_text(report, colour);
  for (const auto& x : report.notes) result += "\nnote: " + x + "\n";
  return result;
}

const char* hint_of(const trace_report& report) {
  switch (report.tool) {
    case trace_tool::nsys: return "trace CUDA: nsys profile --trace=cuda; does the program launch?";
    case trace_tool::rocpd:
    case trace_tool::rocprofv3: return "trace kernels: rocprofv3 --kernel-trace; does it launch?";
    case trace_tool::rocm_smi: return "write it with: rocm-smi -a --json > FILE";
  }
  return "";
}

} // namespace kernelmill::commands
