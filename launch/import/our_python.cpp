#include "launch/import/our_python.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/python/python_files.hpp"
#include "messages/base/descriptor.hpp"
#include "messages/base/files.hpp"
#include "messages/base/json_depth.hpp"
#include "messages/base/json_fields.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {

namespace {

constexpr int output_descriptor = 3;
constexpr int without_torch = 77; ///< exit code; kernelmill_torch/model_tasks.py

std::vector<std::string> interpreters(const std::string& wanted) {
  if (!wanted.empty()) return {wanted};
  std::vector<std::string> result;
  if (const char* named = std::getenv("KERNELMILL_PYTHON"); named != nullptr && *named != '\0')
    result.emplace_back(named);
  for (const char* name : {"python3", "/usr/bin/python3"}) result.emplace_back(name);
  return result;
}

// Empty when it ended well, else how it ended. Its words are on stderr already.
std::string run(const std::vector<std::string>& command, int output) {
  std::vector<char*> words;
  for (const auto& x : command) words.push_back(const_cast<char*>(x.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, 2, 1);
  posix_spawn_file_actions_adddup2(&files, output, output_descriptor);
  pid_t child = 0;
  int failed = ::posix_spawnp(&child, words[0], &files, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) return std::strerror(failed);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return std::strerror(errno);
  if (WIFSIGNALED(status)) return "it was ended by signal " + std::to_string(WTERMSIG(status));
  auto code = WEXITSTATUS(status);
  if (code == without_torch) return "it has no torch";
  return code == 0 ? std::string{} : "it ended with exit code " + std::to_string(code);
}

} // namespace

expected<nlohmann::json> run_our_python(const std::string& interpreter, const std::string& program,
                                        const std::vector<std::string>& arguments) {
  std::string said;
  for (const auto& python : interpreters(interpreter)) {
    descriptor output{::memfd_create("kernelmill-python", MFD_CLOEXEC)};
    if (!output)
      return infrastructure_error("python_failed",
                                  std::string{"failed to run Python: "} + std::strerror(errno));
    std::vector<std::string> command{python, "-B",
                                     python_package_directory() + "/kernelmill_torch/" + program};
    command.insert(command.end(), arguments.begin(), arguments.end());
    auto trouble = run(command, output.get());
    auto text = read_whole(output.get()).value_or("");
    auto document =
        nests_deeper(text) ? nlohmann::json{} : nlohmann::json::parse(text, nullptr, false);
    if (trouble.empty() && document.is_object()) {
      if (auto failed = text_in(document, "failed"); !failed.empty())
        return configuration_error("bad_problem", failed);
      return document;
    }
    said += (said.empty() ? "" : "; ") + python + ": " + (trouble.empty() ? "no answer" : trouble);
  }
  return configuration_error("python_missing", "failed to run " + program + ": " + said,
                             "name a Python that has torch with --python PATH");
}

} // namespace kernelmill
