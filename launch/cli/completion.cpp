// Completion scripts for three shells, from the table of commands.

#include <fmt/format.h>

#include "launch/cli/command.hpp"
#include "messages/base/text.hpp"

namespace kernelmill::cli {

namespace {

std::vector<const option_spec*> options_of(const command& x) {
  std::vector<const option_spec*> result;
  for (const auto* options : {&x.options, &common_options()})
    for (const auto& o : *options) result.push_back(&o);
  return result;
}

/// The program itself knows tasks, runs and presets: names change, scripts do not.
std::string dynamic_source(completes by) {
  return by == completes::task     ? "kernelmill __complete task"
         : by == completes::run    ? "kernelmill __complete run"
         : by == completes::config ? "kernelmill __complete preset"
                                   : "";
}

// -- bash ---------------------------------------------------------------------------------------

std::string bash_words(completes by, const std::vector<std::string>& choices) {
  if (!choices.empty())
    return fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$cur\"))", joined(choices, " "));
  switch (by) {
    case completes::file: return "COMPREPLY=($(compgen -f -- \"$cur\"))";
    case completes::config:
      return fmt::format(
          "COMPREPLY=($(compgen -W \"$({} 2>/dev/null)\" -- \"$cur\") $(compgen -f -- \"$cur\"))",
          dynamic_source(by));
    case completes::directory: return "COMPREPLY=($(compgen -d -- \"$cur\"))";
    case completes::task:
    case completes::run:
      return fmt::format("COMPREPLY=($(compgen -W \"$({} 2>/dev/null)\" -- \"$cur\"))",
                         dynamic_source(by));
    case completes::nothing: break;
  }
  return "COMPREPLY=()";
}

std::string bash_command(const command& x) {
  std::string names, values;
  for (const auto* o : options_of(x)) {
    names += (names.empty() ? "" : " ") + o->name;
    if (!o->value.empty())
      values += fmt::format("        {}) {}; return ;;\n", o->name, bash_words(o->by, o->choices));
  }
  auto argument = x.arguments.empty() ? argument_spec{} : x.arguments.front();
  return fmt::format(
      "    '{}')\n      case \"$prev\" in\n{}      esac\n      if [[ $cur == -* ]]; then "
      "COMPREPLY=($(compgen -W '{}' -- \"$cur\"))\n      else {}\n      fi ;;\n",
      x.name, values, names, bash_words(argument.by, argument.choices));
}

std::string bash_script(const command_table& commands) {
  std::string groups, cases;
  for (const auto& noun : nouns(commands))
    if (auto list = verbs(commands, noun); !list.empty())
      groups += fmt::format("    {}) verbs='{}' ;;\n", noun, joined(list, " "));
  for (const auto& x : commands)
    if (!x.hidden) cases += bash_command(x);
  return fmt::format(R"(# Load with: source <(kernelmill completion bash)
_kernelmill() {{
  local cur prev command verbs=''
  COMPREPLY=()
  cur="${{COMP_WORDS[COMP_CWORD]}}"
  prev="${{COMP_WORDS[COMP_CWORD-1]}}"
  if (( COMP_CWORD == 1 )); then
    COMPREPLY=($(compgen -W '{} --help --version' -- "$cur"))
    return
  fi
  command="${{COMP_WORDS[1]}}"
  case "$command" in
{}  esac
  if [[ -n $verbs ]]; then
    if (( COMP_CWORD == 2 )); then
      COMPREPLY=($(compgen -W "$verbs --help" -- "$cur"))
      return
    fi
    command="$command ${{COMP_WORDS[2]}}"
  fi
  case "$command" in
{}  esac
}}
complete -o filenames -F _kernelmill kernelmill
)",
                     joined(nouns(commands), " "), groups, cases);
}

// -- zsh ----------------------------------------------------------------------------------------

std::string zsh_quoted(const std::string& text) {
  std::string result;
  for (char c : text) {
    if (c == '\'')
      result += "'\\''";
    else if (c == '[' || c == ']' || c == ':')
      result += std::string{"\\"} + c;
    else
      result += c;
  }
  return result;
}

std::string zsh_action(completes by, const std::vector<std::string>& choices) {
  if (!choices.empty()) return "(" + joined(choices, " ") + ")";
  switch (by) {
    case completes::file: return "_files";
    case completes::config: return "_kernelmill_configs";
    case completes::directory: return "_files -/";
    case completes::task:
    case completes::run: return "($(" + dynamic_source(by) + " 2>/dev/null))";
    case completes::nothing: break;
  }
  return " ";
}

std::string zsh_command(const command& x) {
  auto result = fmt::format("    '{}') _arguments", x.name);
  for (const auto* o : options_of(x)) {
    for (const auto& name : {o->name, o->letter}) {
      if (name.empty()) continue;
      result += fmt::format(" \\\n      '{}[{}]", name, zsh_quoted(o->doc));
      if (!o->value.empty())
        result += fmt::format(":{}:{}", o->value, zsh_action(o->by, o->choices));
      result += "'";
    }
  }
  for (const auto& a : x.arguments)
    result += fmt::format(" \\\n      '{}:{}:{}'", a.repeat ? "*" : "", a.name,
                          zsh_action(a.by, a.choices));
  return result + " ;;\n";
}

std::string zsh_described(const command_table& commands, const std::string& noun) {
  std::string result;
  for (const auto& verb : verbs(commands, noun))
    for (const auto& x : commands)
      if (x.name == noun + " " + verb)
        result += fmt::format(" '{}:{}'", verb, zsh_quoted(x.summary));
  return result;
}

std::string zsh_script(const command_table& commands) {
  std::string groups, cases;
  for (const auto& noun : nouns(commands))
    if (!verbs(commands, noun).empty())
      groups += fmt::format("    {}) verbs=({} ) ;;\n", noun, zsh_described(commands, noun));
  for (const auto& x : commands)
    if (!x.hidden) cases += zsh_command(x);
  return fmt::format(R"(#compdef kernelmill
# Load with: source <(kernelmill completion zsh)
_kernelmill_configs() {{
  compadd -- $({} 2>/dev/null)
  _files
}}
_kernelmill() {{
  local command
  local -a verbs
  if (( CURRENT == 2 )); then
    compadd -- {} --help --version
    return
  fi
  command="$words[2]"
  case "$command" in
{}  esac
  if (( $#verbs )); then
    if (( CURRENT == 3 )); then
      _describe verb verbs
      return
    fi
    command="$command $words[3]"
    shift words
    (( CURRENT-- ))
  fi
  shift words
  (( CURRENT-- ))
  case "$command" in
{}  esac
}}
if [ "$funcstack[1]" = _kernelmill ]; then _kernelmill "$@"; else compdef _kernelmill kernelmill; fi
)",
                     dynamic_source(completes::config), joined(nouns(commands), " "), groups,
                     cases);
}

// -- fish ---------------------------------------------------------------------------------------

std::string fish_quoted(const std::string& text) {
  std::string result;
  for (char c : text) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string fish_source(completes by, const std::vector<std::string>& choices) {
  if (!choices.empty()) return " -f -a '" + joined(choices, " ") + "'";
  switch (by) {
    case completes::file: return " -F";
    case completes::config: return " -F -a '(" + dynamic_source(by) + " 2>/dev/null)'";
    case completes::directory: return " -f -a '(__fish_complete_directories)'";
    case completes::task:
    case completes::run: return " -f -a '(" + dynamic_source(by) + " 2>/dev/null)'";
    case completes::nothing: break;
  }
  return "";
}

std::string fish_script(const command_table& commands) {
  std::string result =
      "# Load with: kernelmill completion fish | source\ncomplete -c kernelmill -f\n";
  for (const auto& noun : nouns(commands)) {
    std::string summary = "Verbs: " + joined(verbs(commands, noun), " ");
    for (const auto& x : commands)
      if (x.name == noun) summary = x.summary;
    result += fmt::format("complete -c kernelmill -n __fish_use_subcommand -a {} -d '{}'\n", noun,
                          fish_quoted(summary));
  }
  for (const auto& x : commands) {
    if (x.hidden) continue;
    auto space = x.name.find(' ');
    auto seen = "__fish_seen_subcommand_from " + x.name.substr(0, space);
    if (space != std::string::npos) {
      auto verb = x.name.substr(space + 1);
      result += fmt::format(
          "complete -c kernelmill -n '{}; and not __fish_seen_subcommand_from {}' -a {} -d '{}'\n",
          seen, joined(verbs(commands, x.name.substr(0, space)), " "), verb,
          fish_quoted(x.summary));
      seen += "; and __fish_seen_subcommand_from " + verb;
    }
    for (const auto* o : options_of(x))
      result +=
          fmt::format("complete -c kernelmill -n '{}' -l {}{} -d '{}'{}\n", seen, o->name.substr(2),
                      o->letter.empty() ? "" : " -s " + o->letter.substr(1), fish_quoted(o->doc),
                      o->value.empty() ? "" : " -r" + fish_source(o->by, o->choices));
    if (!x.arguments.empty())
      if (auto source = fish_source(x.arguments.front().by, x.arguments.front().choices);
          !source.empty())
        result += fmt::format("complete -c kernelmill -n '{}'{}\n", seen, source);
  }
  return result;
}

} // namespace

std::string completion_script(const command_table& commands, const std::string& shell) {
  return shell == "bash"  ? bash_script(commands)
         : shell == "zsh" ? zsh_script(commands)
                          : fish_script(commands);
}

} // namespace kernelmill::cli
