#pragma once

// The commands as data. Parsing, help, completion and docs/reference/cli.md are all made from this
// table; a handler gets what was typed and answers with an exit code or an error.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "messages/error.hpp"

namespace kernelmill::cli {

enum class completes : unsigned char { nothing, file, directory, config, task, run };

struct option_spec {
  std::string name;  ///< "--task"
  std::string value; ///< its name in help, "T"; empty: a flag
  std::string doc;
  std::string fallback; ///< value when not given
  bool required = false;
  std::vector<std::string> choices;
  completes by = completes::nothing;
  std::string letter = {}; ///< "-f"; empty: none
  bool repeat = false;     ///< may be given several times
};

struct argument_spec {
  std::string name; ///< "CONFIG"
  std::string doc;
  bool required = true;
  bool repeat = false; ///< takes the rest; only for the last one
  completes by = completes::nothing;
  std::vector<std::string> choices;
};

/// What was typed, checked against the command's specification.
class invocation {
public:
  bool json = false; ///< one document on stdout
  bool colour_out = false;
  bool colour_err = false;
  std::map<std::string, std::vector<std::string>> values; ///< by name; a given flag holds ""

  std::set<std::string> defaults; ///< names of values that were not typed

  bool has(const std::string& name) const { return values.contains(name); }
  bool was_typed(const std::string& name) const { return has(name) && !defaults.contains(name); }
  const std::string& value(const std::string& name) const;
  const std::vector<std::string>& list(const std::string& name) const;

  /// Reads a number and names the option when it is none or out of range.
  expected<int64_t> integer(const std::string& name, int64_t low, int64_t high) const;
};

struct command {
  std::string name;    ///< "run", "task list"
  std::string summary; ///< one line
  std::string example; ///< shown first in help; one command a line
  std::string details; ///< paragraphs after the options; may be empty
  std::vector<argument_spec> arguments;
  std::vector<option_spec> options;
  expected<int> (*handle)(const invocation&) = nullptr;
  bool hidden = false;
  std::string group = {}; ///< heading in the overview; commands of a group stand together
  /// Keys of the columns of its tables, so that a wrong --columns is refused before the work;
  /// empty: it prints no table. Without a value they are known only once it has printed.
  std::optional<std::vector<std::string>> columns = {};
};

using command_table = std::vector<command>;

/// Options of every command: --json, --color, --help.
const std::vector<option_spec>& common_options();

/// Runs the command that `arguments` (argv without the program) name; returns the exit code.
int dispatch(const command_table& commands, const std::vector<std::string>& arguments);

// -- made from the table ------------------------------------------------------------------------

std::string help_text(const command_table& commands);
std::string help_text(const command& x);

/// Help of a noun with several verbs: "task".
std::string help_text(const command_table& commands, const std::string& noun);

/// docs/reference/cli.md.
std::string reference_page(const command_table& commands);

/// kernelmill.1, as roff.
std::string manual_page(const command_table& commands);

// What help, the reference page and the manual say of one row.
std::string argument_usage(const argument_spec& x);
std::string option_usage(const option_spec& x);
std::string option_doc(const option_spec& x);
std::string usage_of(const command& x);

/// A completion script for "bash", "zsh" or "fish".
std::string completion_script(const command_table& commands, const std::string& shell);

/// The first words of all commands, without the hidden ones.
std::vector<std::string> nouns(const command_table& commands);

/// The second words of a noun's commands; empty for a command of one word.
std::vector<std::string> verbs(const command_table& commands, const std::string& noun);

} // namespace kernelmill::cli
