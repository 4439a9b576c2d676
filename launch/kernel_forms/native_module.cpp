// The form `module` of a task in C++ or CUDA.

#include <cctype>

#include <fmt/format.h>

#include "launch/kernel_forms/exported_kernel.hpp"
#include "launch/kernel_forms/native_parts.hpp"

namespace kernelmill::kernel_forms {

namespace {

/// "90a" of "nvcc ... -arch=sm_90a"; empty: the toolchain names none.
std::string architecture_of(const std::string& toolchain) {
  auto at = toolchain.find("sm_");
  if (at == toolchain.npos) return {};
  auto end = at + 3;
  while (end < toolchain.size() && std::isalnum(static_cast<unsigned char>(toolchain[end]))) ++end;
  return toolchain.substr(at + 3, end - at - 3);
}

std::string cmake_of(const exported_kernel& x) {
  bool cuda = x.about.backend == "cuda";
  auto name = x.name();
  auto text = fmt::format("cmake_minimum_required(VERSION 3.18)\n"
                          "project({0} LANGUAGES CXX{1})\n\n"
                          "# The kernel was measured with: {2}\n"
                          "set(CMAKE_CXX_STANDARD 20)\n"
                          "set(CMAKE_CXX_STANDARD_REQUIRED ON)\n"
                          "if(NOT CMAKE_BUILD_TYPE)\n  set(CMAKE_BUILD_TYPE Release)\nendif()\n",
                          name, cuda ? " CUDA" : "", x.about.toolchain);
  if (cuda) {
    auto architecture = architecture_of(x.about.toolchain);
    text +=
        fmt::format("set(CMAKE_CUDA_STANDARD 17)\n"
                    "if(NOT DEFINED {1}_ARCHITECTURE)\n  set({1}_ARCHITECTURE {0})\nendif()\n\n",
                    architecture.empty() ? "native" : architecture, name);
    text += fmt::format(
        "add_library({0} src/{0}.cu)\n"
        "set_target_properties({0} PROPERTIES CUDA_ARCHITECTURES ${{{0}_ARCHITECTURE}})\n"
        "target_compile_options({0} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-O3>)\n",
        name);
  } else {
    text += fmt::format(
        "option({0}_NATIVE \"Build for this machine's processor, as it was measured\" ON)\n"
        "find_package(OpenMP)\n\n"
        "add_library({0} src/{0}.cpp)\n"
        "target_compile_options({0} PRIVATE -O3)\n"
        "if({0}_NATIVE)\n  target_compile_options({0} PRIVATE -march=native)\nendif()\n"
        "if(OpenMP_CXX_FOUND)\n  target_link_libraries({0} PRIVATE OpenMP::OpenMP_CXX)\nendif()\n",
        name);
  }
  text += fmt::format(
      "target_include_directories({0} PUBLIC\n"
      "  $<BUILD_INTERFACE:${{CMAKE_CURRENT_SOURCE_DIR}}/src> $<INSTALL_INTERFACE:include>)\n"
      "install(TARGETS {0} EXPORT {0}-config ARCHIVE DESTINATION lib LIBRARY DESTINATION lib)\n"
      "install(FILES src/{0}.h DESTINATION include)\n"
      "install(EXPORT {0}-config DESTINATION lib/cmake/{0})\n\n"
      "enable_testing()\n"
      "add_executable({0}_test test/test{1} test/reference.cpp)\n"
      "target_compile_definitions({0}_test PRIVATE "
      "CASES=\"${{CMAKE_CURRENT_SOURCE_DIR}}/test/cases\")\n"
      "target_link_libraries({0}_test PRIVATE {0})\n",
      name, suffix_of(x));
  if (cuda)
    text += fmt::format(
        "set_target_properties({0}_test PROPERTIES CUDA_ARCHITECTURES ${{{0}_ARCHITECTURE}})\n",
        name);
  text += fmt::format("add_test(NAME {0} COMMAND {0}_test)\n"
                      "set_tests_properties({0} PROPERTIES SKIP_RETURN_CODE 77)\n",
                      name);
  return text;
}

std::string readme_of_library(const exported_kernel& x) {
  return fmt::format(
             "# {0}\n{1}. A kernel of Kernelmill, as a library with a C header.\n\n"
             "```c\n#include \"{0}.h\"\n\n{2};\n```\n\n"
             "## Build and test\n```sh\ncmake -S . -B build\ncmake --build build\n"
             "ctest --test-dir build --output-on-failure\n```\n\n"
             "The test runs the kernel on the task's visible cases and compares it with "
             "`test/reference.cpp`.\n"
             "In your own project, with this folder in it as `{0}`: `add_subdirectory({0})` and "
             "`target_link_libraries(your_program {0})`.\n\n",
             x.name(), x.title(), c_declaration(x)) +
         measured_text(x);
}

} // namespace

expected<out_files> native_module(const exported_kernel& x) {
  auto files = native_sources(x, "src");
  KM_TRY(files);
  for (auto& file : native_test(x)) files->push_back(std::move(file));
  files->push_back({"CMakeLists.txt", cmake_of(x)});
  files->push_back({"README.md", readme_of_library(x)});
  return files;
}

} // namespace kernelmill::kernel_forms
