// `kernelmill kernels`: the library of verified kernels over runs, and whether their verdicts are
// of today.

#include <map>
#include <memory>

#include <fmt/format.h>

#include "launch/analysis/watch/world.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/cluster/build_id.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/judge/kernel_conditions.hpp"
#include "launch/commands/options.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

namespace {

using library::kernel;

std::string first_words(const std::string& text, size_t count) {
  size_t at = 0;
  for (size_t i = 0; i < count && at != text.npos; ++i) at = text.find(' ', at + (i > 0 ? 1 : 0));
  auto result = text.substr(0, at);
  if (result.ends_with(',')) result.pop_back();
  return result;
}

std::string age_text(const library::staleness& x) {
  if (!x.is_stale()) return x.not_compared.empty() ? "current" : "not compared";
  std::string result = "stale: ";
  for (const auto& reason : x.reasons)
    result += (&reason == &x.reasons.front() ? "" : "; ") + reason;
  return result;
}

std::vector<std::string> row_of(const kernel& x, const library::staleness& age) {
  return {x.task,
          x.device,
          x.shape,
          fmt::format("{:.2f}", x.speedup.low),
          fmt::format("{:.2f} [{:.2f}, {:.2f}]", x.speedup.estimate, x.speedup.low, x.speedup.high),
          fmt::to_string(x.samples),
          x.baseline,
          x.place(),
          x.language,
          x.licence.empty() ? "unknown" : x.licence,
          x.driver.empty() ? "-" : x.driver,
          first_words(x.toolchain, 2),
          age_text(age)};
}

void print_table(const library::library_view& found, const std::vector<library::staleness>& ages) {
  std::vector<std::vector<std::string>> rows;
  bool any_stale = false;
  for (size_t i = 0; i < found.all.size(); ++i) {
    rows.push_back(row_of(found.all[i], ages[i]));
    for (auto& cell : rows.back()) cell = cli::clean(cell);
    any_stale = any_stale || ages[i].is_stale();
  }
  cli::print_all(
      cli::format_table({"TASK", "DEVICE", "SHAPE", "LOWER>", "SPEEDUP", "N>", "BASELINE", "KERNEL",
                         "LANGUAGE", "LICENCE", "DRIVER", "COMPILER", "VERDICT"},
                        rows));
  std::string next = "\nnext:\n  kernelmill kernel export " + found.all.front().place() +
                     " --form module --out DIR    a drop-in with its test\n";
  if (any_stale)
    for (const auto& x : ages)
      if (x.is_stale()) {
        next += "  " + x.next + "    judges a stale one again\n";
        break;
      }
  cli::print(next);
}

// The filters of the command, for its errors.
std::string chosen_by(const invocation& in) {
  std::string result;
  for (const char* option : {"--task", "--operator", "--gpu"})
    if (auto value = in.value(option); !value.empty())
      result += std::string{result.empty() ? " with " : " and "} + option + " " + cli::clean(value);
  return result;
}

expected<int> list_kernels(const invocation& in) {
  auto in_root = watch::local_world(in.value("--root"));
  library::choice which{in.value("--task"), in.value("--operator"), in.value("--gpu"), {}};
  auto found = library::read_library(
      in_root.root, [&](const run_directory& run) { return watch::open_store_of(in_root, run); },
      std::move(which));
  for (const auto& x : found.unreadable) cli::talk("warning: left out run " + x.run + ": " + x.why);
  if (found.all.empty() && !in.json)
    return configuration_error(
        "not_found",
        "failed to find a verified kernel" + chosen_by(in) + " below " + in.value("--root"),
        chosen_by(in).empty() ? "`kernelmill runs` lists what is there; --root names "
                                "another folder"
                              : "`kernelmill kernels --root " + in.value("--root") +
                                    "` lists those of all tasks and GPUs");
  auto ages = staleness_of_all(found.all, in);
  KM_TRY(ages);
  if (!in.json) {
    print_table(found, *ages);
    return 0;
  }
  auto rows = nlohmann::ordered_json::array();
  for (size_t i = 0; i < found.all.size(); ++i) {
    rows.push_back(library::to_json(found.all[i]));
    library::add_staleness(rows.back(), (*ages)[i]);
    rows.back()["place"] = found.all[i].place();
  }
  auto unreadable = nlohmann::ordered_json::array();
  for (const auto& x : found.unreadable) unreadable.push_back({{"run", x.run}, {"why", x.why}});
  cli::print_json({{"kernels", std::move(rows)}, {"unreadable", std::move(unreadable)}});
  return 0;
}

} // namespace

cli::command kernels_row() {
  return {
      "kernels",
      "Lists the best verified kernel of each task, device and shape over all runs.",
      "kernelmill kernels\nkernelmill kernels --task native/softmax --gpu H200 --json",
      "The best is the accepted, timed kernel with the highest lower bound of its speedup; N is "
      "the "
      "number of timed calls\nbehind it. Kernels that were measured beside different baselines "
      "have "
      "a row each. A verdict is stale if the task's\nfiles, Kernelmill, the driver or a compiler "
      "changed since; `kernelmill replay` judges such a kernel again.",
      {},
      {runs_root(),
       {"--task", "T", "Only kernels of this task.", "", false, {}, completes::task},
       {"--operator",
        "FAMILY",
        "Only this family of operators, such as reduction.",
        "",
        false,
        {},
        nothing},
       {"--gpu",
        "NAME",
        "Only devices whose name holds this, such as H200.",
        "",
        false,
        {},
        nothing},
       python_path()},
      list_kernels};
}

} // namespace kernelmill::commands
