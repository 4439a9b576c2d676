#include "gpu/toolchain/program_build.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>

#include "gpu/toolchain/build_attribution.hpp"
#include "gpu/toolchain/compiler_facts.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/text.hpp"

namespace kernelmill {

namespace {

namespace fs = std::filesystem;

constexpr const char* files_folder = "/build/files";
constexpr int not_prepared = 98; // exit code of what stands before the task's command

// The task's command is the first parameter. An archive in one order and without times, so that the
// same files have the same digest.
constexpr const char* build_script =
    "mkdir /tmp/program && cp -r /build/files/. /tmp/program && chmod -R u+rwX /tmp/program && "
    "cd /tmp/program || exit 98\n"
    "/bin/sh -c \"$1\" </dev/null || exit $?\n"
    "exec tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf /proc/self/fd/5 .\n";

// Numbers of a version: "12.8" is {12, 8}.
std::pair<int, int> version_of(std::string_view x) {
  int major = 0, minor = 0;
  auto [end, problem] = std::from_chars(x.data(), x.data() + x.size(), major);
  if (problem == std::errc{} && end != x.data() + x.size() && *end == '.')
    std::from_chars(end + 1, x.data() + x.size(), minor);
  return {major, minor};
}

// "sm_90" and "sm_90a" are 9.0, "sm_120" is 12.0.
std::pair<int, int> capability_of(std::string_view architecture) {
  auto at = architecture.find('_');
  int number = 0;
  if (at != architecture.npos)
    std::from_chars(architecture.data() + at + 1, architecture.data() + architecture.size(),
                    number);
  return {number / 10, number % 10};
}

// What nvcc's identity says: "nvcc 13.0 -std=c++20 ..."
std::string release_in(const std::string& identity) {
  auto words = split(identity, ' ');
  return words.size() > 1 ? words[1] : std::string{};
}

std::string first_that_is_there(const std::vector<std::string>& paths) {
  std::error_code ignored;
  for (const auto& x : paths)
    if (fs::exists(x, ignored)) return x;
  return {};
}

// The sandbox hides /usr/share, and CMake looks for its modules beside its own file: it stands in
// another place there.
void add_cmake(program_tools& into) {
  const std::string place = "/cmake";
  std::error_code problem;
  if (!fs::exists("/usr/bin/cmake", problem)) return;
  for (const auto& x : fs::directory_iterator{"/usr/share", problem}) {
    auto name = x.path().filename().string();
    if (!name.starts_with("cmake-") || !fs::exists(x.path() / "Modules", problem)) continue;
    into.mounts.push_back({x.path().string(), place + "/share/" + name, false});
    for (const char* tool : {"cmake", "ctest"})
      if (fs::exists(std::string{"/usr/bin/"} + tool, problem))
        into.mounts.push_back({std::string{"/usr/bin/"} + tool, place + "/bin/" + tool, false});
    into.path = place + "/bin:" + into.path;
    return;
  }
}

std::vector<std::string> own_files_of(const program_task& x) {
  return writable_files(x);
}

std::string shown_text(const compiler_outcome& x) {
  return clean_log(x.text, most_log);
}

} // namespace

expected<program_tools> ask_program_tools(sandbox& walls, const program_tool_choice& x) {
  program_tools result;
  bool cuda = x.backend == "cuda";
  auto host = ask_gxx(walls, cuda || x.compiler.empty() ? "/usr/bin/g++" : x.compiler, {});
  KM_TRY(host);
  result.path = host->path + ":/usr/bin:/bin";
  result.mounts = host->mounts;
  result.identity = host->identity.substr(0, host->identity.find(" -"));
  result.digest = host->digest;
  if (!cuda) {
    add_cmake(result);
    return result;
  }
  auto nvcc = x.compiler.empty() ? find_nvcc() : x.compiler;
  auto device =
      ask_nvcc(walls, nvcc.empty() ? "/usr/local/cuda/bin/nvcc" : nvcc, x.architecture, {});
  KM_TRY(device);
  auto root = fs::path{nvcc}.parent_path().parent_path().string();
  result.path = device->path + ":/bin";
  result.mounts = device->mounts;
  if (device->mounts.empty()) result.mounts = compiler_mounts(nvcc);
  result.architecture = x.architecture;
  result.toolkit = release_in(device->identity);
  result.library_path = root + "/lib64:" + root + "/lib:" + root + "/targets/x86_64-linux/lib";
  result.cupti = first_that_is_there({root + "/extras/CUPTI/lib64/libcupti.so",
                                      root + "/lib64/libcupti.so", root + "/lib/libcupti.so",
                                      root + "/targets/x86_64-linux/lib/libcupti.so"});
  result.identity = "nvcc " + result.toolkit + " " + x.architecture + ", " + result.identity;
  result.digest = sha256_hex(host->digest + device->digest);
  add_cmake(result);
  return result;
}

expected<void> check_needs(const program_needs& x, const program_tools& tools) {
  auto unmet = [](const std::string& needs, const std::string& has) {
    return configuration_error("needs_unmet",
                               "the task needs " + needs + ", and this machine has " + has,
                               "judge it on a machine that has it");
  };
  if (tools.architecture.empty()) return {};
  if (!x.toolkit.empty() && version_of(tools.toolkit) < version_of(x.toolkit))
    return unmet("CUDA " + x.toolkit + " or later", "CUDA " + tools.toolkit);
  if (!x.compute_capability.empty() &&
      capability_of(tools.architecture) < version_of(x.compute_capability))
    return unmet("a GPU of compute capability " + x.compute_capability + " or later",
                 "one of " + tools.architecture);
  return {};
}

std::string command_for(const std::string& build, const std::string& architecture) {
  if (architecture.empty()) return build;
  std::string result = build;
  for (const std::string flag :
       {"-arch=native", "-arch native", "--gpu-architecture=native", "--gpu-architecture native"})
    for (auto at = result.find(flag); at != result.npos; at = result.find(flag, at + 1))
      result.replace(at + flag.size() - 6, 6, architecture);
  return result;
}

expected<compiler_outcome> run_program_build(sandbox& walls, const program_tools& tools,
                                             const program_task& x,
                                             const std::vector<program_file>& answer,
                                             int deadline_ms, uint64_t memory_bytes) {
  compiler_job job;
  std::vector<descriptor> kept;
  std::vector<std::string> written;
  auto add = [&](const program_file& file) -> expected<void> {
    auto text = memory_file(file.text);
    KM_TRY(text);
    job.files.push_back({text->get(), std::string{files_folder} + "/" + file.path});
    written.push_back(file.path);
    kept.push_back(std::move(*text));
    return {};
  };
  // An answer's file stands in place of the one that the task has.
  for (const auto& file : answer) KM_TRY(add(file));
  for (const auto* list : {&x.context, &x.tests})
    for (const auto& file : *list)
      if (std::find(written.begin(), written.end(), file.path) == written.end()) KM_TRY(add(file));
  auto build = command_for(x.build, tools.architecture);
  job.argv = {"/bin/sh", "-c", build_script, "sh", trimmed(build).empty() ? ":" : build};
  job.path = tools.path;
  job.environment = {"HOME=/tmp"};
  job.mounts = tools.mounts;
  job.source_name = "task"; // run_compiler wants one file; this one says which task it is
  job.source = x.suite_id + "\n";
  job.deadline_ms = deadline_ms;
  job.memory_bytes = memory_bytes;
  job.address_space = 4 * memory_bytes; // cicc and the linker reserve much more than they use
  job.cpu_seconds = static_cast<uint64_t>(std::max(2, deadline_ms / 500));
  job.product_bytes = most_program_bytes;
  return run_compiler(walls, job);
}

namespace {

expected<void> build_baseline(sandbox& walls, const program_tools& tools, const program_task& x,
                              int deadline_ms, uint64_t memory_bytes) {
  auto control = run_program_build(walls, tools, x, x.baseline, deadline_ms, memory_bytes);
  KM_TRY(control);
  if (!has_failed(*control)) return {};
  const std::string what = "the task's own baseline";
  if (control->killed || control->timed_out || control->status.code == not_prepared ||
      speaks_of_machine(control->text))
    return tl::unexpected<error>{fault_of_control(*control, what)};
  auto found = parse_diagnostics(shown_text(*control));
  auto said = found.empty() ? shown_text(*control).substr(0, 400)
                            : found.front().file + ": " + found.front().message;
  return configuration_error("bad_task", "failed to build " + what + ": " + said,
                             "`kernelmill task check` builds and tests it");
}

} // namespace

expected<compiler_outcome> build_program(sandbox& walls, const program_tools& tools,
                                         const program_task& x,
                                         const std::vector<program_file>& answer, int deadline_ms,
                                         uint64_t memory_bytes) {
  expected<compiler_outcome> latest = compiler_outcome{};
  auto own = own_files_of(x);
  KM_TRY(attribute({[&] {
                      latest =
                          run_program_build(walls, tools, x, answer, deadline_ms, memory_bytes);
                      return evidence_of(latest, own);
                    },
                    [&] { return build_baseline(walls, tools, x, deadline_ms, memory_bytes); }}));
  return latest;
}

namespace {

// With other words than its own.
compiler_outcome retold(const compiler_outcome& x, std::string text) {
  compiler_outcome result;
  result.status = x.status;
  result.timed_out = x.timed_out;
  result.flooded = x.flooded;
  result.out_of_memory = x.out_of_memory;
  result.killed = x.killed;
  result.cores = x.cores;
  result.seconds = x.seconds;
  result.text = std::move(text);
  return result;
}

} // namespace

build_findings findings_of(const compiler_outcome& x, const program_tools& tools,
                           const std::string& build, int deadline_ms) {
  build_findings result;
  result.seconds = x.seconds;
  auto text = x.text;
  if (command_for(build, tools.architecture) != build)
    text = "-arch=native stands for " + tools.architecture + " here\n" + text;
  result.log = clean_log(text, most_log);
  result.diagnostics = parse_diagnostics(result.log);
  if (!has_failed(x)) return result;
  result.fault = fault_of_compiler(x, result.diagnostics, deadline_ms);
  result.repeatable = x.repeatable();
  return result;
}

namespace {

constexpr const char* empty_tests_note = "the answer's files beside empty tests:\n";

bool tells_a_build(const std::string& path) {
  auto name = fs::path{path}.filename().string();
  auto ending = fs::path{path}.extension().string();
  return name == "Makefile" || name == "makefile" || name == "CMakeLists.txt" || ending == ".mk" ||
         ending == ".cmake" || ending == ".sh" || ending == ".ninja";
}

// Empty tests have no main, whatever the answer is.
std::string without_main(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    auto line = next_line(text);
    bool of_main = line.find("undefined reference to `main'") != line.npos ||
                   line.find("in function `_start'") != line.npos ||
                   line.find("ld returned 1 exit status") != line.npos;
    if (!of_main) result += std::string{line} + "\n";
  }
  return result;
}

bool is_word_in(std::string_view text, std::string_view word) {
  auto part = [](char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; };
  for (auto at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    auto end = at + word.size();
    if ((at == 0 || !part(text[at - 1])) && (end == text.size() || !part(text[end]))) return true;
  }
  return false;
}

// Of what a linker misses, the functions that the policy's own files name: other names can be made
// of what the tests say.
std::string missing_functions(std::string_view text, const std::vector<program_file>& given) {
  constexpr std::string_view mark = "undefined reference to `";
  std::vector<std::string> names;
  while (!text.empty()) {
    auto line = next_line(text);
    auto at = line.find(mark);
    if (at == line.npos) continue;
    auto name = line.substr(at + mark.size());
    name = name.substr(0, name.find_first_of("(<'"));
    if (auto space = name.rfind(':'); space != name.npos) name.remove_prefix(space + 1);
    bool is_given = !name.empty() && std::any_of(given.begin(), given.end(), [&](const auto& x) {
      return is_word_in(x.text, name);
    });
    if (is_given && std::find(names.begin(), names.end(), name) == names.end())
      names.emplace_back(name);
  }
  std::string list;
  for (const auto& x : names) list += (list.empty() ? "" : ", ") + x;
  return list.empty() ? "something that the tests use is missing, is there twice or is declared "
                        "otherwise"
                      : "they lack " + list + ", as the tests call it";
}

} // namespace

program_task without_tests(const program_task& x) {
  auto result = x;
  for (auto& file : result.tests)
    if (!tells_a_build(file.path)) file.text = "\n";
  return result;
}

build_findings findings_to_show(const compiler_outcome& x, const expected<compiler_outcome>* alone,
                                const program_tools& tools, const program_task& what,
                                int deadline_ms) {
  auto result = findings_of(x, tools, what.build, deadline_ms);
  auto said = findings_of(retold(x, {}), tools, what.build, deadline_ms);
  result.log = said.log;
  result.diagnostics.clear();
  if (result.fault.category != "compile_error") return result;
  result.fault = said.fault;
  if (alone == nullptr || !*alone) return result;
  said = findings_of(retold(**alone, without_main((*alone)->text)), tools, what.build, deadline_ms);
  bool tells = std::any_of(said.diagnostics.begin(), said.diagnostics.end(),
                           [](const diagnostic& d) { return d.severity == "error"; });
  if (tells) {
    if (said.fault.category == "compile_error") result.fault = said.fault;
    result.diagnostics = std::move(said.diagnostics);
    result.log = empty_tests_note + said.log;
  } else if (!x.flooded && x.status.signal == 0) {
    result.fault.message = "failed to build the answer with the tests: its files compile, and " +
                           missing_functions(x.text, what.context);
    result.fault.hint = "define what the given files declare, once and as they declare it";
  }
  return result;
}

} // namespace kernelmill
