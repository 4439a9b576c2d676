#include "launch/commands/remote/on_host.hpp"

#include <cerrno>
#include <csignal>

#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "launch/cli/exit_code.hpp"
#include "launch/cli/output.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/remote/near_end.hpp"
#include "launch/commands/remote/remote_plan.hpp"
#include "messages/base/descriptor.hpp"

namespace kernelmill::commands {

namespace {

expected<remote_plan> plan_of(const invocation& in, const cli::command& row) {
  if (row.name == "run") return plan_run(in, row);
  if (row.name == "judge") return plan_batch(in, row);
  return plan_candidate(in, row);
}

remote::terminal_shape terminal_here() {
  remote::terminal_shape result;
  result.out = ::isatty(1) == 1;
  result.err = ::isatty(2) == 1;
  result.columns = static_cast<unsigned>(cli::terminal_width(result.err && !result.out ? 2 : 1));
  winsize size{};
  if (::ioctl(result.out ? 1 : 2, TIOCGWINSZ, &size) == 0) result.rows = size.ws_row;
  if (const char* type = std::getenv("TERM")) result.type = type;
  return result;
}

} // namespace

cli::option_spec on_option() {
  return {"--on",
          "HOST",
          "Runs there by ssh, and prints and leaves here what it would here: HOST, USER@HOST, "
          "ssh://USER@HOST:PORT or an alias of ~/.ssh/config.",
          "",
          false,
          {},
          nothing};
}

expected<int> on_host(const invocation& in, const cli::command& row) {
  KM_TRY(remote::check_host(in.value("--on")));
  auto plan = plan_of(in, row);
  KM_TRY(plan);
  for (const auto& note : plan->notes) cli::talk(note);
  plan->order.terminal = terminal_here();
  // The far end's terminal decides as this one would; what was decided here otherwise is said.
  if (!in.was_typed("--color") && in.colour_out != plan->order.terminal.out)
    plan->order.words.emplace_back(in.colour_out ? "--color=always" : "--color=never");
  near_end here;
  remote::near_session session{here.options(in.value("--on")), remote::new_session_id()};
  auto code = session.run(std::move(plan->order), std::move(plan->inputs), std::move(plan->places));
  KM_TRY(code);
  return here.reader_gone() && *code == cli::exit_ok ? cli::exit_reader_gone : *code;
}

} // namespace kernelmill::commands
