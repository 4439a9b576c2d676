// `kernelmill profile read` and `profile command`: reports of ncu, compute-sanitizer, nsys,
// rocprofv3 and rocm-smi.

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include <fmt/format.h>

#include "gpu/profiler/ncu_command.hpp"
#include "gpu/profiler/profile_result.hpp"
#include "gpu/profiler/rocm_smi.hpp"
#include "gpu/profiler/rocprof_csv.hpp"
#include "gpu/profiler/trace_database.hpp"
#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/judge/left_bundle.hpp"
#include "launch/commands/judge/tool_reports.hpp"
#include "launch/commands/judge/trace_reports.hpp"
#include "launch/commands/options.hpp"
#include "launch/machine/accelerators.hpp"
#include "messages/base/files.hpp"

namespace kernelmill::commands {

namespace {

constexpr size_t most_report = 64 << 20;

expected<std::string> read_report(const std::string& path) {
  auto text = read_whole(path);
  if (!text)
    return configuration_error(
        "missing_file", "failed to read " + path + ": " + std::strerror(errno),
        "name a file that ncu, compute-sanitizer, nsys, rocprofv3 or rocm-smi wrote");
  if (text->size() > most_report)
    return configuration_error("missing_file", "failed to read " + path + ": it exceeds 64 MiB",
                               "profile fewer launches: ncu --launch-count; of rocprofv3 take "
                               "--output-format rocpd");
  return *text;
}

bool is_of_ncu(std::string_view text) {
  return text.find("\"Kernel Name\"") != text.npos;
}

bool is_of_sanitizer(std::string_view text) {
  return text.find("========= ") != text.npos;
}

// A pipe is not looked into: what is read of it is gone.
bool is_database(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  char first[16] = {};
  std::ifstream in{path, std::ios::binary};
  in.read(first, sizeof first);
  return is_sqlite({first, static_cast<size_t>(in.gcount())});
}

expected<int> show_ncu(const invocation& in, const std::string& text, left_bundle& bundle) {
  auto report = read_ncu_report(text);
  auto kernels = carded(report);
  bundle.output = ncu_document(report, kernels);
  bundle.reports.push_back({"ncu", "report.csv", text});
  std::vector<kernel_metrics> metrics;
  for (const auto& x : report.kernels) metrics.push_back(x.metrics);
  if (!metrics.empty()) {
    auto profile = profile_result({}, metrics, {}, 0);
    bundle.facts = build<wire::TurnFacts>(
        [&](wire::TurnFacts::Builder out) { out.setProfile(*profile.open()); });
  }
  if (in.json)
    cli::print_json(bundle.output);
  else
    cli::print(ncu_text(kernels, in.colour_out));
  if (report.problem == ncu_problem::none) return cli::exit_ok;
  cli::talk(fmt::format("no profile ({}): {}\nnext: {}", to_string(report.problem),
                        cli::clean(report.words), hint_of(report.problem)));
  return cli::exit_quality;
}

expected<int> show_sanitizer(const invocation& in, const std::string& text, left_bundle& bundle) {
  auto report = read_sanitizer_report(text);
  bool complete = report.problem == sanitizer_problem::none;
  bundle.output = sanitizer_document(report);
  bundle.reports.push_back({"compute-sanitizer", "report.txt", text});
  bundle.tools.sanitizer = {{"status", complete ? "completed" : "incomplete"},
                            {"clean", found_nothing(report)},
                            {"checks", nlohmann::ordered_json::array({bundle.output})}};
  if (in.json)
    cli::print_json(bundle.output);
  else
    cli::print(sanitizer_text(report));
  if (report.problem != sanitizer_problem::none)
    cli::talk("no report: " + (report.words.empty() ? "the tool did not come to its summary"
                                                    : cli::clean(report.words)));
  return found_nothing(report) ? cli::exit_ok : cli::exit_quality;
}

expected<int> show_trace(const invocation& in, const trace_report& report, left_bundle& bundle) {
  bundle.output = trace_document(report);
  bundle.tools.trace = {{"status", "completed"}};
  bundle.tools.trace.update(bundle.output);
  if (in.json)
    cli::print_json(bundle.output);
  else
    cli::print(trace_text(report, in.colour_out));
  if (report.problem == trace_problem::none) return cli::exit_ok;
  cli::talk(fmt::format("nothing in {} ({}): {}\nnext: {}", in.value("FILE"),
                        to_string(report.problem), cli::clean(report.words), hint_of(report)));
  return cli::exit_quality;
}

expected<int> show_report(const invocation& in, left_bundle& bundle) {
  auto path = in.value("FILE");
  if (is_database(path)) {
    auto report = read_trace_database(path);
    KM_TRY(report);
    return show_trace(in, *report, bundle);
  }
  auto text = read_report(path);
  if (!text) return tl::unexpected<error>{text.error()};
  if (is_of_ncu(*text)) return show_ncu(in, *text, bundle);
  if (is_rocprof_csv(*text)) return show_trace(in, read_rocprof_csv(*text), bundle);
  if (is_of_sanitizer(*text)) return show_sanitizer(in, *text, bundle);
  // What nsys itself writes is of no format that others can read.
  if (text->find('\0') != text->npos)
    return configuration_error(
        "bad_report", "failed to read " + path + ": it is neither text nor an SQLite database",
        "of nsys' own files: nsys export --type sqlite FILE.nsys-rep");
  if (is_rocm_smi(*text)) return show_trace(in, read_rocm_smi(*text), bundle);
  auto report = read_ncu_report(*text);
  if (report.problem == ncu_problem::no_report && report.words.empty())
    return configuration_error("bad_report", "failed to read " + path + ": no profiler wrote it",
                               "give it CSV of ncu, text of compute-sanitizer, an SQLite export of "
                               "nsys, CSV or rocpd of rocprofv3, or JSON or CSV of rocm-smi");
  return show_ncu(in, *text, bundle);
}

// -- the command line -----------------------------------------------------------------------------

expected<int> profile_read(const invocation& in) {
  auto bundle = left_bundle::begin(in, "profile read");
  KM_TRY(bundle);
  auto code = show_report(in, *bundle);
  KM_TRY(code);
  KM_TRY(bundle->leave_report());
  return code;
}

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
  return {
      "profile read",
      "Reads what a profiler wrote, and says what limits or breaks the kernel.",
      "kernelmill profile read report.csv\n"
      "kernelmill profile read trace.sqlite\n"
      "kernelmill profile read racecheck.txt --json",
      "Of ncu: CSV of --page raw, as the command of `profile command` writes it. Each kernel "
      "has a card: what limits it, the\n"
      "numbers that say so, two causes, one thing to try. Of compute-sanitizer: its text. Of "
      "nsys: `nsys export --type sqlite`.\n"
      "Of rocprofv3: kernel traces and counters as CSV, and rocpd. Traces have the times of each "
      "kernel, and where the GPU was\n"
      "idle. Of rocm-smi: --json or --csv. Exit code 5: there is no kernel or GPU in it, or the "
      "sanitizer found something.",
      {{"FILE", "The report.", true, false, completes::file, {}}},
      {bundle_option()},
      profile_read};
}

cli::command profile_command_row() {
  return {
      "profile command",
      "Prints the ncu command that collects the metrics of the cards.",
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
