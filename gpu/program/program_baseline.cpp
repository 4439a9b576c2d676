#include "gpu/program/program_baseline.hpp"

#include <csignal>
#include <cstring>

#include <fmt/format.h>

#include "gpu/toolchain/build_attribution.hpp"
#include "messages/base/files.hpp"

namespace kernelmill {

namespace {

error of_candidate(const char* category, std::string message, std::string hint = {}) {
  return {fault_class::candidate, category, std::move(message), std::move(hint)};
}

std::string name_of_signal(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? std::string{"SIG"} + name : "signal " + std::to_string(signal);
}

error fault_of_signal(int signal) {
  // An assertion of the tests ends the process so, and one of the program does.
  if (signal == SIGABRT)
    return of_candidate("wrong_result", "the tests were aborted: an assertion or a check failed");
  auto message = "the process of the tests crashed with " + name_of_signal(signal);
  if (signal == SIGSYS) message += ": it made a system call that is not allowed";
  return of_candidate("crashed", message);
}

} // namespace

expected<judged_run> run_and_read(sandbox& walls, const program_place& slot,
                                  const program_command& command) {
  auto outcome = run_program(walls, slot, command);
  KM_TRY(outcome);
  judged_run result;
  result.reports = read_reports(outcome->reports, outcome->secret);
  result.outcome = std::move(*outcome);
  return result;
}

std::optional<error> fault_of_run(const judged_run& x, const std::vector<std::string>& endings,
                                  const std::vector<std::string>& replaced, uint32_t timeout_s) {
  const auto& outcome = x.outcome;
  if (outcome.killed)
    return error{fault_class::infrastructure, "killed_outside",
                 "failed to keep a program: something outside its sandbox ended it",
                 "does the machine have memory left? its kernel log says whom it ended"};
  if (outcome.flooded)
    return of_candidate("output_flood", "the process printed more than 16 MiB and was ended");
  if (outcome.timed_out)
    return of_candidate("timed_out", fmt::format("the command did not end within {} s", timeout_s));
  if (outcome.out_of_memory)
    return of_candidate("out_of_memory", "the process wanted more memory than it may have");
  // The shell passes a signal of its child on as 128 + signal.
  int signal = outcome.status.signal != 0  ? outcome.status.signal
               : outcome.status.code > 128 ? outcome.status.code - 128
                                           : 0;
  if (signal == SIGXFSZ || signal == SIGXCPU)
    return of_candidate("out_of_memory", "the process wrote or ran more than it may");
  if (signal != 0) return fault_of_signal(signal);
  if (outcome.status.code != 0)
    return of_candidate("wrong_result",
                        fmt::format("the tests ended with exit code {}", outcome.status.code));
  for (const auto& name : x.reports.replaced)
    if (first_missing({name}, replaced))
      return of_candidate("replaced_function",
                          "the program defines a function of a library itself: " +
                              name.substr(0, 200),
                          "give it another name, or make it static");
  if (auto missing = first_missing(endings, x.reports.endings))
    return of_candidate("exited",
                        "the process ended before its main did what the baseline's does: \"" +
                            *missing + "\" was not seen",
                        "return from your functions; never end the process");
  return std::nullopt;
}

namespace {

tl::unexpected<error> bad_baseline(const task& x, const judged_run& run, const error& why,
                                   const std::string& command) {
  if (why.cls == fault_class::infrastructure) return tl::unexpected<error>{why};
  // It is the task's own, and its owner reads this; policies are not shown faults of tasks.
  auto said = clean_log(run.outcome.printed, 2000);
  return configuration_error("bad_baseline",
                             "failed to use task " + x.id + ": its baseline fails `" + command +
                                 "`: " + why.message + (said.empty() ? "" : "\n" + said),
                             "`kernelmill task check " + x.id + "` says more");
}

} // namespace

expected<program_baseline> make_baseline(sandbox& walls, const program_place& slot,
                                         const program_tools& tools, const task& x,
                                         int build_deadline_ms, uint64_t memory_bytes) {
  const auto& p = x.program;
  auto built = build_program(walls, tools, p, p.baseline, build_deadline_ms, memory_bytes);
  KM_TRY(built);
  if (has_failed(*built)) {
    auto found = findings_of(*built, tools, p.build, build_deadline_ms);
    return configuration_error(
        "bad_task", "failed to build the baseline of task " + x.id + ": " + found.fault.message,
        "`kernelmill task check` builds and tests it");
  }
  auto bytes = read_whole(built->product.get());
  if (!bytes || bytes->empty())
    return infrastructure_error("io_error", "failed to read the baseline of task " + x.id);
  program_baseline result;
  result.archive = std::move(*bytes);
  program_command command{p.test, &result.archive, {}, static_cast<int>(p.timeout_s * 1000)};
  auto test = run_and_read(walls, slot, command);
  KM_TRY(test);
  if (auto why = fault_of_run(*test, {}, test->reports.replaced, p.timeout_s))
    return bad_baseline(x, *test, *why, p.test);
  result.test_endings = test->reports.endings;
  result.replaced = test->reports.replaced;
  return result;
}

expected<double> inside_seconds(const judged_run& x, const program_timing& timing) {
  auto none = [&](const std::string& why) {
    return candidate_error("no_time", "no time of it is known: " + why);
  };
  if (timing.mode == program_clock::process) return x.outcome.seconds;
  if (timing.mode == program_clock::custom) {
    auto printed = printed_seconds(x.outcome.printed);
    if (!printed) return none("it printed no line COMPUTE_EVAL_TIME_MS with a number above 0");
    return *printed;
  }
  if (!x.reports.times)
    return none(x.reports.problems.empty() ? "its process reported none"
                                           : x.reports.problems.front());
  const auto& times = *x.reports.times;
  double seconds = timing.mode == program_clock::kernels ? times.kernel_seconds
                   : timing.mode == program_clock::gpu ? times.kernel_seconds + times.other_seconds
                   : timing.wall                       ? times.range_wall_seconds
                                                       : times.range_kernel_seconds;
  if (!(seconds > 0))
    return none(timing.mode == program_clock::region && times.ranges == 0
                    ? "no range that counts began and ended"
                    : "the GPU did nothing that counts");
  return seconds;
}

} // namespace kernelmill
