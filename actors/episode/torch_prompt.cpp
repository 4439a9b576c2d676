// The prompt of a task of the contract `torch`: a PyTorch module to make faster, in the shape that
// users of KernelBench know, and what is asked of the answer.

#include <fmt/format.h>

#include "actors/episode/prompt_parts.hpp"
#include "actors/episode/torch_answers.hpp"
#include "messages/base/text.hpp"

namespace kernelmill {

namespace {

constexpr size_t max_problem_text = 512 << 10;

bool on_cpu(const task& x) {
  return x.terms.backend == "cpu";
}

const char* where(const task& x) {
  return on_cpu(x) ? "the processor of this machine" : "an NVIDIA GPU";
}

// What the answer may be written in: the line differs by language and by machine.
std::string languages(const task& x) {
  const auto& wanted = x.terms.language;
  if (auto words = words_of_language(wanted); !words.empty()) return std::string{words};
  if (wanted == "triton")
    return "- The work must be done by Triton kernels of yours (@triton.jit). A forward that only "
           "calls operators of PyTorch is refused.\n";
  if (wanted == "cuda")
    return "- The work must be done by kernels of yours in CUDA C++, built with "
           "torch.utils.cpp_extension.load_inline. A forward that only calls operators of PyTorch "
           "is refused.\n";
  if (wanted == "torch")
    return "- Operators of PyTorch are enough: choose better ones, fuse, change layouts, leave out "
           "what the result does not need.\n";
  return on_cpu(x) ? "- C++ built with torch.utils.cpp_extension.load_inline, and operators of "
                     "PyTorch, may do the work. OpenMP and intrinsics are welcome.\n"
                   : "- CUDA C++ built with torch.utils.cpp_extension.load_inline, Triton, and "
                     "operators of PyTorch may do the work, mixed as you like.\n";
}

constexpr std::string_view names =
    "How it is judged:\n"
    "- The module defines a class ModelNew, an nn.Module. It is constructed with what "
    "get_init_inputs() gives, under the same random seed as Model: parameters that both create in "
    "the same order and shapes are equal. Its forward takes what get_inputs() gives and returns "
    "what Model returns: as many tensors, of the same shapes and types.\n";

// Of a task that takes a function in place of the class.
std::string function_form(const torch_entry& x) {
  return "How it is judged:\n- The module defines the function " + x.function + ". It is called " +
         (x.as_tuple ? "with one tuple that holds what get_inputs() gives"
                     : "with what get_inputs() gives, one argument each") +
         ", and returns what Model returns: as many tensors, of the same shapes and types. All "
         "tensors are inputs; the function keeps none of its own. A class ModelNew, an nn.Module "
         "whose forward takes what get_inputs() gives, may take its place.\n";
}

constexpr std::string_view extensions =
    "- Call load_inline at the top of the module or in __init__, with arguments that do not depend "
    "on the inputs: the extension is built before anything is timed, and one that is asked for "
    "only in forward is not there.\n";

constexpr std::string_view honest =
    "- Inputs are new before every call, drawn as get_inputs() draws them, also before every timed "
    "call. Every result is checked, the timed ones too, against one computed in double precision; "
    "the allowed error is scaled to the data.";

// By the rule of the suite that the task comes from.
std::string by_suite(const torch_problem& x) {
  auto number = [](double value) { return fmt::format("{:.6g}", value); };
  auto told = [&](const torch_tolerance& t) {
    auto text = number(t.absolute) + " + " + number(t.relative) + " |want|";
    if (t.matched < 1) text += " for at least " + number(100 * t.matched) + " % of an output";
    if (t.largest) text += ", and by no more than " + number(*t.largest) + " anywhere";
    return text;
  };
  std::string out =
      "- Inputs are new before every call, drawn as get_inputs() draws them, also before every "
      "timed call. Every result is checked, the timed ones too, against Model's own: an element "
      "may be off by " +
      (x.tolerance ? told(*x.tolerance) : "nothing") + ".";
  for (const auto& one : x.variants)
    if (one.tolerance && !one.hidden) out += " At " + one.name + ": " + told(*one.tolerance) + ".";
  return out + " Outputs have the types that Model's have.\n";
}

constexpr std::string_view ieee =
    " Honest float32 arithmetic passes in any order; half precision, bfloat16 and TF32 do not.\n";
constexpr std::string_view tf32 =
    " Float32 arithmetic passes in any order, and TF32 in matrix products and convolutions; half "
    "precision and bfloat16 do not.\n";

// Of a problem whose tensors need not be float32.
constexpr std::string_view by_type =
    " Each output has a bound of its own type, also where it is not float32: honest arithmetic of "
    "that type passes in any order, "
    "and a narrower type behind it does not. Outputs have the types that Model's have.\n";

constexpr std::string_view as_benchmark =
    "- Results of a few calls with random inputs are compared with those of Model by the "
    "benchmark's own tolerances.\n";

constexpr std::string_view rules =
    "- Nothing is kept between calls: no cached outputs, no inputs remembered by address or "
    "contents, no global settings of PyTorch changed.\n"
    "- It runs in a sandbox: no network, no files of others, no child processes, no threads left "
    "behind. What it prints is not read.\n"
    "- Results kept from earlier calls, skipped work, late writes and tampering with the "
    "measurement are detected; such an answer is rejected whatever its speed. So is one that "
    "falls back to Model's operators when its own kernel fails.\n";

std::string time_words(const task& x) {
  const auto& kind = x.terms.baseline.kind;
  return "- Time is compared with " +
         std::string{kind == "eager"               ? "Model's own"
                     : kind.starts_with("compile") ? "that of Model behind torch.compile"
                                                   : "that of another answer, which is right"} +
         ", which runs in turns with yours. What counts is the lower end of the speedup's "
         "confidence interval, and only when all results are right.\n";
}

// What forward may leave in its inputs.
std::string writes(const task& x) {
  const auto& places = x.torch.mutates;
  if (places.empty()) return "- Inputs are not written to.\n";
  std::vector<std::string> numbers;
  for (auto at : places) numbers.push_back(std::to_string(at));
  bool one = numbers.size() == 1;
  return "- Model writes to " + std::string{one ? "input " : "inputs "} + joined(numbers) +
         ", counted from 0, and so must forward: what it leaves there is compared as outputs are. "
         "No other input is written to.\n";
}

// The benchmark's mode has one shape.
bool has_shapes(const task& x) {
  return !x.torch.variants.empty() && x.terms.mode != "kernelbench";
}

// Which other shapes it is judged at. Of hidden ones nothing but that there are some.
std::string shapes(const task& x) {
  std::string named;
  bool hidden = false;
  bool timed = false;
  for (const auto& one : x.torch.variants) {
    hidden = hidden || one.hidden;
    timed = timed || one.timed;
    if (!one.hidden)
      named += "- " + one.name + ": " + one.text() + (one.timed ? ", timed, too" : "") + "\n";
  }
  std::string out =
      "\nThe module must be right at other shapes, too, each in a process of its own.";
  if (!named.empty()) out += " With these constants in place of those above:\n" + named;
  if (hidden)
    out +=
        std::string{named.empty() ? " They" : "Others"} +
        " are not shown: take sizes from the inputs and from the arguments of the constructor.\n";
  if (hidden && builds_extensions(x.terms.language))
    out +=
        "Extensions are built beforehand, at the shapes that are shown: nothing that load_inline "
        "is given may depend on sizes.\n";
  if (x.terms.shapes > 0 && x.terms.shapes < x.torch.variants.size())
    out += "Each answer is judged at " + std::to_string(x.terms.shapes) +
           " of them, drawn in secret and anew.\n";
  if (timed)
    out += "What counts is the geometric mean of the speedups at the module's own shape and at "
           "those that are timed, too.\n";
  return out;
}

// From words alone: what Model computes is not shown, and what it is called with is.
void append_problem(std::string& out, const task& x) {
  bool hides = x.verb == "synthesize";
  out += hides                 ? "\nWhat Model is constructed and called with:\n"
         : has_starter(x.verb) ? "\nThe module that says what is computed:\n"
                               : "\nThe module to make faster:\n";
  append_fenced(out, hides ? interface_of_problem(x.torch.code) : x.torch.code, "python",
                max_problem_text);
}

} // namespace

std::string torch_role(const task& x) {
  return std::string{x.verb == "synthesize" ? "You write fast PyTorch modules on "
                                            : "You make PyTorch modules faster on "} +
         where(x) + ", with kernels of your own.\n\n";
}

std::string torch_format(const task& x) {
  std::string out{format_head};
  out += diagnosis_format(x);
  out += "<KERNEL>\n```python\n# the complete module\n```\n</KERNEL>\n"
         "Only what stands between <KERNEL> and </KERNEL>, behind </think>, is read as code. Give "
         "exactly one Python module, complete, with its imports. Tests and examples of use do not "
         "belong in it.\n\n";
  return out;
}

std::string torch_judging(const task& x) {
  std::string out;
  out.reserve(4096);
  const auto& entry = x.torch.entry;
  if (entry.is_asked())
    out += function_form(entry);
  else
    out += names;
  out += languages(x);
  if (builds_extensions(x.terms.language)) out += extensions;
  if (!on_cpu(x))
    out += "- Kernels run on the current stream (at::cuda::getCurrentCUDAStream() in C++). When "
           "forward returns, all work must have been given to that stream.\n";
  if (x.terms.mode == "kernelbench")
    out += as_benchmark;
  else if (x.terms.mode == "suite")
    out += by_suite(x.torch);
  else
    out.append(honest).append(x.torch.precision != "fp32" ? by_type
                              : x.terms.float32 == "tf32" ? tf32
                                                          : ieee);
  out += writes(x);
  out += rules;
  out += time_words(x);
  return out;
}

std::string torch_task_prompt(const task& x, wire::RetrieveResult::Reader examples) {
  std::string out = "[task: " + x.id + "]\n";
  out.append(x.prompt);
  if (out.back() != '\n') out += '\n';
  if (!x.terms.hardware.empty()) out += "\nIt runs on: " + x.terms.hardware + "\n";
  append_problem(out, x);
  if (has_shapes(x)) out += shapes(x);
  out += verb_words(x);
  if (!x.starter.empty()) {
    out += "\nThe starter:\n";
    append_fenced(out, x.starter, "python", max_problem_text);
  }
  out += diagnosis_words(x);
  out += "\nFor the form alone, here is another module:\n";
  const auto& entry = x.torch.entry;
  auto answer = example_answer(x.terms.language, x.terms.backend);
  if (entry.is_asked()) {
    append_fenced(out, example_problem_of_function(), "python", max_problem_text);
    out += "\nand an answer to it:\n<KERNEL>\n";
    append_fenced(out, as_function(answer, entry), "python", max_problem_text);
  } else {
    append_fenced(out, example_problem(), "python", max_problem_text);
    out += "\nand an answer to it:\n<KERNEL>\n";
    append_fenced(out, answer, "python", max_problem_text);
  }
  out += "</KERNEL>\n";
  append_examples(out, examples);
  return out;
}

} // namespace kernelmill
