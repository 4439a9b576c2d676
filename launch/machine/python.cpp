#include "launch/machine/python.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <sys/stat.h>
#include <unistd.h>

#include "gpu/process/process.hpp"
#include "gpu/python/python_files.hpp"
#include "launch/config/paths.hpp"

namespace kernelmill {

namespace {

std::string search_path() {
  const char* variable = std::getenv("PATH");
  return variable != nullptr && *variable != '\0' ? variable : "/usr/bin:/bin";
}

bool is_program(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

/// An absolute path; empty when a name is not on PATH.
std::string absolute_of(const std::string& program) {
  std::error_code code;
  if (program.find('/') != program.npos)
    return std::filesystem::absolute(program, code).lexically_normal().string();
  auto path = search_path();
  for (size_t begin = 0; begin <= path.size();) {
    auto end = std::min(path.find(':', begin), path.size());
    auto file = path.substr(begin, end - begin) + "/" + program;
    if (file.front() == '/' && is_program(file)) return file;
    begin = end + 1;
  }
  return {};
}

std::vector<std::string> candidates() {
  std::vector<std::string> result;
  const char* variable = std::getenv("KERNELMILL_PYTHON");
  for (const std::string& name : {std::string{variable != nullptr ? variable : ""},
                                  std::string{"python3"}, std::string{"/usr/bin/python3"}}) {
    auto path = name.empty() ? std::string{} : absolute_of(name);
    if (!path.empty() && std::find(result.begin(), result.end(), path) == result.end())
      result.push_back(path);
  }
  return result;
}

} // namespace

expected<found_python> find_python(const std::string& wanted) {
  auto missing = [](const std::string& cause) {
    return configuration_error("python_missing", "failed to find a Python that has torch: " + cause,
                               "name one with --python PATH, evaluation.python or "
                               "KERNELMILL_PYTHON; `kernelmill doctor` shows what there is");
  };
  auto named = wanted.empty() ? std::string{} : absolute_of(wanted);
  if (!wanted.empty() && named.empty()) return missing("there is no " + wanted + " on PATH");
  auto program = helper_program("kernelmill-spawner");
  if (program.empty())
    return infrastructure_error("program_missing", "failed to ask Python: there is no "
                                                   "kernelmill-spawner beside kernelmill");
  auto processes = spawner::launch(program);
  KM_TRY(processes);
  std::string said;
  for (const auto& x : named.empty() ? candidates() : std::vector<std::string>{named}) {
    auto facts = ask_python(*processes, x);
    if (facts)
      return found_python{x, facts->version, facts->torch, facts->torch_cuda, facts->triton};
    said += (said.empty() ? "" : "; ") + facts.error().message;
  }
  return missing(said.empty() ? "there is no python3" : said);
}

std::string describe(const found_python& x) {
  auto text = "python " + x.version + ", torch " + x.torch;
  if (!x.cuda.empty()) text += " (CUDA " + x.cuda + ")";
  return text + (x.triton.empty() ? ", no triton" : ", triton " + x.triton);
}

} // namespace kernelmill
