// `kernelmill profile read` and `profile command`: reports of ncu and compute-sanitizer.

#include <cerrno>
#include <cstring>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gpu/profiler/cards.hpp"
#include "gpu/profiler/ncu_command.hpp"
#include "gpu/profiler/ncu_report.hpp"
#include "gpu/profiler/profile_result.hpp"
#include "gpu/profiler/sanitizer_report.hpp"
#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/options.hpp"
#include "launch/machine/accelerators.hpp"
#include "messages/base/files.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

constexpr size_t most_report = 64 << 20;

expected<std::string> read_report(const std::string& path) {
  auto text = read_whole(path);
  if (!text)
    return configuration_error("missing_file",
                               "failed to read " + path + ": " + std::strerror(errno),
                               "name a file that ncu or compute-sanitizer wrote");
  if (text->size() > most_report)
    return configuration_error("missing_file", "failed to read " + path + ": it exceeds 64 MiB",
                               "profile fewer launches: ncu --launch-count");
  return *text;
}

bool is_of_sanitizer(std::string_view text) {
  return text.find("========= ") != text.npos && text.find("\"Kernel Name\"") == text.npos;
}

// -- ncu ------------------------------------------------------------------------------------------

json values_json(const metric_values& x) {
  json result = json::object();
  for (const auto& row : metric_table())
    if (auto value = x[row.id]) result[std::string{row.name}] = *value;
  return result;
}

json cards_json(const std::vector<bottleneck_finding>& cards) {
  auto result = json::array();
  for (const auto& x : cards)
    result.push_back({{"bottleneck", x.kind},
                      {"confidence", x.confidence},
                      {"evidence", x.evidence},
                      {"causes", x.causes},
                      {"next_action", x.action}});
  return result;
}

json kernels_json(const ncu_report& report) {
  auto result = json::array();
  for (const auto& x : report.kernels)
    result.push_back({{"kernel", cli::clean(x.metrics.kernel)},
                      {"launch", x.launch},
                      {"metrics", values_json(x.metrics.values)},
                      {"missing", x.missing},
                      {"cards", cards_json(read_cards(x.metrics.values))}});
  return result;
}

std::string ncu_text(const ncu_report& report, bool colour) {
  std::string result;
  for (const auto& x : report.kernels) {
    auto cards = read_cards(x.metrics.values);
    auto time = x.metrics.values[metric::time];
    result += cli::paint(colour, cli::colour::bold, cli::clean(x.metrics.kernel)) +
              (time ? fmt::format("  {:.4g} us", *time) : std::string{}) + "\n";
    if (cards.empty()) {
      result += "  no card: the report lacks what the rules read\n";
      continue;
    }
    result +=
        fmt::format("  limited by {} (confidence {:.2g})\n", cards[0].kind, cards[0].confidence);
    for (const auto& line : lines_of(cards)) result += "  " + line + "\n";
    result += fmt::format("  try: {}\n", cards[0].action);
  }
  return result;
}

const char* hint_of(ncu_problem x) {
  switch (x) {
    case ncu_problem::no_permission:
      return "let all users read GPU counters (NVreg_RestrictProfilingToAdminUsers=0), or run ncu "
             "as root";
    case ncu_problem::unknown_metric:
      return "give `profile command` what `ncu --query-metrics` lists: --known FILE";
    case ncu_problem::no_kernels: return "is the program's kernel launched, and named as asked?";
    case ncu_problem::no_profiler: return "counters cannot be read on this machine";
    default: return "write the report with the command that `kernelmill profile command` prints";
  }
}

expected<int> show_ncu(const invocation& in, const std::string& text) {
  auto report = read_ncu_report(text);
  if (in.json)
    cli::print_json({{"tool", "ncu"},
                     {"problem", to_string(report.problem)},
                     {"words", cli::clean(report.words)},
                     {"kernels", kernels_json(report)}});
  else
    cli::print(ncu_text(report, in.colour_out));
  if (report.problem == ncu_problem::none) return cli::exit_ok;
  cli::talk(fmt::format("no profile ({}): {}\nnext: {}", to_string(report.problem),
                        cli::clean(report.words), hint_of(report.problem)));
  return cli::exit_quality;
}

// -- compute-sanitizer ----------------------------------------------------------------------------

json place_json(const code_place& x) {
  return {{"kernel", cli::clean(x.kernel)},
          {"file", cli::clean(x.file)},
          {"line", x.line},
          {"offset", cli::clean(x.offset)}};
}

json findings_json(const sanitizer_report& report) {
  auto result = json::array();
  for (const auto& x : report.findings) {
    auto others = json::array();
    for (const auto& other : x.others) others.push_back(place_json(other));
    result.push_back({{"family", to_string(x.family)},
                      {"severity", x.is_warning ? "warning" : "error"},
                      {"words", cli::clean(x.words)},
                      {"space", x.space},
                      {"access", x.access},
                      {"bytes", x.bytes},
                      {"at", place_json(x.at)},
                      {"others", std::move(others)},
                      {"thread", cli::clean(x.thread)},
                      {"block", cli::clean(x.block)},
                      {"address", cli::clean(x.address)},
                      {"hazards", x.hazards},
                      {"times", x.times},
                      {"hint", x.hint}});
  }
  return result;
}

std::string place_text(const code_place& x) {
  auto result = x.kernel;
  if (x.line > 0)
    result += fmt::format(" at {}:{}", x.file, x.line);
  else if (!x.offset.empty())
    result += " at " + x.offset;
  return cli::clean(result);
}

expected<int> show_sanitizer(const invocation& in, const std::string& text) {
  auto report = read_sanitizer_report(text);
  bool clean = report.findings.empty() && report.errors == 0;
  if (in.json) {
    cli::print_json(
        {{"tool", "compute-sanitizer"},
         {"problem", report.problem == sanitizer_problem::none            ? "none"
                     : report.problem == sanitizer_problem::not_supported ? "not_supported"
                                                                          : "no_report"},
         {"words", cli::clean(report.words)},
         {"errors", report.errors},
         {"warnings", report.warnings},
         {"findings", findings_json(report)}});
  } else {
    for (const auto& x : report.findings) {
      cli::print(fmt::format("{} {}: {}\n  in {}\n", x.is_warning ? "warning" : "error",
                             to_string(x.family), cli::clean(x.words), place_text(x.at)));
      for (const auto& other : x.others) cli::print("  and " + place_text(other) + "\n");
      cli::print("  " + x.hint + "\n");
    }
    if (clean && report.problem == sanitizer_problem::none) cli::print("nothing was found\n");
  }
  if (report.problem != sanitizer_problem::none)
    cli::talk("no report: " +
              (report.words.empty() ? "the tool did not come to its summary" : report.words));
  return clean && report.problem == sanitizer_problem::none ? cli::exit_ok : cli::exit_quality;
}

expected<int> profile_read(const invocation& in) {
  auto text = read_report(in.value("FILE"));
  if (!text) return tl::unexpected<error>{text.error()};
  return is_of_sanitizer(*text) ? show_sanitizer(in, *text) : show_ncu(in, *text);
}

// -- the command line -----------------------------------------------------------------------------

std::string shell_word(const std::string& word) {
  if (word.find_first_of(" $`\"'\\();&|<>*?[]{}") == word.npos) return word;
  std::string result = "'";
  for (char c : word) result += c == '\'' ? std::string{"'\\''"} : std::string(1, c);
  return result + "'";
}

expected<int> profile_command(const invocation& in) {
  std::set<std::string, std::less<>> known;
  if (auto path = in.value("--known"); !path.empty()) {
    auto listed = read_report(path);
    if (!listed) return tl::unexpected<error>{listed.error()};
    known = read_metric_names(*listed);
    if (known.empty())
      return configuration_error("usage", "failed to find metrics in " + path,
                                 "write it with: ncu --query-metrics > FILE");
  }
  auto ncu = find_accelerators().ncu;
  auto pack = in.value("--pack") == "quick" ? metric_pack::quick : metric_pack::full;
  auto words = ncu_command(ncu.empty() ? "ncu" : ncu, ncu_metrics(pack, known),
                           {in.value("--kernel"), 0, 0, in.value("--out")});
  if (in.json) {
    cli::print_json({{"command", words}, {"found", !ncu.empty()}});
    return cli::exit_ok;
  }
  std::string line;
  for (const auto& x : words) line += (line.empty() ? "" : " ") + shell_word(x);
  cli::print(line + "\n");
  return cli::exit_ok;
}

} // namespace

cli::command profile_read_row() {
  return {"profile read",
          "Reads what ncu or compute-sanitizer wrote, and says what limits or breaks the kernel.",
          "kernelmill profile read report.csv\n"
          "kernelmill profile read racecheck.txt --json",
          "Of ncu: CSV of --page raw, as the command of `profile command` writes it. Each kernel "
          "has a card: what limits it, the\n"
          "numbers that say so, two causes, one thing to try. Of compute-sanitizer: its text. Exit "
          "code 5: the report has no\n"
          "kernel, or the sanitizer found something.",
          {{"FILE", "The report.", true, false, completes::file, {}}},
          {},
          profile_read};
}

cli::command profile_command_row() {
  return {
      "profile command",
      "Prints the ncu command that collects what the cards read.",
      "$(kernelmill profile command --out report.csv) ./program\n"
      "kernelmill profile command --pack quick --kernel row_sum",
      "The GPU's clocks are left alone. ncu refuses all metrics when it does not know one: give "
      "--known what\n"
      "`ncu --query-metrics` prints, and names of its version are chosen.",
      {},
      {{"--pack",
        "NAME",
        "`quick`: which limit of the machine is near; `full`: all that rules read.",
        "full",
        false,
        {"quick", "full"},
        nothing},
       {"--kernel", "REGEX", "Kernels to profile, by name. Default: all.", "", false, {}, nothing},
       {"--known", "FILE", "Output of `ncu --query-metrics`.", "", false, {}, completes::file},
       {"--out",
        "FILE",
        "Where ncu writes its report. Default: stdout.",
        "",
        false,
        {},
        completes::file}},
      profile_command};
}

} // namespace kernelmill::commands
