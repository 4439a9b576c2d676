#include "gpu/toolchain/torch_sources.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "messages/base/text.hpp"

namespace kernelmill {

namespace {

// A C++ string literal, without what does not print.
std::string literal(std::string text) {
  std::erase_if(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\n'; });
  return '"' + escaped(text) + '"';
}

std::string bindings(const extension_request& request) {
  std::string text = "\n#line 1 \"bindings\"\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n";
  for (auto& [name, doc] : *request.functions) {
    auto function = request.error_handling ? "torch::wrap_pybind_function(" + name + ")" : name;
    text += "m.def(\"" + name + "\", " + function + ", " + literal(doc) + ");\n";
  }
  return text + "}\n";
}

bool mentions(const std::string& text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](auto x) { return text.find(x) != text.npos; });
}

} // namespace

std::string shown_source_name(const extension_request& request, size_t index) {
  auto& source = request.sources[index];
  if (!request.from_text) return source.name;
  return request.name + (source.is_cuda() ? ".cuda_sources" : ".cpp_sources");
}

std::string translation_unit(const extension_request& request, size_t index) {
  auto& source = request.sources[index];
  std::string text;
  if (request.from_text && request.headers)
    text = source.is_cuda()
               ? "#include <torch/types.h>\n#include <cuda.h>\n#include <cuda_runtime.h>\n"
               : "#include <torch/extension.h>\n";
  text += "#line 1 \"" + shown_source_name(request, index) + "\"\n" + source.text;
  if (request.from_text && !source.is_cuda() && request.functions) text += bindings(request);
  return text + "\n";
}

std::vector<std::string> slim_macros(const std::string& text) {
  std::vector<std::string> result;
  if (mentions(text, {"AT_DISPATCH", "AT_PRIVATE_CASE"}))
    result.emplace_back("-DKERNELMILL_WANTS_DISPATCH");
  if (mentions(text, {"PYBIND11_MODULE", "py::", "pybind11::"}))
    result.emplace_back("-DKERNELMILL_WANTS_PYBIND");
  if (mentions(text, {"CUDAStream", "cuda::", "CUDAGuard", "DeviceGuard", "CUDA_CHECK", "C10_CUDA",
                      "AT_CUDA"}))
    result.emplace_back("-DKERNELMILL_WANTS_CUDA");
  return result;
}

bool may_be_slim(const std::string& text) {
  // What only the full headers have; the list saves attempts and need not be whole.
  return !mentions(text,
                   {"torch::nn", "torch::optim", "torch::data", "torch::jit", "torch::serialize",
                    "torch::autograd", "TORCH_LIBRARY", "at::native", "TensorIterator",
                    "getCurrentCUDABlasHandle", "torch::indexing", "at::parallel_for"});
}

} // namespace kernelmill
