#pragma once

// What a name of a traced program stands for, as far as tracing needs it.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kernelmill {

struct python_object;

enum class python_type : uint8_t {
  unknown, ///< a number or a text that only a run would tell
  none,
  number,
  text,
  sequence,
  dictionary,
  tensor,
  layer,    ///< of PyTorch, made
  instance, ///< of a class of the text
  classes,  ///< a class of the text
  function, ///< of the text, a lambda too
  external, ///< "torch.nn.Linear": what the text imports
  method    ///< of what `of` is, or of the tensor `self`
};

struct python_value {
  python_type kind = python_type::unknown;
  int8_t rank = -1;      ///< of a tensor; -1: not known
  bool made = false;     ///< of a tensor: no operator computed it
  uint32_t id = 0;       ///< of a tensor
  int32_t producer = -1; ///< of a tensor: the operator that computed it
  double number = 0;
  std::string text; ///< a text; the name of what is external, or of a method
  python_object* of = nullptr;

  bool is(python_type x) const { return kind == x; }
};

struct python_scope;

struct python_object {
  std::string name;                            ///< of a class or a layer
  std::vector<python_value> items;             ///< of a sequence; children of a layer; a shape
  std::map<std::string, python_value> fields;  ///< of an instance, a dictionary, a class
  std::vector<python_value> arguments;         ///< that made a layer
  std::map<std::string, python_value> options; ///< the named ones
  std::vector<python_value> bases;             ///< of a class
  python_value self;                           ///< whose method it is; what an instance is of
  python_scope* scope = nullptr;               ///< where a function was defined
  uint32_t at = 0, end = 0; ///< a statement of a function, or the tokens of a lambda
  bool lambda = false;
};

struct python_scope {
  std::map<std::string, python_value, std::less<>> names;
  python_scope* outer = nullptr;
  python_object* owner = nullptr; ///< the class whose method runs, for super()
  python_value self;
  python_value result;
  bool returned = false;
};

struct call_arguments {
  std::vector<python_value> given;
  std::map<std::string, python_value> named;

  /// Null: not given.
  const python_value* find(size_t position, const std::string& name) const {
    if (auto found = named.find(name); found != named.end()) return &found->second;
    return position < given.size() ? &given[position] : nullptr;
  }
};

} // namespace kernelmill
