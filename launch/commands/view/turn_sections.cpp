#include "launch/commands/view/turn_sections.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "launch/cli/terminal.hpp"
#include "launch/commands/run_view.hpp"
#include "launch/judging/replaying.hpp"
#include "launch/judging/verdict_text.hpp"
#include "messages/base/json_value.hpp"
#include "messages/json.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

constexpr size_t most_shown_pairs = 16;

std::string clean_text(capnp::Text::Reader x) {
  return cli::clean({x.cStr(), x.size()});
}

std::string with_newline(std::string x) {
  return x.empty() || x.ends_with('\n') ? x : x + "\n";
}

// -- build ----------------------------------------------------------------------------------------

json build_part(const sectioned_turn& x) {
  auto build = x.record.getFacts().getBuild();
  auto result = build_json(build);
  result["compiled"] = build.getCompiled();
  result["log"] = clean_text(build.getLog());
  result["library_sha256"] = clean_text(build.getLibrarySha256());
  return result;
}

std::string build_text(const sectioned_turn& x) {
  auto build = x.record.getFacts().getBuild();
  if (build.getToolchain().size() == 0 && !build.getCompiled()) return "nothing was built\n";
  auto result =
      fmt::format("{} by {}, {}{}\n", build.getCompiled() ? "compiled" : "not compiled",
                  clean_text(build.getToolchain()), cli::format_seconds(build.getSeconds()),
                  build.getCached() ? ", from the cache" : "");
  std::vector<std::vector<std::string>> rows;
  for (auto k : build.getKernels())
    rows.push_back({clean_text(k.getName()), std::to_string(k.getRegisters()),
                    std::to_string(k.getSpillStores() + k.getSpillLoads()),
                    std::to_string(k.getStackFrame()), std::to_string(k.getSharedBytes()),
                    k.getOccupancy() > 0 ? fmt::format("{:.2f}", k.getOccupancy()) : "-"});
  if (!rows.empty())
    result += cli::format_table(
        {"KERNEL", "REGISTERS>", "SPILLED>", "STACK>", "SHARED>", "OCCUPANCY>"}, rows);
  return result + with_newline(clean_text(build.getLog()));
}

// -- profile --------------------------------------------------------------------------------------

std::string profile_part_text(const sectioned_turn& x) {
  auto profile = x.record.getFacts().getProfile();
  std::vector<std::vector<std::string>> rows;
  for (auto c : profile.getCounters())
    rows.push_back(
        {clean_text(c.getName()), fmt::format("{:.6g}", c.getValue()), clean_text(c.getUnit())});
  auto result = profile_text(profile);
  if (!rows.empty()) result += cli::format_table({"COUNTER", "VALUE>", "UNIT"}, rows);
  for (auto line : profile.getMissing()) result += "missing: " + clean_text(line) + "\n";
  return result.empty() ? "no profile was taken\n" : result;
}

// -- sanitizer ------------------------------------------------------------------------------------

constexpr const char* no_sanitizer =
    "no sanitizer was run: it runs where evaluation.sanitize asks for it";

json sanitizer_part(const sectioned_turn& x) {
  auto evaluation = x.record.getFacts().getEvaluation();
  if (!evaluation.hasMemory()) return {{"status", "not_run"}, {"reason", no_sanitizer}};
  auto result = kernelmill::to_json(capnp::DynamicStruct::Reader{evaluation.getMemory()});
  result["status"] = evaluation.getMemory().getComplete() ? "completed" : "incomplete";
  return result;
}

std::string sanitizer_part_text(const sectioned_turn& x) {
  auto evaluation = x.record.getFacts().getEvaluation();
  if (!evaluation.hasMemory()) return std::string{no_sanitizer} + "\n";
  auto memory = evaluation.getMemory();
  std::string result;
  for (auto f : memory.getFindings()) {
    auto severity = f.getSeverity();
    result += fmt::format("{} {}: {}\n", enum_name(capnp::DynamicEnum{std::move(severity)}),
                          clean_text(f.getRule()), clean_text(f.getEvidence()));
  }
  if (memory.getFindings().size() == 0) result = "nothing was found\n";
  if (!memory.getComplete()) result += "not every check came to its end\n";
  for (auto problem : memory.getProblems()) result += "no report: " + clean_text(problem) + "\n";
  return result;
}

// -- quality --------------------------------------------------------------------------------------

json quality_part(const sectioned_turn& x) {
  auto parts = evidence_parts_of(x.record);
  return {{"quality", to_string(quality_of(x.record))},
          {"evidence_score", evidence_score(parts)},
          {"parts",
           {{"correctness", parts.correctness},
            {"performance", parts.performance},
            {"determinism", parts.determinism},
            {"build", parts.build},
            {"profile", parts.profile},
            {"lineage", parts.lineage}}},
          {"episode", {{"evidence", evidence_json(x.evidence)}, {"readiness", x.readiness}}}};
}

std::string quality_part_text(const sectioned_turn& x) {
  auto document = quality_part(x);
  auto result = fmt::format("turn: {}, evidence {:.2f}\n", to_string(quality_of(x.record)),
                            document["evidence_score"].get<double>());
  for (const auto& [name, value] : document["parts"].items())
    result += fmt::format("  {:<12} {:.2f}\n", name, value.get<double>());
  result += "its episode: " + evidence_text(x.evidence);
  if (x.readiness.is_null()) return result + "data label: the episode has not ended\n";
  result += "data label: " + label_text(x.readiness["kind"].get<std::string>()) + "\n";
  for (const auto& reason : x.readiness["reasons"])
    result += "  " + cli::clean(reason.get<std::string>()) + "\n";
  return result;
}

// -- replay ---------------------------------------------------------------------------------------

json replay_part(const sectioned_turn& x) {
  auto facts = x.record.getFacts();
  auto evaluation = facts.getEvaluation();
  bool judged = x.record.getVerdict().getOutcome() == wire::Outcome::ACCEPTED ||
                x.record.getVerdict().getOutcome() == wire::Outcome::REJECTED;
  auto seed = seed_hex(evaluation);
  json command = nullptr;
  if (judged) command = {"kernelmill", "replay", x.name};
  return {{"command", std::move(command)},
          {"seed", seed.empty() ? json(nullptr) : json(seed)},
          {"turn_id", clean_text(x.record.getTurnId())},
          {"candidate_sha256", clean_text(x.record.getCandidateSha256())},
          {"library_sha256", clean_text(facts.getBuild().getLibrarySha256())},
          {"toolchain", clean_text(facts.getBuild().getToolchain())},
          {"device", clean_text(evaluation.getDevice())},
          {"clock", clean_text(evaluation.getTiming().getClock())}};
}

std::string replay_part_text(const sectioned_turn& x) {
  auto document = replay_part(x);
  std::string result;
  if (document["command"].is_null())
    result = "`kernelmill replay` leaves this turn out: it has no verdict\n";
  else
    result = "kernelmill replay " + x.name + "\n";
  for (const auto& [name, value] : document.items())
    if (name != "command" && value.is_string() && !value.get<std::string>().empty())
      result += fmt::format("{:<17} {}\n", name, value.get<std::string>());
  return result;
}

// -- sass -----------------------------------------------------------------------------------------

// "sm_90" in the compiler's own words; empty: they do not say.
std::string architecture_in(const std::string& toolchain, const std::string& prefix) {
  auto at = toolchain.find(prefix);
  if (at == toolchain.npos) return {};
  auto end = toolchain.find_first_not_of("0123456789abcdef", at + prefix.size());
  return toolchain.substr(at, std::min(end, toolchain.size()) - at);
}

json sass_part(const sectioned_turn& x) {
  auto facts = x.record.getFacts();
  auto backend = clean_text(facts.getBackend());
  auto reports = json::array();
  for (auto report : x.record.getReports())
    reports.push_back(
        {{"tool", clean_text(report.getTool())}, {"name", clean_text(report.getName())}});
  json result = {{"stored", false}, {"reports", std::move(reports)}, {"commands", json::array()}};
  auto sha256 = clean_text(x.record.getCandidateSha256());
  if (sha256.empty()) {
    result["reason"] = "the turn has no candidate";
    return result;
  }
  if (backend == "cpu") {
    result["reason"] = "it was built for a CPU: `kernelmill inspect` lists code of GPUs alone";
    return result;
  }
  bool module = facts.getContract() == "torch", hip = backend == "hip";
  auto file = std::string{module ? "answer.py" : hip ? "kernel.hip" : "kernel.cu"};
  auto architecture =
      architecture_in(clean_text(facts.getBuild().getToolchain()), hip ? "gfx" : "sm_");
  result["reason"] = "a record keeps no listing; these commands make it of the stored code";
  result["commands"] = {
      fmt::format("kernelmill show {} --json | jq -r .source > {}", sha256.substr(0, 12), file),
      fmt::format("kernelmill inspect {} --section {} --task {}{}", file, hip ? "gcn" : "sass",
                  clean_text(facts.getTask()),
                  architecture.empty() ? "" : " --arch " + architecture)};
  return result;
}

std::string sass_part_text(const sectioned_turn& x) {
  auto document = sass_part(x);
  auto result = document["reason"].get<std::string>() + "\n";
  for (const auto& line : document["commands"]) result += "  " + line.get<std::string>() + "\n";
  for (const auto& report : document["reports"])
    result += fmt::format("report of {}: {}\n", report["tool"].get<std::string>(),
                          report["name"].get<std::string>());
  return result;
}

// -- timing ---------------------------------------------------------------------------------------

json pairs_json(wire::Timing::Reader t) {
  auto digits = [](float x) { return std::stod(fmt::format("{:.7g}", x)); }; // all that it has
  auto result = json::array();
  for (auto x : t.getPairs())
    result.push_back({{"candidate_ms", digits(x.getCandidateMs())},
                      {"reference_ms", digits(x.getReferenceMs())}});
  return result;
}

json timing_part(const sectioned_turn& x) {
  auto evaluation = x.record.getFacts().getEvaluation();
  auto result = timing_json(evaluation.getTiming());
  result["pairs"] = pairs_json(evaluation.getTiming());
  result["conditions"] = json::object();
  for (auto c : evaluation.getConditions())
    result["conditions"][clean_text(c.getName())] = {
        {"value", std::isfinite(c.getValue()) ? json(c.getValue()) : json(nullptr)},
        {"unit", clean_text(c.getUnit())}};
  return result;
}

std::string pairs_table(wire::Timing::Reader t) {
  std::vector<std::vector<std::string>> rows;
  auto pairs = t.getPairs();
  for (unsigned i = 0; i < pairs.size() && i < most_shown_pairs; ++i) {
    auto x = pairs[i];
    rows.push_back({std::to_string(i), fmt::format("{:.6g}", x.getCandidateMs()),
                    fmt::format("{:.6g}", x.getReferenceMs()),
                    x.getCandidateMs() > 0
                        ? fmt::format("{:.3f}", x.getReferenceMs() / x.getCandidateMs())
                        : "-"});
  }
  if (rows.empty()) return "no single measurements are stored\n";
  auto result = cli::format_table({"PAIR>", "CANDIDATE ms>", "BASELINE ms>", "SPEEDUP>"}, rows);
  if (pairs.size() > most_shown_pairs)
    result += fmt::format("and {} more; --json has all\n", pairs.size() - most_shown_pairs);
  return result;
}

std::string timing_part_text(const sectioned_turn& x) {
  auto evaluation = x.record.getFacts().getEvaluation();
  auto t = evaluation.getTiming();
  auto note = clean_text(t.getNote());
  constexpr std::string_view again = "not timed: ";
  if (!t.getMeasured())
    return note.starts_with(again) ? note + "\n"
                                   : "not timed" + (note.empty() ? "" : ": " + note) + "\n";
  auto result = fmt::format(
      "speedup {} at {}, {} against {} of the baseline\n{} samples, clock: {}\n",
      interval_text(t.getSpeedup()), clean_text(t.getShape()),
      cli::format_seconds(t.getCandidateMs() / 1e3), cli::format_seconds(t.getReferenceMs() / 1e3),
      t.getSamples(), clean_text(t.getClock()));
  if (t.getRooflineMs() > 0)
    result += fmt::format("no honest kernel is faster here than {}\n",
                          cli::format_seconds(t.getRooflineMs() / 1e3));
  if (!note.empty()) result += note + "\n";
  result += "\n" + pairs_table(t);
  std::vector<std::vector<std::string>> rows;
  for (auto kind : t.getKinds())
    rows.push_back({clean_text(kind.getName()), fmt::format("{:.6g}", kind.getCandidateMs()),
                    fmt::format("{:.6g}", kind.getReferenceMs()), std::to_string(kind.getCalls())});
  if (!rows.empty())
    result += "\n" + cli::format_table({"KIND", "CANDIDATE ms>", "BASELINE ms>", "CALLS>"}, rows);
  rows.clear();
  for (auto c : evaluation.getConditions())
    rows.push_back(
        {clean_text(c.getName()), fmt::format("{:.6g}", c.getValue()), clean_text(c.getUnit())});
  if (!rows.empty()) result += "\n" + cli::format_table({"CONDITION", "VALUE>", "UNIT"}, rows);
  return result;
}

// -- all ------------------------------------------------------------------------------------------

struct section_row {
  const char* name;
  json (*document)(const sectioned_turn&);
  std::string (*text)(const sectioned_turn&);
};

constexpr section_row section_rows[] = {
    {"build", build_part, build_text},
    {"profile",
     [](const sectioned_turn& x) { return profile_json(x.record.getFacts().getProfile()); },
     profile_part_text},
    {"sanitizer", sanitizer_part, sanitizer_part_text},
    {"quality", quality_part, quality_part_text},
    {"replay", replay_part, replay_part_text},
    {"sass", sass_part, sass_part_text},
    {"timing", timing_part, timing_part_text}};

const section_row& row_of(const std::string& section) {
  for (const auto& row : section_rows)
    if (section == row.name) return row;
  return section_rows[0];
}

} // namespace

const std::vector<std::string>& turn_sections() {
  static const auto names = [] {
    std::vector<std::string> result;
    for (const auto& row : section_rows) result.emplace_back(row.name);
    return result;
  }();
  return names;
}

json section_json(const std::string& section, const sectioned_turn& x) {
  json result = {{"turn", x.name}, {"section", section}};
  result.update(row_of(section).document(x));
  return result;
}

std::string section_text(const std::string& section, const sectioned_turn& x) {
  auto result = row_of(section).text(x);
  // A turn's own facts are those of what it submitted.
  if (x.record.getCalls().size() > 0)
    result += fmt::format("its {} calls have facts of their own: kernelmill show {} --call 0\n",
                          x.record.getCalls().size(), x.name);
  return result;
}

} // namespace kernelmill::commands
