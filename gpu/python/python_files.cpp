#include "gpu/python/python_files.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>

#include "gpu/python/python_answers.hpp"
#include "messages/base/descriptor.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {

namespace fs = std::filesystem;

namespace {

constexpr int ask_deadline_ms = 120'000;
constexpr size_t most_answer = 1 << 20;

// The sandbox shows /usr but these; see sandbox_layout.cpp.
constexpr const char* hidden_directories[] = {"/usr/share", "/usr/local/share", "/usr/src"};

bool lies_in(const std::string& path, const std::string& folder) {
  return path == folder || (path.starts_with(folder) && path[folder.size()] == '/');
}

bool is_shown_anyway(const std::string& path) {
  return lies_in(path, "/usr") &&
         std::none_of(std::begin(hidden_directories), std::end(hidden_directories),
                      [&](auto* x) { return lies_in(path, x); });
}

bool is_too_much(const std::string& path) {
  return path == "/" || path == "/home" || path == "/root" || path == "/tmp" || path == "/etc" ||
         lies_in(path, "/proc") || lies_in(path, "/dev");
}

tl::unexpected<error> missing(const std::string& interpreter, const std::string& cause) {
  return configuration_error("python_missing", "failed to use " + interpreter + ": " + cause,
                             "name an interpreter that imports torch: --python PATH, "
                             "evaluation.python or KERNELMILL_PYTHON; on Debian apt install "
                             "python3-torch");
}

std::string read_answer(int fd, int deadline_ms) {
  auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds{deadline_ms};
  std::string text;
  std::array<char, 4096> part;
  while (text.size() < most_answer) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now())
                    .count();
    if (!wait_readable(fd, static_cast<int>(std::max<long>(left, 0)))) break;
    auto n = read_retrying(fd, part.data(), part.size());
    if (n <= 0) break;
    text.append(part.data(), static_cast<size_t>(n));
  }
  return text;
}

python_facts to_facts(const nlohmann::json& x) {
  python_facts result;
  auto text = [&](const char* name) { return x.at(name).get<std::string>(); };
  result.executable = text("executable");
  result.version = text("version");
  result.prefix = text("prefix");
  result.base_prefix = text("base_prefix");
  result.path = x.at("path").get<std::vector<std::string>>();
  result.torch = text("torch");
  result.torch_directory = text("torch_directory");
  result.torch_libraries = text("torch_libraries");
  result.torch_includes = x.at("torch_includes").get<std::vector<std::string>>();
  result.torch_cuda = text("torch_cuda");
  result.triton = text("triton");
  result.cuda_home = text("cuda_home");
  result.extension_suffix = text("extension_suffix");
  result.python_include = text("python_include");
  result.cxx11_abi = x.at("cxx11_abi").get<bool>();
  return result;
}

expected<python_facts> parse_answer(const std::string& interpreter, const std::string& text) {
  auto answer = nlohmann::json::parse(text, nullptr, false);
  if (!answer.is_object()) return missing(interpreter, "it gave no answer");
  if (auto problem = answer.find("error"); problem != answer.end() && problem->is_string())
    return missing(interpreter, "it cannot import torch: " + problem->get<std::string>());
  try {
    return to_facts(answer);
  } catch (const nlohmann::json::exception& problem) {
    return missing(interpreter, problem.what());
  }
}

expected<python_facts> run_to_ask(spawner& processes, const std::string& interpreter) {
  auto package = python_package_directory();
  if (package.empty())
    return infrastructure_error("python_failed",
                                "failed to find the Python package kernelmill_torch",
                                "it is installed in share/kernelmill/python");
  auto ends = make_pipe();
  process_spec spec;
  spec.argv = {interpreter, "-I", "-B", package + "/kernelmill_torch/python_facts.py"};
  spec.environment = python_environment();
  spec.environment.emplace_back("PATH=/usr/local/bin:/usr/bin:/bin");
  spec.descriptors = {{ends.write.get(), 1}};
  auto started = processes.start(spec);
  if (!started) return missing(interpreter, started.error().message);
  ends.write.reset();
  auto text = read_answer(ends.read.get(), ask_deadline_ms);
  auto status = started->wait(1000);
  if (!status) started->kill();
  auto answer = parse_answer(interpreter, text);
  if (answer) keep_answer(interpreter, text);
  return answer;
}

} // namespace

std::string python_package_directory() {
  std::error_code code;
  auto program = fs::read_symlink("/proc/self/exe", code).parent_path();
  for (const auto& place : {program / ".." / "share" / "kernelmill" / "python",
                            fs::path{KERNELMILL_SOURCE_TREE} / "gpu" / "torch"})
    if (fs::is_regular_file(place / "kernelmill_torch" / "__init__.py", code))
      return fs::weakly_canonical(place, code).string();
  return {};
}

std::string native_library() {
  std::error_code code;
  auto program = fs::read_symlink("/proc/self/exe", code).parent_path();
  return (program / ".." / "lib" / "kernelmill" / "libkernelmill-torch.so")
      .lexically_normal()
      .string();
}

expected<python_facts> ask_python(spawner& processes, const std::string& interpreter) {
  static std::mutex mutex;
  static std::map<std::string, python_facts> known;
  std::lock_guard guard{mutex};
  if (auto found = known.find(interpreter); found != known.end()) return found->second;
  auto answer = parse_answer(interpreter, kept_answer(interpreter));
  if (!answer) answer = run_to_ask(processes, interpreter);
  if (answer) known.emplace(interpreter, *answer);
  return answer;
}

std::vector<bind_mount> python_mounts(const python_facts& facts) {
  std::vector<bind_mount> result;
  auto add = [&](const std::string& path) {
    std::error_code code;
    auto at = fs::path{path}.lexically_normal().string();
    if (at.empty() || at[0] != '/' || is_shown_anyway(at) || is_too_much(at)) return;
    if (!fs::exists(at, code)) return;
    for (auto& x : result)
      if (lies_in(at, x.target)) return;
    result.push_back({at, at, false});
  };
  add(facts.base_prefix);
  add(facts.prefix);
  for (auto& x : facts.path) add(x);
  add(facts.torch_directory);
  add(facts.torch_libraries);
  for (auto& x : facts.torch_includes) add(x);
  add(facts.python_include);
  add(facts.executable);
  add("/etc/alternatives"); // Debian's libblas.so.3 is a link through it
  if (auto package = python_package_directory(); !package.empty())
    result.push_back({package, python_package_mount, false});
  return result;
}

sandbox_spec warm_process_walls(const python_facts& facts) {
  sandbox_spec spec;
  spec.forks_sandboxes = true;
  spec.mounts = python_mounts(facts);
  spec.mounts.push_back({native_library(), native_library_mount, false});
  spec.environment = {std::string{"PYTHONPATH="} + python_package_mount};
  spec.limits.address_space = no_limit;
  spec.limits.processes = 8192;
  spec.limits.open_files = 1024;
  spec.process_count = 4096;
  return spec;
}

// A name, because the number of the sandbox's user has none: parts of torch ask for it when they
// are imported, and fail.
std::vector<std::string> python_environment() {
  return {"HOME=/tmp",         "LC_ALL=C.UTF-8",        "PYTHONDONTWRITEBYTECODE=1",
          "OMP_NUM_THREADS=2", "MKL_NUM_THREADS=2",     "OPENBLAS_NUM_THREADS=2",
          "TMPDIR=/tmp",       "CUDA_VISIBLE_DEVICES=", "TRITON_CACHE_DIR=/tmp/triton",
          "USER=candidate",    "LOGNAME=candidate"};
}

} // namespace kernelmill
