#include "launch/python.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "gpu/process/process.hpp"
#include "launch/config/paths.hpp"

namespace kernelmill {

namespace {

constexpr auto deadline = std::chrono::seconds{120}; // a cold disk needs half a minute for torch
constexpr size_t most_output = 256 << 10;

// Whatever torch prints when it is imported stands before the mark.
constexpr const char* mark = "\nkernelmill-python:";
constexpr const char* script = R"py(
import json, sys
import torch
try:
    import triton
    triton_version = getattr(triton, "__version__", "")
except Exception:
    triton_version = ""
facts = {"version": sys.version.split()[0], "torch": torch.__version__,
         "cuda": torch.version.cuda or "", "triton": triton_version, "prefix": sys.prefix,
         "base_prefix": sys.base_prefix, "import_paths": [p for p in sys.path if p]}
print("\nkernelmill-python:" + json.dumps(facts), flush=True)
)py";

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

/// Reads until the other end is closed, the deadline has passed, or enough was said.
std::string read_all(int fd, std::chrono::steady_clock::time_point until) {
  std::string text;
  char part[8192];
  while (text.size() < most_output) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                    until - std::chrono::steady_clock::now())
                    .count();
    pollfd end{fd, POLLIN, 0};
    if (left <= 0 || ::poll(&end, 1, static_cast<int>(left)) <= 0) break;
    auto n = ::read(fd, part, sizeof part);
    if (n <= 0) break;
    text.append(part, static_cast<size_t>(n));
  }
  return text;
}

struct answer {
  std::string text;
  std::string trouble; ///< why it could not be asked; empty: it was
};

answer ask(spawner& processes, const std::string& program) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {{}, "there is no file descriptor left"};
  process_spec spec;
  spec.argv = {program, "-B", "-c", script};
  spec.environment = {"PATH=/usr/bin:/bin"};
  spec.descriptors = {{ends[1], 1}, {ends[1], 2}};
  auto until = std::chrono::steady_clock::now() + deadline;
  auto started = processes.start(spec);
  ::close(ends[1]);
  answer result;
  if (started) {
    result.text = read_all(ends[0], until);
    if (auto ended = started->wait(1000); !ended) result.trouble = "it did not answer within 120 s";
  } else {
    result.trouble = "it cannot be executed";
  }
  ::close(ends[0]);
  return result;
}

/// The last line that says something: of a traceback, the exception.
std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  auto begin = text.rfind('\n');
  auto line = begin == text.npos ? text : text.substr(begin + 1);
  return line.size() > 300 ? line.substr(0, 300) : line;
}

expected<found_python> facts_of(spawner& processes, const std::string& program) {
  auto said = ask(processes, program);
  auto at = said.text.rfind(mark);
  auto document =
      at == said.text.npos
          ? nlohmann::json{}
          : nlohmann::json::parse(said.text.substr(at + std::string{mark}.size()), nullptr, false);
  if (!document.is_object()) {
    auto cause = !said.trouble.empty() ? said.trouble : last_line(said.text);
    return configuration_error("python_missing", cause.empty() ? "it said nothing" : cause);
  }
  found_python result;
  result.path = program;
  for (auto [key, into] : {std::pair{"version", &result.version},
                           {"torch", &result.torch},
                           {"cuda", &result.cuda},
                           {"triton", &result.triton},
                           {"prefix", &result.prefix},
                           {"base_prefix", &result.base_prefix}})
    *into = document.value(key, std::string{});
  result.import_paths = document.value("import_paths", std::vector<std::string>{});
  return result;
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
  if (!processes) return tl::unexpected<error>{processes.error()};
  std::string said;
  for (const auto& x : named.empty() ? candidates() : std::vector<std::string>{named}) {
    auto facts = facts_of(*processes, x);
    if (facts) return facts;
    said += (said.empty() ? "" : "; ") + x + ": " + facts.error().message;
  }
  return missing(said.empty() ? "there is no python3" : said);
}

std::string describe(const found_python& x) {
  auto text = "python " + x.version + ", torch " + x.torch;
  if (!x.cuda.empty()) text += " (CUDA " + x.cuda + ")";
  return text + (x.triton.empty() ? ", no triton" : ", triton " + x.triton);
}

} // namespace kernelmill
