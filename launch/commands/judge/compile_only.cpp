#include "launch/commands/judge/compile_only.hpp"

#include <fmt/format.h>

#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/judging/verdict_text.hpp"
#include "messages/base/counted.hpp"
#include "messages/base/json_value.hpp"
#include "messages/fault.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

// What ended it; a candidate without code was never built.
error fault_of_build(const offered_candidate& x, wire::BuildResult::Reader built) {
  if (x.parsed.ok) return fault_of(built.getFault());
  auto first = x.parsed.problems.empty() ? "there is no code" : x.parsed.problems.front();
  return {fault_class::policy, "format_error", "failed to read the candidate: " + first, {}};
}

json document(const offered_candidate& x, wire::BuildResult::Reader built, const error& fault) {
  json problems = json::array();
  for (const auto& p : x.parsed.problems) problems.push_back(cli::clean(p));
  auto build = build_json(built);
  build["log"] = cli::clean({built.getLog().cStr(), built.getLog().size()});
  return {{"task", x.what->id.empty() ? json(nullptr) : json(x.what->id)},
          {"candidate_sha256", x.sha256},
          {"backend", x.what->terms.backend},
          {"contract", to_string(x.what->contract)},
          {"format_ok", x.parsed.ok},
          {"format_problems", problems},
          {"compiled", built.getCompiled()},
          {"build", build},
          {"error",
           {{"class", to_string(fault.cls)},
            {"category", fault.category},
            {"message", cli::clean(fault.message)},
            {"hint", cli::clean(fault.hint)}}}};
}

// "2 warnings": a log is long, and what compiled is seldom read.
std::string warnings_text(wire::BuildResult::Reader built) {
  size_t count = 0;
  for (auto x : built.getDiagnostics())
    if (x.getSeverity() == "warning") ++count;
  return count == 0 ? std::string{} : ", " + counted(count, "warning");
}

std::string kernels_text(wire::BuildResult::Reader built) {
  std::vector<std::vector<std::string>> rows;
  for (auto k : built.getKernels())
    rows.push_back({cli::clean({k.getName().cStr(), k.getName().size()}),
                    std::to_string(k.getRegisters()),
                    std::to_string(k.getSpillStores() + k.getSpillLoads()),
                    std::to_string(k.getStackFrame()), std::to_string(k.getSharedBytes())});
  if (rows.empty()) return {};
  return "\n" + cli::format_table({"KERNEL", "REGISTERS>", "SPILLED>", "STACK>", "SHARED>"}, rows);
}

std::string text(const offered_candidate& x, wire::BuildResult::Reader built, const error& fault,
                 bool colour) {
  bool compiled = built.getCompiled();
  auto shade = compiled ? cli::colour::green : cli::colour::red;
  auto result =
      fmt::format("{}candidate {}  {}/{}\n", x.what->id.empty() ? "" : x.what->id + "  ",
                  x.sha256.substr(0, 12), x.what->terms.backend, to_string(x.what->contract));
  if (x.parsed.ok)
    result += fmt::format("{}, {}{}\n", built.getToolchain().cStr(),
                          cli::format_seconds(built.getSeconds()),
                          built.getCached() ? ", from the cache" : "");
  if (auto log = cli::clean({built.getLog().cStr(), built.getLog().size()}); !log.empty())
    result += "\n" + log + (log.ends_with("\n") ? "" : "\n");
  result += kernels_text(built);
  if (fault.cls != fault_class::none) {
    result += fmt::format("\n{}: {}\n", fault.category, cli::clean(fault.message));
    if (!fault.hint.empty()) result += "next: " + cli::clean(fault.hint) + "\n";
  }
  return result + "\n" + cli::paint(colour, shade, compiled ? "compiled" : "not compiled") +
         warnings_text(built) + "\n";
}

} // namespace

expected<int> show_build(const invocation& in, workbench& bench, const offered_candidate& x,
                         const Message<wire::BuildResult>& built, left_bundle& bundle,
                         const build_extras& more) {
  auto opened = built.open();
  auto fault = fault_of_build(x, *opened);
  if (fault.cls == fault_class::configuration) return tl::unexpected<error>{fault};
  auto all = document(x, *opened, fault);
  if (more.keys.is_object()) all.update(more.keys);
  if (in.json)
    cli::print_json(all);
  else
    cli::print(more.text + text(x, *opened, fault, in.colour_out));
  if (bundle.wanted()) {
    bundle.facts = facts_of(x, built, {}, std::nullopt);
    bundle.output = std::move(all);
    KM_TRY(bundle.leave(x, bench));
  }
  return fault.cls == fault_class::infrastructure ? cli::exit_failed : cli::exit_ok;
}

expected<int> compile_only(const invocation& in, workbench& bench, const offered_candidate& x,
                           left_bundle& bundle) {
  Message<wire::BuildResult> built;
  if (x.parsed.ok) built = build_candidate(bench.toolchain(), x);
  return show_build(in, bench, x, built, bundle);
}

} // namespace kernelmill::commands
