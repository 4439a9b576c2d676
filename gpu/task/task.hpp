#pragma once

// A task is a folder: task.json (what to solve, the signature as data, the cases), prompt.md,
// reference.cpp (fp64, trusted), baseline.cpp (its time defines speedup 1) and, where the task
// is to repair, rewrite or translate something, starter.cpp. A task of the contract `torch` has
// problem.py in place of references and cases; one of the contract `program` has folders of files
// (program_task.hpp). docs/reference/tasks.md describes every key.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpu/task/program_task.hpp"
#include "messages/contract.hpp"
#include "messages/error.hpp"

namespace kernelmill {

enum class dtype : unsigned char { f32, i32 };
enum class argument_role : unsigned char { input, output, inout, scalar };

using scalar_values = std::map<std::string, int64_t>;

/// An integer expression over the task's scalars: + - * / % ( ) min max ceil_div, evaluated in
/// 64 bits with overflow checked.
class expression {
public:
  static expected<expression> parse(const std::string& text);
  expected<int64_t> evaluate(const scalar_values& scalars) const;
  const std::string& text() const { return text_; }

private:
  std::string text_;
  std::vector<int64_t> code_; // postfix; see expression.cpp
  std::vector<std::string> names_;
};

struct argument {
  std::string name;
  argument_role role = argument_role::input;
  dtype type = dtype::f32;
  std::vector<expression> shape;      ///< of a tensor, row-major; empty for a scalar
  std::string fill;                   ///< default distribution of an input
  std::vector<expression> fill_range; ///< for "index": the half-open range of the values
};

struct task_case {
  std::string name;
  scalar_values scalars;
  std::map<std::string, std::string> fills; ///< argument -> distribution, where not the default
  bool hidden = false;
};

/// A function that a module may define in place of ModelNew.
struct torch_entry {
  std::string function;  ///< empty: only ModelNew is taken
  bool as_tuple = false; ///< called with all inputs in one tuple, instead of one by one

  bool is_asked() const { return !function.empty(); }
  std::string text() const; ///< "run:arguments", "custom_kernel:tuple", or nothing
};

/// How far outputs may be off by the rule of the suite that a problem comes from.
struct torch_tolerance {
  double absolute = 0;
  double relative = 0;
  double matched = 1;            ///< least share of an output's elements that are within the bound
  std::optional<double> largest; ///< that no element may be off by more
};

/// The same problem with other constants, and so at other shapes.
struct torch_variant {
  std::string name;
  std::vector<std::pair<std::string, std::string>> constants; ///< of the module; value as JSON
  bool hidden = false;
  bool timed = false;
  std::optional<torch_tolerance> tolerance{}; ///< none: the problem's

  std::string text() const; ///< "batch_size = 16, dim = 8192"
};

/// What only a task of the contract `torch` has: a problem in Python.
struct torch_problem {
  std::string suite;       ///< "kernelbench"
  uint32_t level = 0;      ///< of the suite, from 1; 0: it has none
  uint32_t problem_id = 0; ///< within the level
  std::string precision = "fp32";
  std::vector<uint32_t> mutates;       ///< positions of inputs that Model writes to: outputs, too
  std::vector<torch_variant> variants; ///< besides the shape that the problem has itself
  torch_entry entry;
  std::optional<torch_tolerance> tolerance; ///< of the mode "suite"
  std::string code;                         ///< problem.py
  std::string language = "any";             ///< that answers must be in
};

/// How a counter of a good answer differs from the starter's.
struct counter_change {
  std::string counter;
  bool rises = false;
  double by = 1; ///< at least this factor
  bool hidden = false;

  std::string text() const; ///< "dram_bytes falls"
};

/// What a task of the verb `port` translates between.
struct port_languages {
  std::string from; ///< cpp, cuda, hip; of the contract `torch`: torch, cuda, triton
  std::string to;   ///< one of the others
};

/// The baseline of a candidate.
struct timed_beside {
  /// eager (the task's own: of the contract `torch` the problem's model as it is), compile,
  /// compile_max_autotune, file or best.
  std::string kind = "eager";
  std::string note;                           ///< what verdicts say of it; may be empty
  std::string sha256;                         ///< of the source of `file` and `best`
  std::shared_ptr<const std::string> product; ///< what a build made of it
};

/// What a run or a command asks of the candidates for a task. No part of the task's digest.
struct judging_terms {
  std::string backend = "cpu"; ///< cpu, cuda, hip
  /// native, or device where the backend is cuda. A task of the contract `torch` or `program` stays
  /// one whatever is asked for, so that a run may mix them; no other task becomes one.
  contract_kind contract = contract_kind::native;

  // Of answers of the contract `torch` alone.
  std::string mode = "honest";  ///< one of torch_modes()
  std::string language = "any"; ///< one of answer_languages(), or hip
  std::string float32 = "ieee"; ///< or "tf32"
  timed_beside baseline;
  std::string hardware; ///< "NVIDIA H200 (sm_90)": for the prompt; may be empty
  uint32_t shapes{0};   ///< variants that an evaluation judges, drawn anew; 0: all
};

struct task {
  std::string id;        ///< "native/row_sum": the folder below the tasks root
  std::string directory; ///< absolute
  std::string digest;    ///< SHA-256 over the files that define it
  std::string title;
  std::string verb;            ///< one of task_verbs()
  std::string operator_family; ///< reduction, normalization, elementwise, matmul, ...
  contract_kind contract = contract_kind::native; ///< of its candidates on these terms
  std::string difficulty;                         ///< easy, medium, hard
  std::string split;  ///< of exports: train or dev; empty: by the hash of the id
  std::string source; ///< whose licence counts: a `source` of configs/licences; empty: by the id
  std::vector<std::string> backends;
  std::string prompt; ///< prompt.md
  std::string function = "solve";
  std::vector<argument> arguments;
  std::vector<task_case> cases;
  judging_terms terms;  ///< what on_terms() was told
  task_case timed;      ///< the shape that is timed on these terms
  double tolerance = 4; ///< units of 2^-24 times the reference's scale of each element
  expression bytes;     ///< that one call must move at least
  expression flops;
  std::string starter; ///< to repair, rewrite, diagnose or port on these terms, or empty
  std::vector<std::string> diagnoses;   ///< labels to choose from, for verb diagnose
  std::string diagnosis;                ///< the right one; never shown to the policy
  std::vector<counter_change> evidence; ///< of the diagnosis, for verb diagnose
  std::vector<counter_change> strategy; ///< what must change, for verb reformulate
  port_languages port;                  ///< for verb port

  // What on_terms() chooses from.
  task_case timed_cpu;
  task_case timed_gpu; ///< without scalars when the task has none
  std::string starter_cpu;
  std::string starter_gpu;
  std::string starter_hip; ///< in place of starter_gpu, where CUDA's does not fit
  std::string starter_python;

  torch_problem torch;  ///< of the contract `torch` alone
  program_task program; ///< of the contract `program` alone

  bool names(const std::string& wanted) const; ///< whether it runs on this backend

  /// "const float* x, int rows": what declaration() has in its parentheses.
  std::string parameters() const;

  /// The C declaration that a candidate must define.
  std::string declaration() const;

  /// What the task asks for, as code: the problem in Python, or the declaration of its function.
  std::string computation() const;

  /// The one that reference.cpp must define.
  std::string reference_declaration() const;
};

/// optimize, debug, diagnose, reformulate, synthesize and port.
const std::vector<std::string>& task_verbs();

/// Whether tasks of this verb begin with code of theirs, which the policy is shown.
bool has_starter(const std::string& verb);

/// Counters that a task may name in `evidence` and `strategy`.
const std::vector<std::string>& task_counters();

/// Those of them that a task names and that are counted in code for the CPU; each once.
std::vector<std::string> code_counters_of(const task& x);

/// Whether an evaluation on a CPU compares code with the starter's: the request has the source.
bool compares_code(const task& x);

/// The distribution of an input in one case: the case's own, or the default.
const std::string& fill_of(const argument& input, const task_case& which);

/// A task as it was loaded, or on other terms. Nobody changes it.
using task_ptr = std::shared_ptr<const task>;

/// The same task on these terms: `contract`, `timed` and `starter` are those of them. A task that
/// asks for a language sets that of the terms. Errors: unsupported_backend, unsupported_contract,
/// config_inconsistent where the terms ask for another language than the task.
expected<task_ptr> on_terms(const task& x, judging_terms terms);

/// Reads one task folder, for the CPU when it names it. Errors name the file and the key or line.
expected<task_ptr> load_task(const std::string& tasks_root, const std::string& id);

/// The same for a folder whose tasks root is not known: its path must end with the task's id.
expected<task_ptr> load_task_folder(const std::string& directory);

/// Lists the ids of every task below `tasks_root`, sorted. Folders whose name begins with a dot are
/// passed over: an import writes there.
expected<std::vector<std::string>> list_tasks(const std::string& tasks_root);

/// Folders below which tasks are found. Of two tasks with one id that of the first folder counts.
using task_roots = std::vector<std::string>;

/// The same for several roots; one that is not there holds nothing, unless it is the only one.
expected<task_ptr> load_task(const task_roots& roots, const std::string& id);
expected<std::vector<std::string>> list_tasks(const task_roots& roots);

/// How answers of the contract `torch` are judged: "honest"; "suite", by the task's own tolerance;
/// "kernelbench", as that benchmark does.
const std::vector<std::string>& torch_modes();

/// What `precision` of a problem in Python may be: the type that all its floating tensors take, or
/// "own": each keeps the type that it has.
const std::vector<std::string>& torch_precisions();

/// The one of a problem as its text has it: "own" where it names another type than float32.
std::string precision_of_problem(const std::string& code);

/// Returns what a text lacks to be a problem of the contract `torch`: "it defines no get_inputs";
/// empty when it has all. It is not run, and may import what is not installed.
std::string missing_of_problem(const std::string& code);

/// What a problem's text says of its inputs without what it computes: the constants that they are
/// made of, get_inputs, get_init_inputs, and the heads of Model's constructor and forward.
std::string interface_of_problem(const std::string& code);

/// Returns the first constant of the variants that a problem's text does not assign at module
/// level; empty when it assigns all of them.
std::string missing_constant(const torch_problem& x);

/// Constants of the visible variants as a JSON list of objects, `[{"dim": 8192}]`; empty where
/// there are none.
std::string visible_constants(const torch_problem& x);

/// The path of a task's "reference", "baseline" or "starter" for GPUs: in HIP where the task's
/// terms are HIP and it has one in HIP, else in CUDA.
std::string device_file(const task& x, const std::string& stem);

/// Returns "cols=256 rows=64": in the order of the names.
std::string shape_text(const scalar_values& scalars);

/// Returns "rows=64 cols=256": in the order of the signature.
std::string shape_text(const task& x, const scalar_values& scalars);

} // namespace kernelmill
