#pragma once

// What an export can be: one form a purpose or a trainer. Each row is one line of JSON.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelmill::exports {

enum class form : unsigned char {
  sft,
  trajectories,
  preference,
  rl,
  trl,
  verl,
  prime_rl,
  skyrl,
  tinker,
  nemo_gym,
  megatron,
  harbor,
  kernel_rl
};

inline constexpr std::array all_forms = {
    form::sft,      form::trajectories, form::preference, form::rl,     form::trl,
    form::verl,     form::prime_rl,     form::skyrl,      form::tinker, form::nemo_gym,
    form::megatron, form::harbor,       form::kernel_rl};

/// "prime-rl".
std::string_view to_string(form x) noexcept;
std::optional<form> form_of(std::string_view name) noexcept;

/// One sentence: what a row is, and which tools read it.
std::string_view summary_of(form x) noexcept;

/// Whether rows are made of token ids, which not every policy server tells.
bool needs_tokens(form x) noexcept;

/// What leaves rows out. Filters of turns would change what the members of a group are compared
/// with, so forms of groups know only those of tasks.
enum class filtering : unsigned char { tasks, turns };
filtering filters_of(form x) noexcept;

// -- the fields of a row ------------------------------------------------------------------------

struct field;

/// A type as data: documents, JSON Schemas and the features of a data card are made from it.
struct type {
  std::string name;           ///< string, bool, int32, int64, float32, float64, list or record
  std::vector<field> members; ///< of a record; of a list its one item, which has no name
};

struct field {
  std::string name;
  type of;
  std::string doc;
  bool optional = false; ///< null, or not there
};

/// The fields of a row, in the order in which they are written.
const std::vector<field>& fields_of(form x);

/// Goes up with every change of a field that a reader of the rows before could not take.
inline constexpr int row_version = 1;

/// "urn:kernelmill:schema:export-sft:1"
std::string schema_id(form x);

/// A JSON Schema (2020-12) of one row.
std::string json_schema(form x);

/// The `features` of a data card, as lines of YAML behind `indent` spaces.
std::string features_yaml(form x, size_t indent);

/// The page docs/reference/exports.md has this part made from the tables.
std::string fields_page();

} // namespace kernelmill::exports
