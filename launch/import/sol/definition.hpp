#pragma once

// Definitions and workloads as flashinfer-trace and SOL-ExecBench write them: what is computed,
// with named axes, and at which sizes and on which inputs. Read as strangers' files: an error names
// file and key.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "messages/base/json_value.hpp"
#include "messages/error.hpp"

namespace kernelmill::sol {

enum class axis_kind : unsigned char { constant, variable, expression };

struct axis {
  std::string name;
  axis_kind kind = axis_kind::variable;
  int64_t value = 0;      ///< of a constant
  std::string expression; ///< of axes: "head_dim // 2"
  std::string description;
};

struct tensor {
  std::string name;
  bool is_scalar = false;         ///< a number of Python
  bool is_optional = false;       ///< may be None
  std::vector<std::string> shape; ///< names of axes, or numbers
  std::string type;               ///< "bfloat16"
  std::string description;
};

struct definition {
  std::string place; ///< the file, for errors
  std::string text;  ///< the file
  std::string name;
  std::string kind; ///< "op_type"; may be empty
  std::string description;
  std::vector<axis> axes; ///< in the file's order
  std::vector<tensor> inputs;
  std::vector<tensor> outputs;
  std::string reference;
  std::string custom_inputs; ///< the function of the reference that makes inputs; or empty
};

enum class input_kind : unsigned char { random, scalar, file, custom, generated, none };

struct workload_input {
  input_kind kind = input_kind::random;
  nlohmann::json value; ///< of a scalar; of `generated` the generator
  std::string path;     ///< of a file of safetensors
  std::string key;
};

struct tolerance {
  double absolute = 1e-2;
  double relative = 1e-2;
  double matched = 0.99;
  std::optional<double> largest;

  bool operator==(const tolerance&) const = default;
};

struct workload {
  std::string place; ///< "workload.jsonl, line 3"
  std::string name;  ///< its uuid
  std::map<std::string, int64_t> axes;
  std::map<std::string, workload_input> inputs;
  std::optional<tolerance> bound; ///< none: its rule is of a kind that we do not have
};

/// Which of both suites a file is of: they differ in default tolerances and in how inputs are
/// drawn.
enum class family : unsigned char { sol, flashinfer };

/// Reads a definition. `beside`: reference.py of the same folder, for a definition without one.
/// Errors: "bad_problem".
expected<definition> read_definition(const std::string& text, const std::string& place,
                                     const std::string& beside = {});

/// Reads one line: a workload, or a trace that holds one.
expected<workload> read_workload(const std::string& line, const std::string& place, family suite,
                                 const definition& of);

/// The value of every axis at a workload. Errors: "bad_problem" for one that is not given, and for
/// expressions that give no size.
expected<std::map<std::string, int64_t>> axes_at(const definition& x, const workload& at);

/// Calculates "a * (b // 2)" as Python does: + - * / // % ** and parentheses. The cause is in the
/// error's message.
expected<int64_t> evaluate(const std::string& expression,
                           const std::map<std::string, int64_t>& axes);

/// The sizes of a tensor.
std::vector<int64_t> sizes_of(const tensor& x, const std::map<std::string, int64_t>& axes);

/// Whether a text may be a name in Python that a problem can bind: no word of the language, and
/// none of `self`, `run`.
bool is_free_name(const std::string& x);

} // namespace kernelmill::sol
