#include "actors/episode/prompt.hpp"

#include <string_view>

#include "actors/episode/prompt_parts.hpp"

namespace kernelmill {

namespace {

constexpr size_t max_starter_text = 64 << 10;

constexpr std::string_view role_cpu =
    "You write fast and correct C++ kernels for the processor of this machine.\n\n";
constexpr std::string_view role_cuda =
    "You write fast and correct CUDA C++ kernels for an NVIDIA GPU.\n\n";

constexpr std::string_view role_hip = "You write fast and correct HIP kernels for a GPU.\n\n";

constexpr std::string_view format_kernel =
    "\n"
    "// the complete source file\n"
    "```\n"
    "</KERNEL>\n"
    "Only what stands between <KERNEL> and </KERNEL>, behind </think>, is read as code. Give "
    "exactly "
    "one program, complete, with its #include lines and without main.\n\n";

constexpr std::string_view built_for_cpu =
    "How it is judged:\n"
    "- It is compiled by g++ as C++20 with -O3 -march=native -fopenmp into a shared library that "
    "must "
    "export the function of the task. OpenMP and intrinsics are welcome.\n";

constexpr std::string_view built_for_cuda =
    "How it is judged:\n"
    "- It is compiled by nvcc as C++20 with -O3 for the GPU at hand into a shared library that "
    "must "
    "export the function of the task, a host function that launches your kernels. All pointers are "
    "device pointers. Work on other streams must be joined into the default stream.\n";

constexpr std::string_view built_for_hip =
    "How it is judged:\n"
    "- It is compiled as HIP (C++20, -O3) for the GPU at hand, by hipcc for an AMD GPU and by nvcc "
    "with HIP's headers for an NVIDIA one, into a shared library that must export the function of "
    "the task, a host function that launches your kernels. hip/hip_runtime.h is included. All "
    "pointers are device pointers. Work on other streams must be joined into the default stream. A "
    "wavefront has 32 or 64 lanes: name the width of a shuffle.\n";

constexpr std::string_view built_for_device =
    "How it is judged:\n"
    "- The file is device code alone: kernels declared extern \"C\" __global__ void, no host code "
    "and "
    "no host headers. NVRTC compiles it as C++20 for the GPU at hand; CUDA's device headers "
    "(cuda_fp16.h, mma.h, cooperative_groups.h ...) are there.\n"
    "- Comment lines say what one call launches, in order, on one stream:\n"
    "// scratch: partial[4 * rows]\n"
    "// launch: sums<<<dim3(ceil_div(cols, 256), rows), 256, 0>>>(x, partial, rows, cols)\n"
    "// launch: total<<<rows, 32>>>(partial, y, rows)\n"
    "  Grid, block, bytes of dynamic shared memory and bytes of scratch are integer expressions of "
    "the task's scalars with + - * / % ( ) min max ceil_div; a grid or block is one of them or "
    "dim3(...). An argument is the name of a tensor or a scratch buffer, or such an expression, "
    "passed as int; there are as many as the kernel has parameters. At most 8 launches of 16 "
    "arguments, and 8 scratch buffers of 256 MiB in all, whose contents are undefined. "
    "The arguments below are what a launch may name.\n";

constexpr std::string_view how_it_is_judged =
    "- It runs in a sandbox: no network, no files, no child processes. What it prints is not "
    "read.\n"
    "- It must be right on the shapes that you see and on hidden shapes and kinds of contents, "
    "among "
    "them size 1, odd sizes and extreme values. The reference is computed in double precision, and "
    "the "
    "allowed error is scaled to the data: honest 32-bit arithmetic passes in any order, half "
    "precision does not.\n"
    "- Inputs are new before every call, also before every timed call, and cannot be written. "
    "Outputs "
    "hold rubbish before every call, and every result is checked, the timed ones too.\n"
    "- The clock is outside of your process. The work must be finished when the "
    "function returns; on a GPU, when the default stream is.\n"
    "- Results kept from earlier calls, skipped work, late writes, writes outside the outputs and "
    "tampering with the measurement are detected; such an answer is rejected whatever its speed.\n"
    "- Time is compared with a baseline that runs in turns with yours. What counts is the lower "
    "end "
    "of the speedup's confidence interval, and only when all results are right.\n";

void append_cases(std::string& out, const task& x) {
  out += "Shapes that you may see:\n";
  for (const auto& c : x.cases) {
    if (c.hidden) continue;
    out.append("- ").append(c.name).append(": ").append(shape_text(c.scalars));
    for (const auto& [name, fill] : c.fills) out.append(", ").append(name).append(" ").append(fill);
    out += '\n';
  }
  size_t hidden = 0;
  for (const auto& c : x.cases) hidden += c.hidden;
  if (hidden > 0) out += "- and " + std::to_string(hidden) + " hidden ones\n";
  if (!x.timed.hidden && !x.timed.scalars.empty())
    out += "Timed at: " + shape_text(x.timed.scalars) + "\n";
}

const char* language(const task& x) {
  if (x.terms.backend == "hip") return "hip";
  return x.terms.backend == "cuda" ? "cuda" : "cpp";
}

std::string starter_language(const task& x) {
  return x.verb == "port" ? x.port.from : language(x);
}

} // namespace

namespace {

std::string_view role_of(const task& x) {
  if (x.terms.backend == "hip") return role_hip;
  return x.terms.backend == "cuda" ? role_cuda : role_cpu;
}

std::string format_of(const task& x) {
  std::string out{format_head};
  out += diagnosis_format(x);
  return out.append("<KERNEL>\n```").append(language(x)).append(format_kernel);
}

std::string judging_of(const task& x) {
  bool device = x.contract == contract_kind::device;
  std::string out{device                      ? built_for_device
                  : x.terms.backend == "hip"  ? built_for_hip
                  : x.terms.backend == "cuda" ? built_for_cuda
                                              : built_for_cpu};
  return out += how_it_is_judged;
}

} // namespace

std::string system_prompt(const task& x) {
  if (x.contract == contract_kind::program)
    return program_role(x) + program_format(x) + program_judging(x).append(after_each_answer);
  if (x.contract == contract_kind::torch)
    return torch_role(x) + torch_format(x) + torch_judging(x).append(after_each_answer);
  return std::string{role_of(x)} + format_of(x) + judging_of(x).append(after_each_answer);
}

std::string patch_prompt() {
  return "From your second answer on you may give, in place of the program, a change to your last "
         "one between <PATCH> and </PATCH>: a unified diff of the one file, or blocks of\n"
         "<<<<<<< SEARCH\n(lines that are there exactly once)\n=======\n(lines in their place)\n"
         ">>>>>>> REPLACE\n"
         "What it says was there must be there, byte for byte.\n";
}

std::string judging_prompt(const task& x) {
  if (x.contract == contract_kind::program) return program_role(x) + program_judging(x);
  if (x.contract == contract_kind::torch) return torch_role(x) + torch_judging(x);
  return std::string{role_of(x)} + judging_of(x);
}

std::string task_prompt(const task& x, wire::RetrieveResult::Reader examples) {
  if (x.contract == contract_kind::program) return program_task_prompt(x, examples);
  if (x.contract == contract_kind::torch) return torch_task_prompt(x, examples);
  std::string out = "[task: " + x.id + "]\n";
  out.append(x.prompt);
  if (out.back() != '\n') out += '\n';
  bool device = x.contract == contract_kind::device;
  out += device ? "\nThe arguments of a call:\n" : "\nThe function to define:\n";
  // Device code defines no function of the task: what a launch may name, and no more.
  append_fenced(out, device ? x.parameters() : x.declaration(), "cpp", max_starter_text);
  out += verb_words(x);
  if (!x.starter.empty()) {
    out += device ? "\nThe starter; in your answer, launch lines take the place of its host "
                    "function:\n"
                  : "\nThe starter:\n";
    append_fenced(out, x.starter, starter_language(x), max_starter_text);
  }
  out += diagnosis_words(x);
  out += '\n';
  append_cases(out, x);
  append_examples(out, examples);
  return out;
}

} // namespace kernelmill
