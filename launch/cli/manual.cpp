// The manual page, from the table of commands.

#include <fmt/format.h>

#include "launch/cli/command.hpp"

namespace kernelmill::cli {

namespace {

/// Text as roff takes it: a backslash, and a dot or quote at the begin of a line, have a meaning.
std::string roff(const std::string& text) {
  std::string result;
  bool begins = true;
  for (char c : text) {
    if (begins && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else
      result += c;
    begins = c == '\n';
  }
  return result;
}

std::string term(const std::string& name, const std::string& text) {
  return fmt::format(".TP\n.B {}\n{}\n", roff(name), roff(text));
}

std::string option_terms(const std::vector<option_spec>& options) {
  std::string result;
  for (const auto& x : options) result += term(option_usage(x), option_doc(x));
  return result;
}

std::string section(const command& x) {
  auto result = fmt::format(".SS kernelmill {}\n{}\n.PP\n.B {}\n", roff(x.name), roff(x.summary),
                            roff(usage_of(x)));
  for (const auto& a : x.arguments) result += term(argument_usage(a), a.doc);
  result += option_terms(x.options);
  if (!x.details.empty()) result += ".PP\n" + roff(x.details) + "\n";
  return result + ".PP\n.nf\n" + roff(x.example) + "\n.fi\n";
}

} // namespace

std::string manual_page(const command_table& commands) {
  std::string result = R"(.\" Made by `kernelmill __reference man` from the table of commands.
.TH KERNELMILL 1
.SH NAME
kernelmill \- runs LLM agents that write GPU kernels and scores each kernel
.SH SYNOPSIS
.B kernelmill
.I COMMAND
[options] [arguments]
.SH DESCRIPTION
Results go to stdout, messages to stderr. `kernelmill COMMAND \-\-help` shows one command.
.SH OPTIONS OF EVERY COMMAND
)" + option_terms(common_options()) +
                       ".SH COMMANDS\n";
  for (const auto& x : commands)
    if (!x.hidden) result += section(x);
  return result + R"(.SH EXIT STATUS
0 ok, 1 failed, 2 usage or configuration, 3 not found, 4 conflict, 5 check failed, 69 server
unreachable, 70 too many faults, 75 try again later, 77 permission, 130 interrupted.
.SH FILES
.TP
.I ~/.config/kernelmill/config.json
What a user wants in every configuration; below $XDG_CONFIG_HOME where that is set.
.TP
.I runs/
The folder of runs.
)";
}

} // namespace kernelmill::cli
