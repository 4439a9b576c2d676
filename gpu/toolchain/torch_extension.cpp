#include "gpu/toolchain/torch_extension.hpp"

#include <algorithm>
#include <filesystem>
#include <future>
#include <string_view>

#include <sys/stat.h>

#include "gpu/toolchain/build_cache.hpp"
#include "gpu/toolchain/torch_flags.hpp"
#include "gpu/toolchain/torch_sources.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/files.hpp"

namespace kernelmill {

namespace {

using words = std::vector<std::string>;

constexpr const char* slim_mount = "/kernelmill-slim";
constexpr const char* precompiled_text = "#include <torch/extension.h>\n";
constexpr uint64_t most_library = uint64_t{256} << 20;

// Sets of flags for which headers are precompiled; each costs 200 MB of disk and 10 s once.
constexpr size_t most_precompiled = 4;
constexpr size_t most_seen = 1000;

void append(words& to, const words& from) {
  to.insert(to.end(), from.begin(), from.end());
}

// GCC takes precompiled headers only where these are the same, and those with macros of the
// candidate's are not worth keeping.
bool changes_headers(const words& flags) {
  return std::any_of(flags.begin(), flags.end(),
                     [](auto& x) { return x.starts_with("-D") || x.starts_with("-U"); });
}

// "undefined reference to `at::_ops::...'" as a warning of the linker. What Python brings is there
// when the library is loaded.
words undefined_symbols(const std::string& text) {
  constexpr std::string_view mark = "undefined reference to `";
  words result;
  for (size_t at = 0; (at = text.find(mark, at)) != text.npos;) {
    at += mark.size();
    auto name = text.substr(at, text.find_first_of("'\n", at) - at);
    if (name.starts_with("Py") || name.starts_with("_Py")) continue;
    if (std::find(result.begin(), result.end(), name) == result.end()) result.push_back(name);
  }
  return result;
}

// The stronger of two: what one source of an extension says of itself says enough.
void add_evidence(std::optional<build_evidence>& all, std::optional<build_evidence> more) {
  auto rank = [](build_evidence x) {
    return x == build_evidence::source ? 2 : x == build_evidence::machine ? 1 : 0;
  };
  if (more && (!all || rank(*more) > rank(*all))) all = more;
}

std::vector<std::string> own_files(const extension_request& request) {
  std::vector<std::string> result{"bindings"};
  for (size_t i = 0; i < request.sources.size(); ++i) {
    result.push_back(shown_source_name(request, i));
    result.push_back(request.sources[i].name);
  }
  return result;
}

std::string notes(const extension_request& request, const words& folders) {
  std::string result;
  auto say = [&](const char* name, const words& ignored) {
    if (ignored.empty()) return;
    result += "note: " + request.name + ": ignored in " + name + ":";
    for (auto& x : ignored) result += " " + x.substr(0, 200);
    result += "\n";
  };
  say("extra_cflags", choose_host_flags(request.flags).ignored);
  say("extra_cuda_cflags", choose_cuda_flags(request.cuda_flags).ignored);
  say("extra_ldflags", choose_link_flags(request.link_flags, folders).ignored);
  say("extra_include_paths", request.include_paths);
  return result;
}

} // namespace

struct torch_extension_builder::unit_result {
  error fault{fault_class::none, {}, {}, {}};
  bool repeatable = true;
  bool full = false; // torch's own headers were needed
  std::optional<build_evidence> evidence;
  std::string text;
  descriptor object;
};

torch_extension_builder::torch_extension_builder(sandbox& walls, torch_compilers compilers)
    : walls_(walls), compilers_(std::move(compilers)),
      slots_(std::max(1, static_cast<int>(compilers_.parallel))) {
  // nop
}

std::vector<bind_mount> torch_extension_builder::mounts() const {
  auto result = python_mounts(compilers_.python);
  if (!compilers_.slim_headers.empty())
    result.push_back({compilers_.slim_headers, slim_mount, false});
  for (auto* of : {&compilers_.host, &compilers_.device})
    result.insert(result.end(), of->mounts.begin(), of->mounts.end());
  return result;
}

words torch_extension_builder::library_folders() const {
  words result{compilers_.python.torch_libraries};
  if (compilers_.cuda()) {
    auto toolkit = std::filesystem::path{compilers_.device.compile[0]}.parent_path().parent_path();
    result.push_back(toolkit / "lib64");
    result.push_back(toolkit / "lib64" / "stubs");
  }
  return result;
}

words torch_extension_builder::include_flags(bool slim) const {
  words result;
  if (slim) append(result, {"-isystem", slim_mount});
  for (auto& x : compilers_.python.torch_includes) append(result, {"-isystem", x});
  append(result, {"-isystem", compilers_.python.python_include});
  if (compilers_.cuda()) {
    auto toolkit = std::filesystem::path{compilers_.device.compile[0]}.parent_path().parent_path();
    append(result, {"-isystem", (toolkit / "include").string()});
  }
  return result;
}

words torch_extension_builder::host_command(const extension_request& request, bool slim) const {
  words result{compilers_.host.compile[0],        "-std=c++17",      "-fPIC",
               "-DTORCH_API_INCLUDE_EXTENSION_H", "-fmax-errors=20", "-fdiagnostics-color=never"};
  result.push_back(std::string{"-D_GLIBCXX_USE_CXX11_ABI="} +
                   (compilers_.python.cxx11_abi ? "1" : "0"));
  append(result, include_flags(slim));
  append(result, choose_host_flags(request.flags).taken);
  return result;
}

words torch_extension_builder::device_command(const extension_request& request, bool slim) const {
  auto number = wanted_architecture(request.cuda_flags, compilers_.architecture);
  number.erase(0, number.find('_') + 1);
  words result{compilers_.device.compile[0],
               "-std=c++17",
               "-gencode=arch=compute_" + number + ",code=sm_" + number,
               "-DTORCH_API_INCLUDE_EXTENSION_H",
               "-D__CUDA_NO_HALF_OPERATORS__",
               "-D__CUDA_NO_HALF_CONVERSIONS__",
               "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
               "-D__CUDA_NO_HALF2_OPERATORS__",
               "--expt-relaxed-constexpr",
               "-Xptxas=-v",
               "-Xcompiler=-fPIC,-fdiagnostics-color=never,-fmax-errors=20"};
  result.push_back(std::string{"-D_GLIBCXX_USE_CXX11_ABI="} +
                   (compilers_.python.cxx11_abi ? "1" : "0"));
  append(result, include_flags(slim));
  append(result, choose_cuda_flags(request.cuda_flags).taken);
  return result;
}

// The folder with precompiled slim headers for these flags, or nothing. They are made when flags
// come a second time: making them costs as much as two builds without.
std::string torch_extension_builder::host_headers(const words& command) {
  std::string all = compilers_.host.digest + compilers_.python.torch + precompiled_text;
  for (auto& x : command) all += '\n' + x;
  auto key = sha256_hex(all);
  precompiled_headers* mine = nullptr;
  {
    std::lock_guard guard{mutex_};
    for (auto& [name, headers] : headers_)
      if (name == key) mine = headers.get();
    if (seen_flags_.size() > most_seen) seen_flags_.clear();
    bool seen = !seen_flags_.insert(key).second;
    if (!mine && (!seen || headers_.size() >= most_precompiled)) return {};
    if (!mine) {
      auto made =
          std::make_unique<precompiled_headers>(walls_, compilers_.cache_directory, key, command);
      made->replace_text(precompiled_text, mounts());
      mine = made.get();
      headers_.emplace_back(key, std::move(made));
    }
  }
  return mine->find_or_build();
}

expected<compiler_outcome> torch_extension_builder::compile(const extension_request& request,
                                                            size_t index, int deadline_ms,
                                                            bool slim, const words& product) {
  auto& source = request.sources[index];
  compiler_job job;
  job.source = translation_unit(request, index);
  job.argv = source.is_cuda() ? device_command(request, slim) : host_command(request, slim);
  job.mounts = mounts();
  if (slim && source.is_cuda()) append(job.argv, slim_macros(job.source));
  if (slim && !source.is_cuda() && request.from_text && request.headers &&
      !changes_headers(choose_host_flags(request.flags).taken)) {
    auto folder = host_headers(job.argv);
    if (!folder.empty()) {
      job.mounts.push_back({folder, precompiled_headers::mount_point, false});
      append(job.argv, {"-include", precompiled_headers::header_path});
    }
  }
  append(job.argv, product);
  append(job.argv, {"-DTORCH_EXTENSION_NAME=" + request.name, source.name, "-o", product_path});
  job.path = source.is_cuda() ? compilers_.device.path : compilers_.host.path;
  job.source_name = source.name;
  job.deadline_ms = deadline_ms;
  job.memory_bytes = compilers_.memory_bytes;
  job.cpu_seconds = static_cast<uint64_t>(std::max(1, deadline_ms / 2000));
  std::vector<descriptor> headers;
  for (auto& x : request.sources) {
    if (!x.is_header()) continue;
    auto file = memory_file(x.text);
    KM_TRY(file);
    job.files.push_back({file->get(), "/build/" + x.name});
    headers.push_back(std::move(*file));
  }
  slots_.acquire();
  auto outcome = run_compiler(walls_, job);
  slots_.release();
  return outcome;
}

torch_extension_builder::unit_result
torch_extension_builder::compile_unit(const extension_request& request, size_t index,
                                      int deadline_ms, bool slim_allowed) {
  unit_result result;
  auto take = [&](expected<compiler_outcome>& outcome, int deadline) {
    if (!outcome) {
      result.fault = outcome.error();
      return;
    }
    result.text = std::move(outcome->text);
    if (has_failed(*outcome)) {
      outcome->text = result.text;
      result.evidence = evidence_of(*outcome, own_files(request));
      result.fault = fault_of_compiler(
          *outcome, parse_diagnostics(clean_log(result.text, most_log)), deadline);
      result.repeatable = outcome->repeatable();
    }
    result.object = std::move(outcome->product);
  };
  auto text = translation_unit(request, index);
  if (slim_allowed && !compilers_.slim_headers.empty() && may_be_slim(text)) {
    auto outcome = compile(request, index, deadline_ms, true);
    if (outcome && !has_failed(*outcome)) {
      take(outcome, deadline_ms);
      return result;
    }
  }
  result.full = true;
  auto outcome = compile(request, index, 3 * deadline_ms, false);
  take(outcome, 3 * deadline_ms);
  return result;
}

expected<compiler_outcome> torch_extension_builder::list(const extension_request& request,
                                                         size_t index, const char* kind,
                                                         int deadline_ms) {
  const words product{kind, "-lineinfo"};
  if (!compilers_.slim_headers.empty() && may_be_slim(translation_unit(request, index)))
    if (auto outcome = compile(request, index, deadline_ms, true, product);
        outcome && !has_failed(*outcome))
      return outcome;
  return compile(request, index, 3 * deadline_ms, false, product);
}

std::vector<torch_extension_builder::unit_result>
torch_extension_builder::compile_all(const extension_request& request, int deadline_ms,
                                     bool slim_allowed) {
  std::vector<std::future<unit_result>> waiting;
  for (size_t i = 0; i < request.sources.size(); ++i)
    if (!request.sources[i].is_header())
      waiting.push_back(std::async(std::launch::async, [&, i] {
        return compile_unit(request, i, deadline_ms, slim_allowed);
      }));
  std::vector<unit_result> result;
  for (auto& x : waiting) result.push_back(x.get());
  return result;
}

expected<compiler_outcome> torch_extension_builder::link(const extension_request& request,
                                                         const std::vector<unit_result>& units,
                                                         int deadline_ms) {
  compiler_job job;
  job.argv = {compilers_.host.compile[0], "-shared", "-o", product_path};
  job.mounts = mounts();
  for (size_t i = 0; i < units.size(); ++i) {
    auto name = "/build/" + std::to_string(i) + ".o";
    job.files.push_back({units[i].object.get(), name});
    job.argv.push_back(name);
  }
  auto folders = library_folders();
  for (auto& x : folders) job.argv.push_back("-L" + x);
  append(job.argv, choose_link_flags(request.link_flags, folders).taken);
  auto host = choose_host_flags(request.flags).taken;
  if (std::find(host.begin(), host.end(), "-fopenmp") != host.end())
    job.argv.emplace_back("-fopenmp");
  append(job.argv, {"-lc10", "-ltorch_cpu", "-ltorch", "-ltorch_python"});
  if (compilers_.cuda()) append(job.argv, {"-lc10_cuda", "-ltorch_cuda", "-lcudart"});
  append(job.argv, {"-Wl,-z,defs", "-Wl,--warn-unresolved-symbols", "-Wl,--allow-shlib-undefined"});
  job.path = compilers_.host.path;
  job.source_name = "unused";
  job.deadline_ms = deadline_ms;
  job.memory_bytes = compilers_.memory_bytes;
  job.product_bytes = most_library;
  job.kept_text = 1 << 20; // each use of a Python symbol is a line
  slots_.acquire();
  auto outcome = run_compiler(walls_, job);
  slots_.release();
  return outcome;
}

built_extension torch_extension_builder::build_once(const extension_request& request,
                                                    int deadline_ms, bool slim_allowed) {
  built_extension result;
  auto& found = result.findings;
  found.log = notes(request, library_folders());
  for (bool slim : {true, false}) {
    if (slim && !slim_allowed) continue;
    auto units = compile_all(request, deadline_ms, slim);
    bool used_slim = false;
    result.with_full_headers = 0;
    found.kernels.clear();
    std::string text;
    for (auto& x : units) {
      auto kernels = take_kernel_resources(x.text);
      found.kernels.insert(found.kernels.end(), kernels.begin(), kernels.end());
      text += x.text;
      used_slim = used_slim || !x.full;
      result.with_full_headers += x.full ? 1 : 0;
      if (x.fault.cls == fault_class::none) continue;
      add_evidence(result.evidence, x.evidence);
      result.failed_in_headers =
          result.failed_in_headers ||
          contains_any(x.text, {"In file included from", "No such file or directory"});
      if (found.fault.cls != fault_class::infrastructure) found.fault = x.fault;
      found.repeatable = found.repeatable && x.repeatable;
    }
    found.log += clean_log(text, most_log);
    if (found.fault.cls == fault_class::infrastructure) result.evidence.reset();
    if (found.fault.cls != fault_class::none) break;
    auto linked = link(request, units, deadline_ms);
    if (!linked) {
      found.fault = linked.error();
      break;
    }
    auto missing = undefined_symbols(linked->text);
    // An inline function of torch that only its own headers define.
    if (!missing.empty() && used_slim) continue;
    if (has_failed(*linked)) {
      result.evidence = evidence_of(*linked, {});
      found.log += clean_log(linked->text, most_log);
      found.fault = fault_of_compiler(*linked, parse_diagnostics(found.log), deadline_ms);
      found.repeatable = linked->repeatable();
    } else if (!missing.empty()) {
      found.fault = candidate_fault("compile_error",
                                    "failed to link the extension " + request.name +
                                        ": undefined reference to " + missing.front(),
                                    "a function is declared and used but defined nowhere");
      found.diagnostics.push_back({"", 0, 0, "error", "undefined reference to " + missing.front()});
    } else if (auto library = read_whole(linked->product.get())) {
      result.library = std::move(*library);
    } else {
      found.fault = {fault_class::infrastructure, "build_failed",
                     "failed to read the extension " + request.name + " that was built",
                     "the build is made again"};
    }
    break;
  }
  if (result.with_full_headers > 0)
    found.log += "note: " + request.name + ": compiled with torch's own headers\n";
  auto diagnostics = parse_diagnostics(found.log);
  found.diagnostics.insert(found.diagnostics.begin(), diagnostics.begin(), diagnostics.end());
  return result;
}

} // namespace kernelmill
