// From argv to a handler. CLI11 parses the options of one command; which command is meant is
// decided before, since the suggestions for a misspelt noun or verb need the table.

#include <algorithm>
#include <charconv>
#include <exception>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "launch/cli/command.hpp"
#include "launch/cli/exit_code.hpp"
#include "launch/cli/output.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/config/keys.hpp"
#include "messages/base/suggest.hpp"
#include "messages/base/text.hpp"
#include "messages/without_stack.hpp"

namespace kernelmill::cli {

namespace {

tl::unexpected<error> usage_error(std::string message, std::string hint) {
  return configuration_error("usage", std::move(message), std::move(hint));
}

/// Whether errors are documents: before options are parsed, and whether they can be.
bool wants_documents(const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    const auto& x = arguments[i];
    auto next = i + 1 < arguments.size() ? arguments[i + 1] : std::string{};
    auto value = x == "-o" || x == "--output" ? next
                 : x.starts_with("--output=") ? x.substr(9)
                 : x.starts_with("-o")        ? x.substr(x.starts_with("-o=") ? 3 : 2)
                                              : std::string{};
    if (x == "--json" || value == "json" || value == "yaml") return true;
  }
  return false;
}

bool given(const std::vector<std::string>& arguments, const std::string& flag) {
  for (const auto& x : arguments) {
    if (x == "--") return false;
    if (x == flag) return true;
  }
  return false;
}

/// The words that name the command, and what is left for it.
struct selection {
  const command* chosen = nullptr;
  std::string noun; ///< when only a noun was typed
  std::vector<std::string> rest;
};

expected<selection> select(const command_table& commands,
                           const std::vector<std::string>& arguments) {
  selection result;
  size_t i = 0;
  auto take_options = [&] {
    for (; i < arguments.size() && arguments[i].size() > 1 && arguments[i][0] == '-'; ++i) {
      result.rest.push_back(arguments[i]);
      static const std::set<std::string> with_value{"--color", "-o", "--output", "--columns"};
      if (with_value.contains(arguments[i]) && i + 1 < arguments.size())
        result.rest.push_back(arguments[++i]);
    }
  };
  take_options();
  if (i == arguments.size()) return result;
  auto noun = arguments[i++];
  auto find = [&](const std::string& name) {
    auto at = std::find_if(commands.begin(), commands.end(),
                           [&](const command& x) { return x.name == name; });
    return at == commands.end() ? nullptr : &*at;
  };
  result.chosen = find(noun);
  // `node` starts one, `node ls` lists them.
  if (result.chosen && i < arguments.size())
    if (const auto* longer = find(noun + " " + arguments[i])) {
      result.chosen = longer;
      ++i;
    }
  if (!result.chosen) {
    auto choices = verbs(commands, noun);
    if (choices.empty()) {
      auto meant = closest(noun, nouns(commands));
      return usage_error("failed to run '" + clean(noun) + "': there is no such command",
                         meant.empty() ? "`kernelmill --help` lists the commands"
                                       : "did you mean `kernelmill " + meant + "`?");
    }
    result.noun = noun;
    take_options();
    if (i == arguments.size()) return result;
    auto verb = arguments[i++];
    result.chosen = find(noun + " " + verb);
    if (!result.chosen) {
      auto meant = closest(verb, choices);
      return usage_error("failed to run '" + clean(noun + " " + verb) +
                             "': there is no such command",
                         meant.empty() ? "`kernelmill " + noun + " --help` lists the verbs"
                                       : "did you mean `kernelmill " + noun + " " + meant + "`?");
    }
  }
  result.rest.insert(result.rest.end(), arguments.begin() + static_cast<ptrdiff_t>(i),
                     arguments.end());
  return result;
}

std::vector<std::string> option_names(const command& x) {
  std::vector<std::string> names;
  for (const auto* options : {&x.options, &common_options()})
    for (const auto& o : *options) names.push_back(o.name);
  return names;
}

/// Dashes count for nothing: every option has them.
std::string closest_option(const std::string& name, std::vector<std::string> names) {
  auto bare = [](const std::string& x) {
    auto begin = x.find_first_not_of('-');
    return begin == std::string::npos ? std::string{} : x.substr(begin);
  };
  for (auto& x : names) x = bare(x);
  auto meant = closest(bare(name), names);
  return meant.empty() ? meant : "--" + meant;
}

bool takes_overrides(const command& x) {
  return std::any_of(x.arguments.begin(), x.arguments.end(),
                     [](const auto& a) { return a.name == "CONFIG" || a.name == "OVERRIDE"; });
}

/// Returns the key that `--max-turns` or `--tasks.max_turns` is meant for, or an empty text.
std::string key_written_as_option(std::string name) {
  name.erase(0, name.find_first_not_of('-'));
  std::replace(name.begin(), name.end(), '-', '_');
  if (name.empty()) return {};
  const auto& keys = config_key_names();
  auto at = std::find_if(keys.begin(), keys.end(), [&](const std::string& key) {
    return key == name || key.ends_with("." + name);
  });
  return at == keys.end() ? std::string{} : *at;
}

/// A hint that needs no second command: "it is called as `kernelmill page export DIR [ROOT]`".
std::string how_it_is_called(const command& x) {
  return "it is called as `" + usage_of(x) + "`";
}

bool is_common_option(const std::string& name) {
  const auto& all = common_options();
  return std::any_of(all.begin(), all.end(), [&](const auto& x) { return x.name == name; });
}

tl::unexpected<error> unexpected_argument(const command& x, const std::string& word) {
  auto help = how_it_is_called(x);
  if (!word.starts_with("-"))
    return usage_error(
        "failed to run '" + x.name + "': '" + clean(word) + "' is one argument too many", help);
  auto name = word.substr(0, word.find('='));
  auto key = takes_overrides(x) ? key_written_as_option(name) : std::string{};
  auto meant = closest_option(name, option_names(x));
  return usage_error("failed to run '" + x.name + "': there is no option '" + clean(name) + "'",
                     !key.empty()    ? "settings are written without dashes: " + key + "=VALUE"
                     : meant.empty() ? help
                     : is_common_option(meant) && !x.arguments.empty()
                         ? "did you mean '" + meant + "'? " + help // --out is no --output
                         : "did you mean '" + meant + "'?");
}

/// Adds one option, bound to `store`.
void add_option(CLI::App& app, const option_spec& spec, std::vector<std::string>& store) {
  auto names = spec.letter.empty() ? spec.name : spec.letter + "," + spec.name;
  if (spec.value.empty()) {
    app.add_flag_callback(names, [&store] { store.assign(1, ""); });
    return;
  }
  // Repeated options are refused: the last one would win in silence.
  app.add_option(names, store)
      ->type_size(1)
      ->expected(1, spec.repeat ? CLI::detail::expected_max_vector_size : 1)
      ->allow_extra_args(false)
      ->required(spec.required);
}

void add_argument(CLI::App& app, const argument_spec& spec, std::vector<std::string>& store) {
  auto* option = app.add_option(spec.name, store)->required(spec.required);
  if (spec.repeat)
    option->expected(spec.required ? 1 : 0, CLI::detail::expected_max_vector_size);
  else
    option->type_size(1)->expected(1)->allow_extra_args(false); // CLI11 fills none whose least is 0
}

expected<void> check_choice(const command& x, const std::string& name,
                            const std::vector<std::string>& choices,
                            const std::vector<std::string>& values) {
  if (choices.empty()) return {};
  for (const auto& value : values) {
    if (std::find(choices.begin(), choices.end(), value) != choices.end()) continue;
    constexpr size_t seen_at_once = 4; // of these the message says enough: gpu is no misspelt cpu
    auto meant = choices.size() > seen_at_once ? closest(value, choices) : std::string{};
    return usage_error("failed to run '" + x.name + "': " + name + " takes one of " +
                           joined(choices) + ", not '" + clean(value) + "'",
                       meant.empty() ? how_it_is_called(x) : "did you mean '" + meant + "'?");
  }
  return {};
}

expected<void> check_choices(const command& x, const invocation& in) {
  for (const auto* options : {&x.options, &common_options()})
    for (const auto& o : *options)
      if (in.has(o.name))
        if (auto ok = check_choice(x, o.name, o.choices, in.list(o.name)); !ok) return ok;
  for (const auto& a : x.arguments)
    if (in.has(a.name))
      if (auto ok = check_choice(x, a.name, a.choices, in.list(a.name)); !ok) return ok;
  return {};
}

expected<invocation> parse(const command& x, std::vector<std::string> rest) {
  CLI::App app{x.summary, "kernelmill " + x.name};
  app.set_help_flag();
  std::map<std::string, std::vector<std::string>> values;
  for (const auto* options : {&x.options, &common_options()})
    for (const auto& o : *options) add_option(app, o, values[o.name]);
  for (const auto& a : x.arguments) add_argument(app, a, values[a.name]);
  try {
    std::reverse(rest.begin(), rest.end()); // CLI11 takes them from the back
    app.parse(rest);
  } catch (const CLI::ExtrasError&) {
    auto left = app.remaining(true);
    auto flag =
        std::find_if(left.begin(), left.end(), [](const auto& w) { return w.starts_with("-"); });
    return unexpected_argument(x, flag != left.end() ? *flag
                                  : left.empty()     ? std::string{}
                                                     : left.front());
  } catch (const CLI::ParseError& e) {
    auto left = app.remaining(true);
    auto flag =
        std::find_if(left.begin(), left.end(), [](const auto& w) { return w.starts_with("-"); });
    if (flag != left.end()) return unexpected_argument(x, *flag);
    return usage_error("failed to run '" + x.name + "': " + clean(e.what()), how_it_is_called(x));
  }
  invocation result;
  for (auto& [name, list] : values)
    if (!list.empty()) result.values[name] = std::move(list);
  KM_TRY(check_choices(x, result));
  for (const auto& o : x.options)
    if (!o.fallback.empty() && !result.has(o.name)) {
      result.values[o.name] = {o.fallback};
      result.defaults.insert(o.name);
    }
  return result;
}

int fail(const error& x, bool json) {
  print_error(x, json, wants_colour(2, "auto"));
  return exit_code(x);
}

int handle(const command& x, invocation in) {
  auto when = in.has("--color") ? in.value("--color") : "auto";
  if (auto ok = choose_output(x, in); !ok) return fail(ok.error(), in.has("--json"));
  keep_quiet(in.json);
  in.colour_out = wants_colour(1, when);
  in.colour_err = wants_colour(2, when);
  expected<int> result = exit_failed;
  try {
    result = x.handle(in);
  } catch (const std::exception& e) {
    result = infrastructure_error(
        "internal", "failed to run '" + x.name + "': " + without_stack(e.what()),
        "this is a defect of Kernelmill; please report it with the command");
  }
  show_activity({});
  if (result && prints_tables_alone()) {
    auto tables = taken_tables(x.name);
    if (tables)
      print_all(*tables);
    else
      result = tl::unexpected<error>{tables.error()};
  }
  if (!result) {
    print_error(result.error(), in.json, in.colour_err);
    return exit_code(result.error());
  }
  switch (finish_output()) {
    case output_state::written: return *result;
    case output_state::reader_gone:
      return exit_reader_gone; // `kernelmill ps | head` is no error to talk of
    case output_state::lost: break;
  }
  print_error(
      {fault_class::infrastructure, "output", "failed to write to stdout", "check where it goes"},
      in.json, in.colour_err);
  return exit_failed;
}

} // namespace

const std::string& invocation::value(const std::string& name) const {
  static const std::string none;
  auto at = values.find(name);
  return at == values.end() || at->second.empty() ? none : at->second.front();
}

const std::vector<std::string>& invocation::list(const std::string& name) const {
  static const std::vector<std::string> none;
  auto at = values.find(name);
  return at == values.end() ? none : at->second;
}

expected<int64_t> invocation::integer(const std::string& name, int64_t low, int64_t high) const {
  const auto& text = value(name);
  int64_t x = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (code != std::errc{} || end != text.data() + text.size() || x < low || x > high)
    return usage_error("failed to read " + name + ": '" + clean(text) +
                           "' is not an integer from " + std::to_string(low) + " to " +
                           std::to_string(high),
                       "give such a number");
  return x;
}

int dispatch(const command_table& commands, const std::vector<std::string>& arguments) {
  auto json = wants_documents(arguments);
  auto words = arguments;
  bool help = given(words, "--help") || given(words, "-h");
  if (!words.empty() && words[0] == "help") {
    help = true;
    words.erase(words.begin());
  }
  if (!words.empty() && words[0] == "--version") words[0] = "version";
  auto selected = select(commands, words);
  if (!selected) return fail(selected.error(), json);
  if (!selected->chosen) {
    auto text = selected->noun.empty() ? help_text(commands) : help_text(commands, selected->noun);
    if (help) {
      print(text);
      return exit_ok;
    }
    auto unknown = std::find_if(words.begin(), words.end(), [](const std::string& x) {
      return x.starts_with("-") && x != "--json" && x != "--color" && !x.starts_with("-o");
    });
    if (selected->noun.empty() && unknown != words.end())
      return fail({fault_class::configuration, "usage",
                   "failed to run: there is no option '" + clean(*unknown) + "' without a command",
                   "`kernelmill --help` lists the commands, `kernelmill --version` the versions"},
                  json);
    if (json)
      return fail({fault_class::configuration, "usage", "failed to run: no command is given",
                   "`kernelmill --help` lists the commands"},
                  json);
    talk(text);
    return exit_usage;
  }
  if (help) {
    print(help_text(*selected->chosen));
    return exit_ok;
  }
  auto in = parse(*selected->chosen, selected->rest);
  if (!in) return fail(in.error(), json);
  return handle(*selected->chosen, std::move(*in));
}

} // namespace kernelmill::cli
