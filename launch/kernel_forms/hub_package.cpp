// The form `package`: the folder of a kernel of Hugging Face's `kernels` and `kernel-builder`
// (build.toml of edition 5; https://github.com/huggingface/kernels, docs/source/builder).

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "launch/kernel_forms/exported_kernel.hpp"
#include "launch/kernel_forms/native_parts.hpp"
#include "launch/kernel_forms/torch_parts.hpp"
#include "messages/base/base64.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::kernel_forms {

namespace {

/// "row-sum": names of kernels have dashes, those of modules underscores.
std::string hub_name(const exported_kernel& x) {
  auto result = x.name();
  std::replace(result.begin(), result.end(), '_', '-');
  return result;
}

/// The Hub's own identifier of a licence: SPDX's in lower case, else "other".
std::string hub_licence(const exported_kernel& x) {
  auto result = x.licence;
  for (auto& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result.empty() || result.starts_with("licenseref") ? "other" : result;
}

std::string backend_of(const exported_kernel& x) {
  return x.about.backend;
}

std::string general_table(const exported_kernel& x) {
  return fmt::format("[general]\nname = \"{}\"\nversion = 1\nedition = 5\nlicense = \"{}\"\n"
                     "backends = [\"{}\"]\n",
                     hub_name(x), x.licence.empty() ? "other" : x.licence, backend_of(x));
}

const char* const flake = R"({
  description = "Flake of a kernel";

  inputs = {
    kernel-builder.url = "github:huggingface/kernels";
  };

  outputs =
    {
      self,
      kernel-builder,
    }:
    kernel-builder.lib.genKernelFlakeOutputs {
      inherit self;
      path = ./.;
    };
}
)";

std::string card_of(const exported_kernel& x, const std::string& use) {
  return fmt::format(
             "---\nlibrary_name: kernels\nlicense: {}\ntags:\n- kernels\n- kernelmill\n---\n\n"
             "# {}\n{}.\n\n## Use\n```python\n{}```\n\n",
             hub_licence(x), hub_name(x), x.title(), use) +
         measured_text(x);
}

/// metadata.json of a build folder, with the digests of its files.
std::string metadata_of(const exported_kernel& x, const out_files& files) {
  nlohmann::ordered_json digests = nlohmann::ordered_json::object();
  for (const auto& file : files) {
    auto hash = sha256(file.bytes);
    digests[file.path] = to_base64({reinterpret_cast<const char*>(hash.data()), hash.size()});
  }
  nlohmann::ordered_json backend = {{"type", backend_of(x)}};
  return nlohmann::ordered_json{
             {"name", hub_name(x)},
             {"id",
              "_" + x.name() + "_" + backend_of(x) + "_" + x.about.candidate_sha256.substr(0, 8)},
             {"version", 1},
             {"license", hub_licence(x)},
             {"python-depends", nlohmann::ordered_json::array()},
             {"backend", std::move(backend)},
             {"digest", {{"algorithm", "sha256"}, {"files", std::move(digests)}}}}
             .dump(2) +
         "\n";
}

out_files python_package(const exported_kernel& x) {
  auto name = x.name();
  out_files files{{"build.toml", general_table(x) + "\n[torch-noarch]\n"},
                  {"torch-ext/" + name + "/__init__.py", torch_init(x)},
                  {"torch-ext/" + name + "/kernel.py", x.source}};
  // A kernel without a build step is its own build: the loader finds it in this folder at once.
  auto variant = "build/torch-" + backend_of(x) + "/";
  out_files built{{"__init__.py", torch_init(x)}, {"kernel.py", x.source}};
  auto metadata = metadata_of(x, built);
  for (const auto& file : built) files.push_back({variant + file.path, file.bytes});
  files.push_back({variant + "metadata.json", std::move(metadata)});
  auto load = fmt::format("from kernels import get_local_kernel\n\n"
                          "{0} = get_local_kernel(HERE.parent, backend=\"{1}\").{0}",
                          class_of(x), backend_of(x));
  files.push_back({"tests/reference.py", x.reference});
  files.push_back({"tests/test_" + name + ".py", torch_test(x, load)});
  auto use = fmt::format("from pathlib import Path\n\nfrom kernels import get_local_kernel\n\n"
                         "kernel = get_local_kernel(Path(\".\"), backend=\"{}\")\n"
                         "mine = kernel.{}.in_place_of(model)\n",
                         backend_of(x), class_of(x));
  files.push_back({"README.md", card_of(x, use)});
  return files;
}

// -- C++ and CUDA
// -----------------------------------------------------------------------------------

bool is_written(const argument& a) {
  return a.role == argument_role::output || a.role == argument_role::inout;
}

/// "Tensor x, Tensor! y, int rows": the schema of the operator.
std::string schema_of(const task& x) {
  std::string result;
  for (const auto& a : x.arguments) {
    result += result.empty() ? "" : ", ";
    if (a.role == argument_role::scalar)
      result += "int " + a.name;
    else
      result += (is_written(a) ? "Tensor! " : "Tensor ") + a.name;
  }
  return result;
}

std::string torch_parameters(const task& x) {
  std::string result;
  for (const auto& a : x.arguments) {
    result += result.empty() ? "" : ", ";
    if (a.role == argument_role::scalar)
      result += "int64_t " + a.name;
    else
      result += (is_written(a) ? "torch::Tensor& " : "torch::Tensor const& ") + a.name;
  }
  return result;
}

std::string binding_of(const exported_kernel& x) {
  auto name = x.name();
  std::string checks, call;
  for (const auto& a : x.what->arguments) {
    call += call.empty() ? "" : ", ";
    if (a.role == argument_role::scalar) {
      call += "static_cast<int>(" + a.name + ")";
      continue;
    }
    bool real = a.type == dtype::f32;
    checks += fmt::format("  TORCH_CHECK({0}.is_contiguous() && {0}.scalar_type() == torch::{1},\n"
                          "              \"{0} must be dense and of type {1}\");\n",
                          a.name, real ? "kFloat" : "kInt");
    std::string size;
    for (const auto& e : a.shape) size += (size.empty() ? "(" : " * (") + e.text() + ")";
    checks += fmt::format("  TORCH_CHECK({0}.numel() == {1}, \"{0} must have {1} elements\");\n",
                          a.name, size);
    call += fmt::format("{}.data_ptr<{}>()", a.name, real ? "float" : "int");
  }
  const char* device = x.about.backend == "cuda" ? "CUDA" : "CPU";
  return fmt::format(
      "#include <torch/library.h>\n\n#include \"registration.h\"\n#include \"torch_binding.h\"\n\n"
      "#include \"../{0}_kernel/{0}.h\"\n"
      R"cpp(
namespace {0}_binding {{

{6}
void {0}_op({1}) {{
{2}  {0}({3});
}}

}} // namespace {0}_binding

TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) {{
  ops.def("{0}({4}) -> ()");
#if defined({5}_KERNEL)
  ops.impl("{0}", torch::k{5}, &{0}_binding::{0}_op);
#endif
}}

REGISTER_EXTENSION(TORCH_EXTENSION_NAME)
)cpp",
      name, torch_parameters(*x.what), checks, call, schema_of(*x.what), device,
      expression_helpers);
}

expected<out_files> compiled_package(const exported_kernel& x) {
  auto name = x.name();
  auto sources = native_sources(x, name + "_kernel");
  KM_TRY(sources);
  auto files = std::move(*sources);
  auto source = files.front().path, header = files.back().path;
  files.push_back(
      {"build.toml",
       general_table(x) + fmt::format("\n[torch]\nsrc = [\n  \"torch-ext/torch_binding.cpp\",\n"
                                      "  \"torch-ext/torch_binding.h\",\n]\n\n"
                                      "[kernel.{0}]\nbackend = \"{1}\"\ndepends = [\"torch\"]\n"
                                      "src = [\"{2}\", \"{3}\"]\n",
                                      name, backend_of(x), source, header)});
  files.push_back(
      {"torch-ext/torch_binding.h",
       fmt::format("#pragma once\n\n#include <torch/torch.h>\n\nnamespace {0}_binding {{\n"
                   "void {0}_op({1});\n}}\n",
                   name, torch_parameters(*x.what))});
  files.push_back({"torch-ext/torch_binding.cpp", binding_of(x)});
  std::string parameters;
  for (const auto& a : x.what->arguments) parameters += (parameters.empty() ? "" : ", ") + a.name;
  files.push_back(
      {"torch-ext/" + name + "/__init__.py",
       fmt::format("\"\"\"{0}: a kernel that Kernelmill verified.\"\"\"\n\n"
                   "from ._ops import ops\n\n\n"
                   "def {1}({2}):\n"
                   "    \"\"\"Fills its outputs. Tensors are dense{3}.\"\"\"\n"
                   "    ops.{1}({2})\n\n\n__all__ = [\"{1}\"]\n",
                   x.title(), name, parameters,
                   x.about.backend == "cuda" ? "; the work is queued on CUDA's default stream"
                                             : "")});
  files.push_back(
      {"README.md", card_of(x, fmt::format("from kernels import get_kernel\n\n"
                                           "kernel = get_kernel(\"ORGANISATION/{}\", version=1)\n"
                                           "kernel.{}({})\n",
                                           hub_name(x), name, parameters))});
  return files;
}

} // namespace

expected<out_files> hub_package(const exported_kernel& x) {
  auto files =
      x.about.contract == "torch" ? expected<out_files>{python_package(x)} : compiled_package(x);
  KM_TRY(files);
  files->push_back({"flake.nix", flake});
  return files;
}

} // namespace kernelmill::kernel_forms
