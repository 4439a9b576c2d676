// `kernelmill profile read` and `profile command`: reports of ncu and compute-sanitizer.

#include <cerrno>
#include <cstring>
#include <set>

#include <fmt/format.h>

#include "gpu/profiler/ncu_command.hpp"
#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/tool_reports.hpp"
#include "launch/machine/accelerators.hpp"
#include "messages/base/files.hpp"

namespace kernelmill::commands {

namespace {

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

expected<int> show_ncu(const invocation& in, const std::string& text) {
  auto report = read_ncu_report(text);
  if (in.json)
    cli::print_json(ncu_document(report));
  else
    cli::print(ncu_text(report, in.colour_out));
  if (report.problem == ncu_problem::none) return cli::exit_ok;
  cli::talk(fmt::format("no profile ({}): {}\nnext: {}", to_string(report.problem),
                        cli::clean(report.words), hint_of(report.problem)));
  return cli::exit_quality;
}

expected<int> show_sanitizer(const invocation& in, const std::string& text) {
  auto report = read_sanitizer_report(text);
  if (in.json)
    cli::print_json(sanitizer_document(report));
  else
    cli::print(sanitizer_text(report));
  if (report.problem != sanitizer_problem::none)
    cli::talk("no report: " + (report.words.empty() ? "the tool did not come to its summary"
                                                    : cli::clean(report.words)));
  return found_nothing(report) ? cli::exit_ok : cli::exit_quality;
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
