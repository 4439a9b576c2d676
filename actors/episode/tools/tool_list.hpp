#pragma once

// The tools that an episode of mode `tools` may call: one table, from which the JSON Schemas, the
// checks of arguments, the prompt's list, the costs and docs/reference/tools.md come.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "messages/error.hpp"

namespace kernelmill {

enum class tool_kind : unsigned char {
  task_show,
  knowledge_query,
  note_strategy,
  write_candidate,
  patch_candidate,
  test_patch,
  branch,
  revert,
  promote,
  build,
  run,
  eval,
  bench,
  profile,
  sanitize,
  inspect,
  compare,
  replay,
  submit,
};

enum class field_type : unsigned char { text, number, flag };

struct tool_field {
  std::string_view name;
  field_type type = field_type::text;
  bool required = false;
  std::string_view description;
  std::vector<std::string_view> choices{}; ///< of a text; empty: any
};

struct tool {
  tool_kind kind;
  std::string_view name;
  std::string_view description;
  uint32_t steps = 1; ///< of the step budget
  std::vector<tool_field> fields;
};

std::span<const tool> all_tools();

/// Null: there is none of this name.
const tool* find_tool(std::string_view name);
const tool& tool_of(tool_kind kind);

/// Whether its outcome tells something of hidden cases; of a submission, which ends all, nothing.
bool tells_hidden(tool_kind kind);

/// The JSON Schema of a tool's arguments.
const std::string& schema_of(const tool& x);

/// Arguments that fit their tool's schema. What was not given is empty, 0 or false.
class tool_arguments {
public:
  bool has(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  int64_t number(std::string_view name, int64_t otherwise) const;
  bool flag(std::string_view name) const;

private:
  friend expected<tool_arguments> read_arguments(const tool&, std::string_view);

  std::map<std::string, std::string, std::less<>> texts_;
  std::map<std::string, int64_t, std::less<>> numbers_;
};

/// Reads the arguments of a call. Errors: class policy, "bad_arguments"; the message says which
/// field is wrong and what it should be.
expected<tool_arguments> read_arguments(const tool& x, std::string_view json);

} // namespace kernelmill
