#pragma once

// The inner parts of trace_program.

#include <algorithm>
#include <deque>
#include <optional>

#include "retrieval/code/python_text.hpp"
#include "retrieval/code/python_value.hpp"
#include "retrieval/code/trace.hpp"

namespace kernelmill {

class tracer {
public:
  explicit tracer(std::string_view code) : text_(read_python(code)) {}

  program_trace trace();

private:
  // -- statements: tracer_statements.cpp
  void run_block(uint32_t begin, uint32_t end, python_scope& scope);
  void run_statement(uint32_t& at, uint32_t end, python_scope& scope);
  void run_simple(uint32_t first, uint32_t last, python_scope& scope);
  void run_if(uint32_t& at, uint32_t end, python_scope& scope);
  void run_for(uint32_t at, python_scope& scope);
  void define_class(uint32_t at, python_scope& scope);
  void define_function(uint32_t at, python_scope& scope);
  void import_names(uint32_t first, uint32_t last, python_scope& scope);
  void assign(uint32_t first, uint32_t last, const python_value& x, python_scope& scope);
  void run_suite(uint32_t at, uint32_t colon, python_scope& scope);
  template <class F>
  uint32_t scan(uint32_t first, uint32_t last, F&& wanted);
  uint32_t find_mark(uint32_t first, uint32_t last, std::string_view mark);
  uint32_t find_assignment(uint32_t first, uint32_t last);
  uint32_t end_of_element(uint32_t first, uint32_t last);
  std::vector<python_value> steps_of(const python_value& x);

  // -- expressions: tracer_expressions.cpp
  python_value evaluate(uint32_t first, uint32_t last, python_scope& scope);
  python_value expression(uint32_t& at, uint32_t last, python_scope& scope);
  python_value operation(uint32_t& at, uint32_t last, int least, python_scope& scope);
  python_value operand(uint32_t& at, uint32_t last, python_scope& scope);
  python_value atom(uint32_t& at, uint32_t last, python_scope& scope);
  python_value bracket(uint32_t at, uint32_t close, python_scope& scope);
  python_value comprehension(uint32_t first, uint32_t word, uint32_t last, python_scope& scope);
  python_value make_lambda(uint32_t& at, uint32_t last, python_scope& scope);
  call_arguments arguments_of(uint32_t open, uint32_t close, python_scope& scope);
  python_value binary(std::string_view mark, const python_value& a, const python_value& b);
  python_value compare_values(std::string_view mark, const python_value& a, const python_value& b);

  // -- calls: tracer_calls.cpp
  python_value call(const python_value& callee, call_arguments& x);
  python_value call_function(python_object& f, call_arguments& x, const python_value* self);
  python_value call_layer(python_object& layer, call_arguments& x);
  python_value call_external(const std::string& name, call_arguments& x);
  python_value call_method(const python_value& method, call_arguments& x);
  python_value make_instance(python_object& of, call_arguments& x);
  python_value make_tensor(const call_arguments& x);
  void bind(python_object& f, call_arguments& x, const python_value* self, python_scope& scope);

  // -- names, elements and what Python has itself: tracer_builtins.cpp
  python_value look_up(const std::string& name, const python_scope& scope);
  python_value attribute(const python_value& x, const std::string& name);
  const python_value* method_of(const python_object& of, const std::string& name) const;
  python_value subscript(const python_value& x, uint32_t open, uint32_t close, python_scope& scope);
  python_value call_builtin(const std::string& name, call_arguments& x, bool& known);

  // -- operators: tracer_operators.cpp
  python_value emit(std::string_view name, const call_arguments& x, const python_object* layer);
  python_value elementwise(std::string_view name, const python_value& a, const python_value& b);
  python_value emit_plain(std::string name, std::string parameters, const python_value& first,
                          int rank);
  python_value fold_product(const python_value& a, const python_value& b);
  std::string weight_shape(const call_arguments& x, std::string_view parameter) const;
  std::string grouping(const call_arguments& x, const python_object* layer) const;
  bool is_last(const python_value& x) const {
    return x.producer >= 0 && static_cast<size_t>(x.producer) + 1 == operators_.size();
  }

  // -- the whole: trace.cpp
  python_object* entry_class();
  bool is_named_elsewhere(const python_object& x) const;
  python_object* entry_function();
  void trace_class(python_object& of);
  std::vector<python_value> values_of(const char* function);

  bool spend() {
    if (steps_ == 0 || operators_.size() >= most_operators) return false;
    --steps_;
    return true;
  }
  void pay(size_t steps) { steps_ -= std::min(steps_, steps); }
  bool is_word(uint32_t at, uint32_t last, std::string_view word) const {
    return at < last && text_.tokens[at].kind == python_kind::name && text_.tokens[at].text == word;
  }
  bool is_mark(uint32_t at, uint32_t last, std::string_view mark) const {
    return at < last && text_.tokens[at].kind == python_kind::mark && text_.tokens[at].text == mark;
  }
  python_object* make_object() { return &objects_.emplace_back(); }
  python_value new_tensor(int rank = -1);
  python_value sequence(std::vector<python_value> items);

  static constexpr size_t most_operators = 4096;
  static constexpr int most_depth = 160;

  struct deeper {
    explicit deeper(int& x) : depth(x) { ++depth; }
    ~deeper() { --depth; }
    int& depth;
  };

  struct produced {
    traced_operator shown;
    uint32_t input = 0, output = 0;
    bool of_made = false; ///< its input is a parameter or an input of the program
  };

  python_text text_;
  std::deque<python_object> objects_;
  std::deque<python_scope> scopes_;
  python_scope* globals_ = nullptr;
  std::vector<produced> operators_;
  std::vector<python_object*> classes_, functions_; ///< of the outermost level, in order
  size_t steps_ = 200'000;
  uint32_t tensors_ = 0;
  int depth_ = 0;
  bool recording_ = false;
  bool strange_ = false;
};

// Shared by the parts.
python_value number_value(double x);
python_value text_value(std::string x);
/// The first argument, or what is not known.
const python_value& first_of(const call_arguments& x);
python_value external_value(std::string x);
std::optional<bool> truth_of(const python_value& x);
/// "3", "3x5", "same", "?": of a tuple of equal numbers one of them.
std::string value_text(const python_value& x);

} // namespace kernelmill
