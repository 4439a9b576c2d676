#include <algorithm>

#include <fmt/format.h>

#include "launch/cli/terminal.hpp"
#include "launch/judging/inspecting/parts.hpp"

namespace kernelmill::inspecting {

namespace {

constexpr size_t narrowest_two_columns = 100; // of a terminal
constexpr size_t width_of_no_terminal = 140;

std::string nvidia_table(const inspected& x, uint32_t threads) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& one : x.codes)
    for (const auto& k : one.code.kernels) {
      auto found = occupancy_for(x, k, threads);
      rows.push_back(
          {cli::clean(k.name), std::to_string(k.registers),
           std::to_string(k.spill_stores + k.spill_loads), std::to_string(k.stack_frame),
           std::to_string(k.shared_bytes),
           found ? fmt::format("{:.0f} % ({})", found->share * 100, to_string(found->limit))
                 : "-"});
    }
  if (rows.empty()) return {};
  return cli::format_table({"KERNEL", "REGISTERS>", "SPILLED>", "STACK>", "SHARED>",
                            fmt::format("OCCUPANCY AT {} THREADS>", threads)},
                           rows);
}

std::string amd_table(const inspected& x) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& one : x.codes)
    for (const auto& k : one.amd)
      rows.push_back({cli::clean(k.name), std::to_string(k.vgprs), std::to_string(k.agprs),
                      std::to_string(k.sgprs), std::to_string(k.vgpr_spills),
                      std::to_string(k.sgpr_spills), std::to_string(k.scratch_bytes),
                      std::to_string(k.lds_bytes), k.waves > 0 ? std::to_string(k.waves) : "-"});
  if (rows.empty()) return {};
  return cli::format_table({"KERNEL", "VGPRS>", "AGPRS>", "SGPRS>", "VGPR SPILLS>", "SGPR SPILLS>",
                            "SCRATCH>", "LDS>", "WAVES A SIMD>"},
                           rows);
}

std::string mix_text(const kernel_listing& x) {
  std::string result;
  for (const auto& [name, count] : instruction_mix(x))
    result += fmt::format("{}{} {}", result.empty() ? "" : ", ", count, name);
  return result;
}

// Of the listing that is nearest to what runs.
std::string mixes_text(const inspected& x) {
  std::string result;
  for (const auto& one : x.codes)
    for (const auto& kernel : one.gcn)
      result += cli::hanging(cli::clean(kernel.name) + ": ", 4, mix_text(kernel));
  return result;
}

bool knows_live(const kernel_listing& x) {
  return std::any_of(x.lines.begin(), x.lines.end(),
                     [](const code_line& line) { return line.live.has_value(); });
}

// The number stands before an instruction. A label has none.
std::string with_live(std::optional<uint32_t> live, bool known, const std::string& text) {
  if (!known) return text;
  return (live ? fmt::format("{:>3}  ", *live) : std::string(5, ' ')) + text;
}

constexpr const char* live_note = "  (before SASS: live registers)";

std::string listing_text(const inspected& x, code_listing which, bool colour) {
  std::string result;
  for (const auto& one : x.codes) {
    result += heading(one.code, colour);
    for (const auto& kernel : one.*which) {
      bool live = knows_live(kernel);
      result += cli::paint(colour, cli::colour::bold, cli::clean(kernel.name)) + "  " +
                mix_text(kernel) + (live ? live_note : "") + "\n";
      for (const auto& line : kernel.lines)
        result += (line.source_line > 0 ? fmt::format("{:>5}  ", line.source_line)
                                        : std::string(7, ' ')) +
                  with_live(line.live, live, cli::clean(line.text)) + "\n";
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

// PTX at the left, SASS at the right; on a narrow terminal one below the other. Of an AMD GPU there
// is one listing.
std::string code_text(const source_row& row, size_t width) {
  std::string result;
  bool live = row.live().has_value();
  auto sass = [&](size_t i) { return with_live(row.sass_live[i], live, cli::clean(row.sass[i])); };
  for (const auto& x : row.gcn) result += "       " + cli::clean(x) + "\n";
  if (width < narrowest_two_columns) {
    for (const auto& x : row.ptx) result += "       ptx   " + cli::clean(x) + "\n";
    for (size_t i = 0; i < row.sass.size(); ++i) result += "       sass  " + sass(i) + "\n";
    return result;
  }
  size_t half = (width - 10) / 2;
  for (size_t i = 0; i < std::max(row.ptx.size(), row.sass.size()); ++i) {
    auto left = cli::shorten(i < row.ptx.size() ? cli::clean(row.ptx[i]) : "", half);
    auto right = cli::shorten(i < row.sass.size() ? sass(i) : "", half);
    if (!right.empty())
      left += std::string(half - std::min(half, cli::columns_of(left)), ' ') + " | " + right;
    result += "       " + left + "\n";
  }
  return result;
}

std::string head_of(const source_row& row) {
  auto result = row.line > 0 ? fmt::format("{:>5}  {}", row.line, cli::clean(row.source))
                             : std::string{"    -  (no line is known)"};
  auto live = row.live();
  return live ? result + fmt::format("  [{} live]", *live) : result;
}

std::string triview_text(const inspected& x, const showing& how) {
  auto width = how.width == 0 ? width_of_no_terminal : how.width;
  std::string result;
  for (const auto& one : x.codes) {
    result += heading(one.code, how.colour);
    for (const auto& view : one.views()) {
      bool live = std::any_of(view.rows.begin(), view.rows.end(),
                              [](const source_row& row) { return row.live().has_value(); });
      result += cli::paint(how.colour, cli::colour::bold, cli::clean(view.name)) +
                (live ? live_note : "") + "\n";
      for (const auto& row : view.rows)
        result += cli::paint(how.colour, cli::colour::yellow, head_of(row)) + "\n" +
                  code_text(row, width);
    }
  }
  return result;
}

} // namespace

std::string heading(const listed_code& x, bool colour) {
  if (x.name.empty()) return {};
  return cli::paint(colour, cli::colour::bold, "== " + cli::clean(x.name)) + "\n";
}

std::string resources_text(const inspected& x, uint32_t threads) {
  return nvidia_table(x, threads) + amd_table(x) + mixes_text(x);
}

std::string text_of(const inspected& x, const showing& how) {
  std::string result;
  if (how.wants("build"))
    if (auto text = resources_text(x, how.block_threads); !text.empty()) result += text + "\n";
  if (how.section == "ptx") result += listing_text(x, &inspected_code::ptx, how.colour);
  if (how.section == "sass") result += listing_text(x, &inspected_code::sass, how.colour);
  if (how.section == "gcn") result += listing_text(x, &inspected_code::gcn, how.colour);
  if (is_stage(how.section)) result += stage_text(x, how.section, how.colour);
  if (how.wants("triview")) result += triview_text(x, how);
  if (how.section == "profile") result += profile_words(x, how);
  if (how.section == "quality") result += quality_text(x, how);
  return result;
}

} // namespace kernelmill::inspecting
