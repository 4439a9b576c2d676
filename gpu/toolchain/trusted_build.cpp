#include "gpu/toolchain/trusted_build.hpp"

#include <atomic>
#include <filesystem>

#include <sys/mman.h>
#include <unistd.h>

#include "gpu/toolchain/build_attribution.hpp"
#include "gpu/toolchain/build_cache.hpp"
#include "gpu/toolchain/compiler_facts.hpp"
#include "gpu/toolchain/control_source.hpp"
#include "gpu/toolchain/header_stamp.hpp"
#include "messages/base/descriptor.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/files.hpp"
#include "messages/base/text.hpp"
#include "messages/folder_file.hpp"

namespace kernelmill {

namespace {

constexpr int compile_deadline_ms = 120'000;

// The flags of candidates, for a fair baseline.
const std::vector<std::string> flags = {"-std=c++20", "-O3",   "-march=native",
                                        "-fopenmp",   "-fPIC", "-shared"};

// Where the compiler reads what it is to hold a definition against.
constexpr int declared_descriptor = 3;
constexpr const char* declared_at = "/dev/fd/3";

constexpr size_t most_said = 4096; // of a compiler's words

expected<std::string> read_source(const std::string& path) {
  auto cut = path.rfind('/');
  if (cut == path.npos) return read_in_folder(".", path);
  return read_in_folder(path.substr(0, cut), path.substr(cut + 1));
}

bool is_device_source(const std::string& path) {
  return path.ends_with(".cu") || path.ends_with(".hip");
}

std::string digest_path(const std::string& library) {
  return library.substr(0, library.size() - 3) + ".sha256";
}

// What lies in a cache may have been cut short by a full disk, or changed.
bool is_whole(const std::string& library) {
  auto bytes = read_whole(library);
  auto digest = read_whole(digest_path(library));
  return bytes && digest && sha256_hex(*bytes) == *digest;
}

} // namespace

trusted_builder::trusted_builder(spawner& processes, std::string cache_directory,
                                 build_target target)
    : processes_(processes), cache_directory_(std::move(cache_directory)),
      target_(std::move(target)) {
  // nop
}

expected<std::vector<std::string>>
trusted_builder::command_for(const std::string& source_path) const {
  std::vector<std::string> result{"/usr/bin/g++"};
  if (!is_device_source(source_path)) {
    result.insert(result.end(), flags.begin(), flags.end());
    return result;
  }
  bool amd = is_amd_architecture(target_.architecture);
  auto compiler = amd ? find_hipcc() : find_nvcc();
  if (compiler.empty())
    return infrastructure_error("toolchain_missing",
                                "failed to build " + source_path + ": there is no " +
                                    (amd ? "hipcc" : "nvcc"),
                                amd ? "apt install hipcc, or set ROCM_PATH or HIPCC"
                                    : "install the CUDA toolkit, or use --backend cpu");
  if (amd) return hipcc_command(compiler, target_.architecture);
  auto layer = layer_of(target_);
  KM_TRY(layer);
  result = nvcc_command(compiler, target_.architecture);
  if (*layer)
    for (auto& word : nvcc_flags(**layer)) result.push_back(word);
  return result;
}

expected<std::string> trusted_builder::build(const std::string& source_path,
                                             const std::string& declaration) {
  auto source = read_source(source_path);
  KM_TRY(source);
  auto command = command_for(source_path);
  KM_TRY(command);
  std::string all = *source + declaration;
  for (const auto& word : *command) all += "\n" + word;
  std::vector<std::string> stamped{command->front(), "/usr/lib/gcc"};
  if (is_device_source(source_path) && !target_.hip_folder.empty())
    stamped.push_back(target_.hip_folder);
  all += "\n" + stamp_of(stamped);
  auto path = cache_directory_ + "/trusted-" + sha256_hex(all) + ".so";
  if (is_whole(path)) return path;
  std::error_code problem;
  std::filesystem::create_directories(cache_directory_, problem);
  // Under another name first: a reader never sees half a library.
  static std::atomic<unsigned> number = 0;
  auto unfinished = path + "." + std::to_string(::getpid()) + "-" + std::to_string(++number);
  KM_TRY(compile(*command, unfinished, source_path, declaration));
  auto bytes = read_whole(unfinished);
  if (bytes) KM_TRY(write_atomically(digest_path(path), sha256_hex(*bytes), 0444));
  std::filesystem::rename(unfinished, path, problem);
  if (problem || !bytes)
    return infrastructure_error("cache_failed", "failed to keep " + path + ": " + problem.message(),
                                "check space and rights of the cache directory");
  return path;
}

expected<compiler_outcome> trusted_builder::run(std::vector<std::string> command,
                                                const std::string& product,
                                                const std::string& source_path,
                                                const std::string& declaration) {
  descriptor log{::memfd_create("kernelmill-build-log", MFD_CLOEXEC)};
  process_spec spec;
  // nvcc finds its own tools beside itself.
  auto tools = command[0].substr(0, command[0].rfind('/'));
  command.insert(command.end(), {"-o", product, source_path});
  spec.argv = std::move(command);
  spec.environment = {"PATH=" + tools + ":/usr/bin:/bin", "LC_ALL=C"};
  spec.descriptors = {{log.get(), 1}, {log.get(), 2}};
  descriptor header;
  if (!declaration.empty()) {
    auto text = memory_file(declaration + ";\n");
    KM_TRY(text);
    header = std::move(*text);
    spec.descriptors.push_back({header.get(), declared_descriptor});
  }
  auto compiler = processes_.start(spec);
  KM_TRY(compiler);
  auto status = compiler->wait(compile_deadline_ms);
  KM_TRY(status);
  compiler_outcome result;
  result.status = *status;
  result.text = read_first(log.get(), most_said);
  return result;
}

expected<void> trusted_builder::control(const std::vector<std::string>& command,
                                        const std::string& product) {
  bool device = !command[0].ends_with("g++");
  bool hip = target_.backend == "hip";
  auto source = product + (hip ? ".hip" : device ? ".cu" : ".cpp");
  auto name = !device ? control_kind::host : hip ? control_kind::hip : control_kind::cuda;
  KM_TRY(write_atomically(source, control_source(name), 0444));
  auto made = product + ".control";
  auto outcome = run(command, made, source, {});
  for (const auto& x : {source, made}) ::unlink(x.c_str());
  return result_of_control(outcome, !device ? "a C++ source of ours"
                                    : hip   ? "a HIP source of ours"
                                            : "a CUDA source of ours");
}

expected<void> trusted_builder::compile(const std::vector<std::string>& command,
                                        const std::string& product, const std::string& source_path,
                                        const std::string& declaration) {
  auto declared = command;
  if (!declaration.empty()) declared.insert(declared.end(), {"-include", declared_at});
  expected<compiler_outcome> latest = compiler_outcome{};
  KM_TRY(attribute({[&] {
                      latest = run(declared, product, source_path, declaration);
                      return evidence_of(latest, {source_path});
                    },
                    [&] { return control(command, product); }}));
  KM_TRY(latest);
  if (!has_failed(*latest)) return {};
  const auto& said = latest->text;
  if (said.find("conflicting declaration of C function") != said.npos)
    return configuration_error("bad_reference",
                               "failed to build " + source_path +
                                   ": its function has another signature than task.json gives it",
                               "define it as " + declaration);
  return configuration_error("bad_reference", "failed to build " + source_path + ": " + said,
                             "it is built with " + joined(declared, " "));
}

} // namespace kernelmill
