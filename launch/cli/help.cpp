// Help, the reference page, and lists of names, from the table of commands.

#include <algorithm>

#include <fmt/format.h>

#include "launch/cli/command.hpp"
#include "launch/cli/terminal.hpp"

namespace kernelmill::cli {

namespace {

std::string argument_usage(const argument_spec& x) {
  auto text = x.repeat ? x.name + "..." : x.name;
  return x.required ? text : "[" + text + "]";
}

std::string option_usage(const option_spec& x) {
  return x.value.empty() ? x.name : x.name + " " + x.value;
}

std::string usage(const command& x) {
  auto text = "kernelmill " + x.name;
  for (const auto& option : x.options)
    if (option.required) text += " " + option_usage(option);
  if (std::any_of(x.options.begin(), x.options.end(), [](const auto& o) { return !o.required; }))
    text += " [options]";
  for (const auto& argument : x.arguments) text += " " + argument_usage(argument);
  return text;
}

std::string option_doc(const option_spec& x) {
  auto text = x.doc;
  if (!x.choices.empty()) {
    text += " One of:";
    for (size_t i = 0; i < x.choices.size(); ++i) text += (i > 0 ? ", " : " ") + x.choices[i];
    text += ".";
  }
  if (!x.fallback.empty()) text += " Default: " + x.fallback + ".";
  return text;
}

std::string indented(const std::string& text) {
  std::string result;
  for (size_t begin = 0; begin < text.size();) {
    auto end = std::min(text.find('\n', begin), text.size());
    result += "  " + text.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return result;
}

std::string command_lines(const command_table& commands, const std::string& prefix) {
  std::string result;
  for (const auto& x : commands)
    if (!x.hidden && x.name.starts_with(prefix))
      result += hanging(fmt::format("  {:<18}", x.name), 20, x.summary);
  return result;
}

constexpr const char* overview_example = R"(  kernelmill run quickstart
  kernelmill eval --task native/row_sum kernel.cpp
  kernelmill doctor
)";

constexpr const char* overview_tail = R"(
`kernelmill COMMAND --help` shows an example and the options of a command.
Data goes to stdout, talk to stderr; every command takes --json.
Exit codes: 0 ok, 1 failed, 2 usage or configuration, 3 not found, 4 conflict,
69 server unreachable, 75 try again later, 77 permission, 130 interrupted.
)";

} // namespace

const std::vector<option_spec>& common_options() {
  static const std::vector<option_spec> options = {
      {"--json",
       "",
       "Prints one JSON document on stdout; errors are JSON on stderr.",
       "",
       false,
       {},
       {}},
      {"--color", "WHEN", "Colours.", "auto", false, {"auto", "always", "never"}, {}},
      {"--help", "", "Prints this text.", "", false, {}, {}},
  };
  return options;
}

std::string help_text(const command_table& commands) {
  return std::string{"Examples:\n"} + overview_example +
         "\nKernelmill rolls out language-model agents that write GPU kernels, and pays them "
         "honest "
         "rewards.\n\nUsage: kernelmill COMMAND [options] [arguments]\n\nCommands:\n" +
         command_lines(commands, "") + overview_tail;
}

std::string help_text(const command_table& commands, const std::string& noun) {
  std::string result = "Examples:\n";
  for (const auto& x : commands)
    if (!x.hidden && x.name.starts_with(noun + " ")) result += indented(x.example);
  return result + "\nUsage: kernelmill " + noun + " VERB [options] [arguments]\n\nVerbs:\n" +
         command_lines(commands, noun + " ");
}

std::string help_text(const command& x) {
  auto result = (x.example.find('\n') == std::string::npos ? "Example:\n" : "Examples:\n") +
                indented(x.example) + "\n" + x.summary + "\n\nUsage: " + usage(x) + "\n";
  if (!x.arguments.empty()) {
    result += "\nArguments:\n";
    for (const auto& a : x.arguments)
      result += hanging(fmt::format("  {:<22}", argument_usage(a)), 24, a.doc);
  }
  result += "\nOptions:\n";
  for (const auto* options : {&x.options, &common_options()})
    for (const auto& o : *options)
      result += hanging(fmt::format("  {:<22}", option_usage(o)), 24, option_doc(o));
  if (!x.details.empty()) result += "\n" + hanging("", 0, x.details);
  return result;
}

std::string reference_page(const command_table& commands) {
  std::string result =
      "# Commands\n\nMade by `kernelmill __reference` from the table of commands in "
      "`launch/main.cpp`; a test checks that it is up to date.\n\nEvery command takes "
      "`--json`, `--color WHEN` and `--help`. Data goes to stdout, talk to stderr. "
      "[Exit codes](exit-codes.md).\n\n| command | |\n|---|---|\n";
  for (const auto& x : commands)
    if (!x.hidden) result += fmt::format("| `kernelmill {}` | {} |\n", x.name, x.summary);
  for (const auto& x : commands) {
    if (x.hidden) continue;
    result += fmt::format("\n## kernelmill {}\n\n{}\n\n```bash\n{}\n```\n\nUsage: `{}`\n", x.name,
                          x.summary, x.example, usage(x));
    if (!x.arguments.empty() || !x.options.empty()) result += "\n| | |\n|---|---|\n";
    for (const auto& a : x.arguments)
      result += fmt::format("| `{}` | {} |\n", argument_usage(a), a.doc);
    for (const auto& o : x.options)
      result += fmt::format("| `{}` | {} |\n", option_usage(o), option_doc(o));
    if (!x.details.empty()) result += "\n" + x.details + "\n";
  }
  return result;
}

std::vector<std::string> nouns(const command_table& commands) {
  std::vector<std::string> result;
  for (const auto& x : commands) {
    auto noun = x.name.substr(0, x.name.find(' '));
    if (!x.hidden && std::find(result.begin(), result.end(), noun) == result.end())
      result.push_back(noun);
  }
  return result;
}

std::vector<std::string> verbs(const command_table& commands, const std::string& noun) {
  std::vector<std::string> result;
  for (const auto& x : commands)
    if (!x.hidden && x.name.starts_with(noun + " "))
      result.push_back(x.name.substr(noun.size() + 1));
  return result;
}

} // namespace kernelmill::cli
