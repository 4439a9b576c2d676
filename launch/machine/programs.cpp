#include "launch/machine/programs.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "launch/config/paths.hpp"

namespace kernelmill {

std::string on_path(const std::string& name) {
  const char* variable = std::getenv("PATH");
  std::string path = variable ? variable : "/usr/bin:/bin";
  for (size_t begin = 0; begin <= path.size();) {
    auto end = std::min(path.find(':', begin), path.size());
    auto file = path.substr(begin, end - begin) + "/" + name;
    struct stat info {};
    if (::stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
        ::access(file.c_str(), X_OK) == 0)
      return file;
    begin = end + 1;
  }
  return {};
}

std::string output_of(spawner& processes, const std::string& program, const std::string& argument) {
  int pipe_ends[2];
  if (::pipe2(pipe_ends, O_CLOEXEC) != 0) return {};
  process_spec spec;
  spec.argv = {program, argument};
  spec.environment = {"PATH=/usr/bin:/bin", "LC_ALL=C"};
  spec.descriptors = {{pipe_ends[1], 1}};
  auto started = processes.start(spec);
  ::close(pipe_ends[1]);
  std::string text;
  if (started) {
    char part[4096];
    for (ssize_t n; (n = ::read(pipe_ends[0], part, sizeof part)) > 0 && text.size() < 65536;)
      text.append(part, static_cast<size_t>(n));
    (void)started->wait(5000);
  }
  ::close(pipe_ends[0]);
  return text;
}

expected<spawner> start_spawner() {
  auto program = helper_program("kernelmill-spawner");
  if (program.empty())
    return infrastructure_error("spawner_failed",
                                "failed to start kernelmill-spawner: it is not beside the program",
                                "build it: ninja -C build kernelmill-spawner");
  return spawner::launch(program);
}

} // namespace kernelmill
