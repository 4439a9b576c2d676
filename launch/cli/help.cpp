// Help, the reference page, and lists of names, from the table of commands.

#include <algorithm>

#include <fmt/format.h>

#include "launch/cli/command.hpp"
#include "launch/cli/terminal.hpp"

namespace kernelmill::cli {

std::string argument_usage(const argument_spec& x) {
  auto text = x.repeat ? x.name + "..." : x.name;
  return x.required ? text : "[" + text + "]";
}

std::string option_usage(const option_spec& x) {
  auto names = x.letter.empty() ? x.name : x.letter + ", " + x.name;
  return x.value.empty() ? names : names + " " + x.value;
}

std::string usage_of(const command& x) {
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

namespace {

std::string indented(const std::string& text) {
  std::string result;
  for (size_t begin = 0; begin < text.size();) {
    auto end = std::min(text.find('\n', begin), text.size());
    result += "  " + text.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return result;
}

// With `headed`, each group begins with its name.
std::string command_lines(const command_table& commands, const std::string& prefix, bool headed) {
  auto shown = [&](const command& x) { return !x.hidden && x.name.starts_with(prefix); };
  size_t width = 0;
  for (const auto& x : commands)
    if (shown(x)) width = std::max(width, x.name.size());
  std::string result, group;
  for (const auto& x : commands) {
    if (!shown(x)) continue;
    if (headed && x.group != group) result += "\n" + x.group + ":\n";
    group = x.group;
    result += hanging(fmt::format("  {:<{}}  ", x.name, width), width + 4, x.summary);
  }
  return result;
}

constexpr const char* overview_example = R"(  kernelmill run quickstart
  kernelmill eval --task native/row_sum kernel.cpp
  kernelmill doctor
)";

constexpr const char* overview_tail = R"(
`kernelmill COMMAND --help` shows an example and the options of a command.
Results go to stdout, messages to stderr. Every command takes --json and -o table|json|csv|yaml.
Exit codes: 0 ok, 1 failed, 2 usage or configuration, 3 not found, 4 conflict, 5 check failed,
69 server unreachable, 70 too many faults, 75 try again later, 77 permission, 130 interrupted.
)";

} // namespace

const std::vector<option_spec>& common_options() {
  static const std::vector<option_spec> options = {
      {"--json",
       "",
       "Prints one JSON document on stdout, and errors as JSON on stderr.",
       "",
       false,
       {},
       {}},
      {"--output",
       "FORMAT",
       "Form of the results: csv has the cells of tables, yaml the document of --json.",
       "table",
       false,
       {"table", "json", "csv", "yaml"},
       {},
       "-o"},
      {"--columns",
       "LIST",
       "Prints these columns of tables alone, such as run,state.",
       "",
       false,
       {},
       {}},
      {"--no-headers", "", "Prints tables alone, without their first lines.", "", false, {}, {}},
      {"--color", "WHEN", "When to use colours.", "auto", false, {"auto", "always", "never"}, {}},
      {"--help", "", "Prints this help.", "", false, {}, {}},
  };
  return options;
}

std::string help_text(const command_table& commands) {
  return std::string{"Examples:\n"} + overview_example +
         "\nKernelmill runs LLM agents that write GPU kernels and scores each kernel with a reward "
         "that is hard to game.\n\nUsage: kernelmill COMMAND [options] [arguments]\n" +
         command_lines(commands, "", true) + overview_tail;
}

std::string help_text(const command_table& commands, const std::string& noun) {
  std::string result = "Examples:\n";
  for (const auto& x : commands)
    if (!x.hidden && x.name.starts_with(noun + " ")) result += indented(x.example);
  return result + "\nUsage: kernelmill " + noun + " VERB [options] [arguments]\n\nVerbs:\n" +
         command_lines(commands, noun + " ", false);
}

std::string help_text(const command& x) {
  auto result = (x.example.find('\n') == std::string::npos ? "Example:\n" : "Examples:\n") +
                indented(x.example) + "\n" + x.summary + "\n\nUsage: " + usage_of(x) + "\n";
  if (!x.arguments.empty()) {
    result += "\nArguments:\n";
    for (const auto& a : x.arguments)
      result += hanging(fmt::format("  {:<26}", argument_usage(a)), 28, a.doc);
  }
  result += "\nOptions:\n";
  for (const auto* options : {&x.options, &common_options()})
    for (const auto& o : *options)
      result += hanging(fmt::format("  {:<26}", option_usage(o)), 28, option_doc(o));
  if (!x.details.empty()) result += "\n" + hanging("", 0, x.details);
  return result;
}

std::string reference_page(const command_table& commands) {
  std::string result =
      "# Commands\n\nGenerated by `kernelmill __reference` from the table of commands in "
      "`launch/commands/program/table.cpp`. A test checks that it is up to date.\n\nEvery command "
      "takes "
      "`--json`, `-o table|json|csv|yaml`, `--columns LIST`, `--no-headers`, `--color WHEN` and "
      "`--help`. Results go to stdout, messages to stderr. "
      "[Exit codes](exit-codes.md).\n\n| command | |\n|---|---|\n";
  for (const auto& x : commands)
    if (!x.hidden) result += fmt::format("| `kernelmill {}` | {} |\n", x.name, x.summary);
  for (const auto& x : commands) {
    if (x.hidden) continue;
    result += fmt::format("\n## kernelmill {}\n\n{}\n\n```bash\n{}\n```\n\nUsage: `{}`\n", x.name,
                          x.summary, x.example, usage_of(x));
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
