#include "launch/import/sol/task.hpp"

#include <algorithm>
#include <set>

#include "launch/import/sol/inputs.hpp"
#include "messages/base/text.hpp"

namespace kernelmill::sol {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr size_t most_variants = 64;
constexpr size_t most_constants = 16; // of a variant
constexpr size_t most_words = 64;     // of a constant that is a text
constexpr size_t most_description = 4096;

struct word_family {
  const char* word;
  const char* family;
};

constexpr word_family families[] = {
    {"attention", "attention"}, {"attn", "attention"},     {"gqa", "attention"},
    {"mla", "attention"},       {"mha", "attention"},      {"dsa", "attention"},
    {"moe", "routing"},         {"routing", "routing"},    {"topk", "routing"},
    {"norm", "normalization"},  {"gemm", "matmul"},        {"matmul", "matmul"},
    {"linear", "matmul"},       {"proj", "matmul"},        {"softmax", "activation"},
    {"swiglu", "activation"},   {"gelu", "activation"},    {"silu", "activation"},
    {"relu", "activation"},     {"sigmoid", "activation"}, {"tanh", "activation"},
    {"conv", "convolution"},    {"pool", "pooling"},       {"loss", "loss"},
    {"transpose", "layout"},    {"cache", "layout"},       {"gather", "gather"},
    {"embedding", "gather"},    {"scan", "scan"},          {"ssm", "scan"},
    {"mamba", "scan"},          {"quant", "elementwise"},  {"rope", "elementwise"},
    {"rotary", "elementwise"},  {"sum", "reduction"},      {"reduc", "reduction"},
};

std::string python_text(const json& x) {
  if (x.is_boolean()) return x.get<bool>() ? "True" : "False";
  return x.dump(-1, ' ', true, json::error_handler_t::replace);
}

bool is_packed(const tensor& x) {
  return x.type.starts_with("float4");
}

// -- the module -----------------------------------------------------------------------------------

bool returns_names(const definition& x) {
  for (char quote : {'"', '\''})
    if (x.reference.find(std::string{quote} + x.outputs.front().name + quote) != x.reference.npos)
      return true;
  return x.reference.find("dict(") != x.reference.npos;
}

// What becomes of what `run` returns, where it may be no tensors in order.
std::string outputs_code(const definition& x) {
  std::string result;
  if (returns_names(x)) {
    std::string names;
    for (const auto& one : x.outputs) names += "\"" + one.name + "\", ";
    result += "        if isinstance(out, dict):\n            out = tuple(out[name] for name in (" +
              names + "))\n";
    if (x.outputs.size() == 1) result += "            out = out[0]\n";
  }
  bool all = x.outputs.size() == 1;
  for (size_t i = 0; i < x.outputs.size(); ++i) {
    const auto& one = x.outputs[i];
    auto value = all ? std::string{"out"} : "out[" + std::to_string(i) + "]";
    std::string made;
    if (one.is_scalar) made = "torch.as_tensor(" + value + ", dtype=torch." + one.type + ")";
    if (is_packed(one)) made = value + ".view(torch.uint8)";
    if (made.empty()) continue;
    result += all ? "        out = " + made + "\n"
                  : "        out = tuple(" + made + " if i == " + std::to_string(i) +
                        " else x for i, x in enumerate(out))\n";
  }
  return result;
}

std::string model_code(const definition& x) {
  std::string names;
  std::string passed;
  for (const auto& one : x.inputs) {
    names += ", " + one.name;
    passed += (passed.empty() ? "" : ", ") + one.name;
    // The lane knows packed numbers of four bits as bytes.
    if (is_packed(one)) passed += ".view(torch.float4_e2m1fn_x2)";
  }
  auto after = outputs_code(x);
  auto call = "run(" + passed + ")\n";
  std::string body =
      after.empty() ? "return " + call : "out = " + call + after + "        return out\n";
  // Models are called without gradients here; a reference that computes some asks for them.
  if (x.reference.find(".backward(") != x.reference.npos ||
      x.reference.find("autograd.grad(") != x.reference.npos)
    body = "with torch.enable_grad():\n            out = " + call + after + "        return out\n";
  return "\n\nclass Model(torch.nn.Module):\n    def forward(self" + names + "):\n        " + body;
}

expected<std::string> problem_code(const definition& x, const workload& first, family suite) {
  auto axes = axes_at(x, first);
  KM_TRY(axes);
  auto drawing = drawing_code(x, first, suite, *axes);
  KM_TRY(drawing);
  auto result = x.reference;
  if (result.back() != '\n') result += '\n';
  result += "\n";
  bool reads_files = drawing->find("def stored(") != drawing->npos;
  if (reads_files) result += "import functools\nimport hashlib\nimport json\n";
  if (drawing->find("math.") != drawing->npos) result += "import math\n";
  if (reads_files) result += "import os\n";
  result += "\nimport torch\n\n";
  for (const auto& one : constants_of(x, first))
    result +=
        one.name + " = " + (one.value.is_null() ? one.formula : python_text(one.value)) + "\n";
  return result + model_code(x) + "\n" + *drawing + "\n\ndef get_init_inputs():\n    return []\n";
}

// -- task.json and prompt.md ----------------------------------------------------------------------

ordered_json bound_of(const tolerance& x) {
  ordered_json result = {
      {"absolute", x.absolute}, {"relative", x.relative}, {"matched", x.matched}};
  if (x.largest && *x.largest > 0) result["largest"] = *x.largest; // 0 would allow no rounding
  return result;
}

bool is_variant_name(const std::string& x) {
  return !x.empty() && x.size() <= 40 && x != "base" &&
         std::all_of(x.begin(), x.end(), [](unsigned char c) {
           return (c < 128 && std::isalnum(c)) || c == '_' || c == '-' || c == '.';
         });
}

// What a candidate sees of a workload: of two with the same no second variant can be made.
std::string shape_of(const definition& x, const workload& at,
                     const std::map<std::string, int64_t>& axes) {
  std::string result;
  for (const auto& one : x.inputs) {
    for (auto size : sizes_of(one, axes)) result += std::to_string(size) + ",";
    result += ";";
  }
  bool draws_scalars = std::any_of(x.inputs.begin(), x.inputs.end(), [&](const auto& one) {
    return one.is_scalar && at.inputs.contains(one.name) &&
           at.inputs.at(one.name).kind == input_kind::custom;
  });
  for (const auto& one : constants_of(x, at))
    if (one.name.starts_with("VALUE_") || draws_scalars) result += one.name + one.value.dump();
  return result;
}

// Takes workloads one after another; those that fit become variants.
struct variant_list {
  const definition& of;
  const workload& base;
  std::vector<suite_refusal>& refused;
  ordered_json variants;
  std::set<std::string> names, shapes;

  void refuse(const workload& x, const char* reason, const std::string& cause) {
    refused.push_back({x.place, reason, cause});
  }

  void add(const workload& x, size_t number) {
    auto axes = axes_at(of, x);
    if (!axes) return refuse(x, "malformed", axes.error().message);
    if (law_of(of, x) != law_of(of, base))
      return refuse(x, "inputs of another kind",
                    "its inputs are drawn in another way than those of the first workload");
    if (!shapes.insert(shape_of(of, x, *axes)).second)
      return refuse(x, "same shape", "its inputs have the shapes and numbers of one before it");
    if (variants.size() == most_variants)
      return refuse(x, "more than 65 workloads", "a task has one shape and 64 variants");
    auto name = is_variant_name(x.name) ? x.name : "w" + std::to_string(number);
    if (!names.insert(name).second)
      return refuse(x, "named twice", "another workload is called " + name);
    ordered_json set = ordered_json::object();
    auto own = constants_of(of, base);
    auto other = constants_of(of, x);
    for (size_t i = 0; i < own.size(); ++i)
      if (own[i].value != other[i].value) set[other[i].name] = other[i].value;
    if (set.size() > most_constants)
      return refuse(x, "too many constants", "it differs in more than 16 constants");
    for (const auto& [unused, value] : set.items())
      if (value.is_string() && value.template get<std::string>().size() > most_words)
        return refuse(x, "name too long", "a key of its tensors has more than 34 letters");
    ordered_json one = {{"name", name}, {"set", set}, {"timed", true}};
    if (x.bound && x.bound != base.bound) one["tolerance"] = bound_of(*x.bound);
    variants.push_back(std::move(one));
  }
};

std::string table_of(const std::vector<tensor>& list) {
  std::string result = "| name | type | shape | |\n|---|---|---|---|\n";
  for (const auto& x : list) {
    std::string shape;
    for (const auto& one : x.shape) shape += (shape.empty() ? "" : ", ") + one;
    auto words = x.description.substr(0, 200);
    std::replace(words.begin(), words.end(), '\n', ' ');
    std::replace(words.begin(), words.end(), '|', '/');
    result += "| " + x.name + " | " + x.type + " | " +
              (x.is_scalar ? "a number" : "(" + shape + ")") + " | " + words + " |\n";
  }
  return result;
}

std::string prompt_of(const definition& x, family suite) {
  auto text = std::string{"Problem "} + x.name + " of " +
              (suite == family::sol ? "SOL-ExecBench" : "flashinfer-trace") + ".\n\n";
  if (!x.description.empty()) text += x.description.substr(0, most_description) + "\n\n";
  text += "Inputs:\n\n" + table_of(x.inputs) + "\nOutputs:\n\n" + table_of(x.outputs);
  return text +
         "\nBelow stands the reference `run` with a module, `Model`, that calls it, and the "
         "functions that draw its inputs.\nCompute the same from the same inputs in less time.\n";
}

// Kernels of Triton run on a GPU alone.
ordered_json backends_of(const definition& x) {
  bool needs_gpu = x.reference.find("import triton") != x.reference.npos;
  return needs_gpu ? ordered_json::array({"cuda"}) : ordered_json::array({"cpu", "cuda"});
}

std::string json_text(const ordered_json& x) {
  return x.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

} // namespace

std::string family_of_operators(const definition& x) {
  for (const auto& text : {lowered(x.kind), lowered(x.name)})
    for (const auto& rule : families)
      if (text.find(rule.word) != text.npos) return rule.family;
  return "fusion";
}

expected<suite_task> task_of(const problem& x, family suite, std::vector<suite_refusal>& refused) {
  if (x.what.kind == "sampling")
    return configuration_error("bad_problem", "its outputs are drawn by chance");
  if (x.workloads.empty()) return configuration_error("bad_problem", "it has no workload");
  const auto& first = x.workloads.front();
  auto code = problem_code(x.what, first, suite);
  KM_TRY(code);
  auto axes = axes_at(x.what, first);
  KM_TRY(axes);
  variant_list list{x.what, first, refused, ordered_json::array(), {}, {}};
  list.names.insert(first.name);
  list.shapes.insert(shape_of(x.what, first, *axes));
  for (size_t i = 1; i < x.workloads.size(); ++i) list.add(x.workloads[i], i + 1);
  const char* name = suite == family::sol ? "sol-execbench" : "flashinfer-trace";
  ordered_json document = {
      {"schema_version", 1},
      {"id", x.id},
      {"title", x.what.name},
      {"verb", "optimize"},
      {"operator_family", family_of_operators(x.what)},
      {"contract", "torch"},
      {"difficulty", "medium"},
      {"backends", backends_of(x.what)},
      {"source", name},
      {"suite", name},
      {"precision", "own"},
      {"entry", {{"function", "run"}, {"takes", "arguments"}}},
  };
  if (first.bound) document["tolerance"] = bound_of(*first.bound);
  if (std::any_of(x.workloads.begin(), x.workloads.end(),
                  [](const auto& one) { return !one.bound; }))
    refused.push_back({x.what.place, "the suite's tolerance",
                       "its tolerance is of a kind that we do not have: only ours can judge it"});
  if (!list.variants.empty()) document["variants"] = list.variants;
  suite_task result{x.id,
                    {{"task.json", json_text(document)},
                     {"problem.py", *code},
                     {"prompt.md", prompt_of(x.what, suite)},
                     {"definition.json", x.what.text}}};
  result.files.insert(result.files.end(), x.files.begin(), x.files.end());
  return result;
}

} // namespace kernelmill::sol
