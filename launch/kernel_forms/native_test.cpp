// The test of a native kernel: a program that runs it on the task's visible cases beside the
// reference, and holds them together by the task's own bound.

#include <cstring>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "gpu/task/distribution.hpp"
#include "launch/kernel_forms/native_parts.hpp"

namespace kernelmill::kernel_forms {

namespace {

constexpr int64_t most_case_bytes = 4 << 20;
constexpr secret_seed public_seed{}; // of an export: no run draws it

bool is_given(const argument& a) {
  return a.role == argument_role::input || a.role == argument_role::inout;
}

bool is_made(const argument& a) {
  return a.role == argument_role::output || a.role == argument_role::inout;
}

/// Elements of a tensor; nothing where an expression cannot be evaluated.
std::optional<int64_t> elements_of(const argument& a, const scalar_values& scalars) {
  int64_t result = 1;
  for (const auto& x : a.shape) {
    auto value = x.evaluate(scalars);
    if (!value) return std::nullopt;
    result *= *value;
  }
  return result;
}

int64_t value_or(const expression& x, const scalar_values& scalars, int64_t otherwise) {
  return x.evaluate(scalars).value_or(otherwise);
}

std::string contents_of(const task_case& which, const argument& a, size_t count) {
  auto row = static_cast<size_t>(value_or(a.shape.back(), which.scalars, 1));
  auto key = derive_key(public_seed, which.name, 0, a.name);
  std::string bytes(count * 4, '\0');
  if (a.type == dtype::f32) {
    std::vector<float> values(count);
    fill(std::span{values}, fill_of(a, which), row, key);
    std::memcpy(bytes.data(), values.data(), bytes.size());
  } else {
    std::vector<int32_t> values(count);
    int64_t low = 0, high = 1;
    if (a.fill_range.size() == 2) {
      low = value_or(a.fill_range[0], which.scalars, 0);
      high = value_or(a.fill_range[1], which.scalars, 1);
    }
    fill(std::span{values}, fill_of(a, which), row, low, high, key);
    std::memcpy(bytes.data(), values.data(), bytes.size());
  }
  return bytes;
}

/// Whether the case is small enough, with its files.
std::optional<out_files> files_of(const task& x, const task_case& which) {
  out_files result;
  int64_t bytes = 0;
  for (const auto& a : x.arguments) {
    if (a.role == argument_role::scalar) continue;
    auto count = elements_of(a, which.scalars);
    if (!count) return std::nullopt;
    bytes += 4 * *count;
    if (bytes > most_case_bytes) return std::nullopt;
    if (is_given(a))
      result.push_back({"test/cases/" + which.name + "." + a.name,
                        contents_of(which, a, static_cast<size_t>(*count))});
  }
  return result;
}

const char* const beginning =
    R"cpp(// Runs the kernel on the task's visible cases and compares it with reference.cpp, which computes in
// 64 bits. An element may be off by the task's tolerance in units of 2^-24 of the reference's scale.

@include <cmath>
@include <cstdint>
@include <cstdio>
@include <cstdlib>
@include <cstring>
@include <string>
@include <vector>

@include "KERNEL.h"

#ifdef __CUDACC__
@include <cuda_runtime.h>
#endif

REFERENCE;

namespace {

[[maybe_unused]] inline long long min(long long a, long long b) { return a < b ? a : b; }
[[maybe_unused]] inline long long max(long long a, long long b) { return a < b ? b : a; }
[[maybe_unused]] inline long long ceil_div(long long a, long long b) { return (a + b - 1) / b; }

int failures = 0;

// A tensor as the kernel sees it: 64-byte aligned memory of the host, or of the GPU.
template <class T>
class tensor {
public:
  explicit tensor(size_t n) : bytes_(n * sizeof(T)) {
#ifdef __CUDACC__
    if (cudaMalloc(reinterpret_cast<void**>(&at_), bytes_) != cudaSuccess) std::abort();
    cudaMemset(at_, 0xff, bytes_);
#else
    at_ = static_cast<T*>(std::aligned_alloc(64, (bytes_ + 63) / 64 * 64));
    std::memset(static_cast<void*>(at_), 0xff, bytes_); // what is not written is no number
#endif
  }
  ~tensor() {
#ifdef __CUDACC__
    cudaFree(at_);
#else
    std::free(at_);
#endif
  }
  tensor(const tensor&) = delete;
  tensor& operator=(const tensor&) = delete;
  void put(const std::vector<T>& x) {
#ifdef __CUDACC__
    cudaMemcpy(at_, x.data(), bytes_, cudaMemcpyHostToDevice);
#else
    std::memcpy(static_cast<void*>(at_), x.data(), bytes_);
#endif
  }
  std::vector<T> take() const {
    std::vector<T> x(bytes_ / sizeof(T));
#ifdef __CUDACC__
    if (cudaMemcpy(x.data(), at_, bytes_, cudaMemcpyDeviceToHost) != cudaSuccess) ++failures;
#else
    std::memcpy(x.data(), at_, bytes_);
#endif
    return x;
  }
  T* at() { return at_; }

private:
  T* at_ = nullptr;
  size_t bytes_;
};

template <class T>
std::vector<T> contents(const std::string& name, size_t n) {
  std::vector<T> x(n);
  auto path = std::string{CASES} + "/" + name;
  std::FILE* file = std::fopen(path.c_str(), "rb");
  bool whole = file != nullptr && std::fread(x.data(), sizeof(T), n, file) == n;
  if (file != nullptr) std::fclose(file);
  if (!whole) {
    std::printf("failed to read %s\n", path.c_str());
    std::exit(2);
  }
  return x;
}

bool same_special(double got, double want) {
  return (std::isnan(want) && std::isnan(got)) || (std::isinf(want) && got == want);
}

[[maybe_unused]] void compare(const char* which, const char* name, const std::vector<float>& got,
             const std::vector<double>& want, const std::vector<double>& scale) {
  for (size_t i = 0; i < got.size(); ++i) {
    double bound = TOLERANCE * 0x1p-24 * scale[i] + 1e-30;
    if (std::fabs(got[i] - want[i]) <= bound || same_special(got[i], want[i])) continue;
    std::printf("%s: %s[%zu]: got %.9g, want %.9g (bound %.3g)\n", which, name, i, got[i], want[i],
                bound);
    ++failures;
    return;
  }
}

[[maybe_unused]] void compare(const char* which, const char* name, const std::vector<int>& got,
             const std::vector<int>& want) {
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] == want[i]) continue;
    std::printf("%s: %s[%zu]: got %d, want %d\n", which, name, i, got[i], want[i]);
    ++failures;
    return;
  }
}

)cpp";

void replace_all(std::string& text, const std::string& what, const std::string& by) {
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

/// run(): one case, by its scalars.
std::string case_function(const exported_kernel& x) {
  std::string scalars, count_names, given, sizes, call, truth, checks;
  for (const auto& a : x.what->arguments) {
    const auto& n = a.name;
    if (a.role == argument_role::scalar) {
      scalars += ", int " + n + "_value";
      count_names += fmt::format("  const long long {0} = {0}_value;\n  (void){0};\n", n);
      call += (call.empty() ? "" : ", ") + n + "_value";
      truth += (truth.empty() ? "" : ", ") + n + "_value";
      continue;
    }
    std::string size;
    for (const auto& e : a.shape)
      size += (size.empty() ? "" : " * ") + ("static_cast<size_t>(" + e.text() + ")");
    bool real = a.type == dtype::f32;
    const char* type = real ? "float" : "int";
    sizes += fmt::format("  const size_t {0}_size = {1};\n  tensor<{2}> {0}_kernel({0}_size);\n", n,
                         size, type);
    if (is_given(a))
      given += fmt::format("  const auto {0}_contents = contents<{1}>(std::string{{which}} + "
                           "\".{0}\", {0}_size);\n  {0}_kernel.put({0}_contents);\n",
                           n, type);
    const char* wide = real ? "double" : "int";
    given += is_given(a) ? fmt::format("  std::vector<{1}> {0}_want({0}_contents.begin(), "
                                       "{0}_contents.end());\n",
                                       n, wide)
                         : fmt::format("  std::vector<{1}> {0}_want({0}_size);\n", n, wide);
    call += (call.empty() ? "" : ", ") + n + "_kernel.at()";
    truth += (truth.empty() ? "" : ", ") + n + "_want.data()";
    if (!is_made(a)) continue;
    if (real) {
      given += fmt::format("  std::vector<double> {0}_scale({0}_size);\n", n);
      truth += ", " + n + "_scale.data()";
    }
    checks += fmt::format("  compare(which, \"{0}\", {0}_kernel.take(), {0}_want{1});\n", n,
                          real ? ", " + n + "_scale" : "");
  }
  return "void run(const char* which" + scalars + ") {\n" + count_names + sizes + given + "  " +
         x.name() + "(" + call + ");\n" +
         "#ifdef __CUDACC__\n  if (cudaDeviceSynchronize() != cudaSuccess) {\n"
         "    std::printf(\"%s: %s\\n\", which, cudaGetErrorString(cudaGetLastError()));\n"
         "    ++failures;\n    return;\n  }\n#endif\n" +
         "  reference(" + truth + ");\n" + checks + "}\n\n} // namespace\n\n";
}

} // namespace

out_files native_test(const exported_kernel& x) {
  std::string text = beginning;
  replace_all(text, "@include", "#include"); // so that no reader of ours takes it for one of ours
  replace_all(text, "KERNEL.h", x.name() + ".h");
  replace_all(text, "REFERENCE", x.what->reference_declaration());
  replace_all(text, "TOLERANCE", fmt::format("{:.17g}", x.what->tolerance));
  text += case_function(x) +
          "int main() {\n#ifdef __CUDACC__\n  int devices = 0;\n"
          "  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {\n"
          "    std::printf(\"skipped: there is no GPU\\n\");\n    return 77;\n  }\n#endif\n";
  out_files result;
  size_t cases = 0;
  for (const auto& which : x.what->cases) {
    if (which.hidden) continue;
    auto files = files_of(*x.what, which);
    if (!files) continue;
    ++cases;
    text += "  run(\"" + which.name + "\"";
    for (const auto& a : x.what->arguments)
      if (a.role == argument_role::scalar) text += fmt::format(", {}", which.scalars.at(a.name));
    text += ");\n";
    for (auto& file : *files) result.push_back(std::move(file));
  }
  text +=
      fmt::format("  std::printf(failures == 0 ? \"{0} cases are right\\n\" : \"%d failures\\n\", "
                  "failures);\n  return failures == 0 ? 0 : 1;\n}}\n",
                  cases);
  result.push_back({"test/test" + suffix_of(x), std::move(text)});
  result.push_back({"test/reference.cpp", x.reference});
  return result;
}

} // namespace kernelmill::kernel_forms
