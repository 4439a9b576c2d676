// The kernel's own files, as C++ or CUDA that any build system compiles.

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "gpu/task/launch_plan.hpp"
#include "launch/kernel_forms/exported_kernel.hpp"
#include "launch/kernel_forms/native_parts.hpp"

namespace kernelmill::kernel_forms {

namespace {

const char* const scratch_pointer = R"(
// Scratch memory, as whatever pointer the kernel takes.
struct any {
  char* at;
  template <class T>
  operator T*() const {
    return reinterpret_cast<T*>(at);
  }
};
)";

bool is_cuda(const exported_kernel& x) {
  return x.about.backend == "cuda";
}

std::string header_of(const exported_kernel& x) {
  auto where = is_cuda(x) ? "Pointers are of device memory; the work is queued on the default "
                            "stream."
                          : "Pointers are of host memory.";
  return fmt::format(R"(#pragma once

/* {0}: {1}.
 * Tensors are dense and row-major, begin at a multiple of 64 bytes and do not overlap.
 * {2} */

#ifdef __cplusplus
extern "C" {{
#endif

{3};

#ifdef __cplusplus
}}
#endif
)",
                     x.name(), x.title(), where, c_declaration(x));
}

std::string triple(const std::array<expression, 3>& x) {
  auto part = [&](size_t i) {
    return x[i].text().empty() ? std::string{"1u"} : "static_cast<unsigned>(" + x[i].text() + ")";
  };
  return "dim3(" + part(0) + ", " + part(1) + ", " + part(2) + ")";
}

/// The launch lines of device code as the host function that they stand for.
expected<std::string> launches_of(const exported_kernel& x) {
  auto plan = parse_launch_plan(x.source);
  KM_TRY(plan);
  KM_TRY(bind_arguments(*plan, *x.what));
  std::string text = "\n#include <cuda_runtime.h>\n\n// The launch lines above, as host code.\n"
                     "namespace " +
                     x.name() + "_launches {\n\n" + expression_helpers +
                     (plan->scratch.empty() ? "" : scratch_pointer) +
                     fmt::format("\nvoid run({}) {{\n", launch_parameters(*x.what));
  for (const auto& a : x.what->arguments)
    if (a.role == argument_role::scalar)
      text += fmt::format("  const long long {0} = {0}_value;\n  (void){0};\n", a.name);
  for (const auto& s : plan->scratch)
    text += fmt::format("  char* {0}_bytes = nullptr;\n"
                        "  cudaMallocAsync(reinterpret_cast<void**>(&{0}_bytes), "
                        "static_cast<size_t>({1}), nullptr);\n",
                        s.name, s.bytes.text());
  std::set<std::string> scratch;
  for (const auto& s : plan->scratch) scratch.insert(s.name);
  for (const auto& line : plan->launches) {
    auto shared = line.shared.text().empty() ? "0" : line.shared.text();
    text += fmt::format("  cudaFuncSetAttribute({0}, cudaFuncAttributeMaxDynamicSharedMemorySize, "
                        "static_cast<int>({1}));\n  {0}<<<{2}, {3}, static_cast<size_t>({1})>>>(",
                        line.kernel, shared, triple(line.grid), triple(line.block));
    for (size_t i = 0; i < line.arguments.size(); ++i) {
      const auto& a = line.arguments[i];
      text += (i > 0 ? ", " : "") + (scratch.contains(a) ? "any{" + a + "_bytes}" : a);
    }
    text += ");\n";
  }
  for (const auto& s : plan->scratch)
    text += fmt::format("  cudaFreeAsync({}_bytes, nullptr);\n", s.name);
  text += "}\n\n} // namespace " + x.name() + "_launches\n\nextern \"C\" " + c_declaration(x) +
          " {\n  " + x.name() + "_launches::run(";
  for (size_t i = 0; i < x.what->arguments.size(); ++i)
    text += (i > 0 ? ", " : "") + x.what->arguments[i].name;
  return text + ");\n}\n";
}

} // namespace

const char* const expression_helpers =
    R"(// Expressions of the task, in 64 bits.
inline long long min(long long a, long long b) { return a < b ? a : b; }
inline long long max(long long a, long long b) { return a < b ? b : a; }
inline long long ceil_div(long long a, long long b) { return (a + b - 1) / b; }
)";

std::string launch_parameters(const task& x) {
  std::string result;
  for (const auto& a : x.arguments) {
    bool scalar = a.role == argument_role::scalar;
    std::string type = scalar ? "int " : a.type == dtype::f32 ? "float* " : "int* ";
    if (a.role == argument_role::input) type = "const " + type;
    result += (result.empty() ? "" : ", ") + type + a.name + (scalar ? "_value" : "");
  }
  return result;
}

std::string suffix_of(const exported_kernel& x) {
  return is_cuda(x) ? ".cu" : ".cpp";
}

expected<out_files> native_sources(const exported_kernel& x, const std::string& folder) {
  const auto& contract = x.about.contract;
  if (contract != "native" && contract != "device")
    return configuration_error("unsupported_contract",
                               "failed to export " + x.about.place() +
                                   ": a kernel of the contract " + contract + " is no library",
                               "`kernelmill export RUN --form sft` exports its texts");
  if (x.about.backend != "cpu" && x.about.backend != "cuda")
    return configuration_error("unsupported_backend",
                               "failed to export " + x.about.place() + ": there is no form for " +
                                   x.about.backend,
                               "kernels for cpu and cuda can be exported");
  auto prefix = folder.empty() ? std::string{} : folder + "/";
  // The candidate defines `solve`, as all candidates do: two of them in one program would clash.
  auto text = fmt::format("// The kernel as it was verified, SHA-256 {}.\n"
                          "// `{}` is its name in this library.\n",
                          x.about.candidate_sha256, x.name());
  if (contract == "native") {
    text += fmt::format("#define {0} {1}\n{2}\n#undef {0}\n", x.what->function, x.name(), x.source);
  } else {
    auto launches = launches_of(x);
    KM_TRY(launches);
    text += x.source + "\n" + *launches;
  }
  return out_files{{prefix + x.name() + suffix_of(x), std::move(text)},
                   {prefix + x.name() + ".h", header_of(x)}};
}

} // namespace kernelmill::kernel_forms
