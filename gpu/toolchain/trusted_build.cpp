#include "gpu/toolchain/trusted_build.hpp"

#include <atomic>
#include <filesystem>

#include <sys/mman.h>
#include <unistd.h>

#include "gpu/toolchain/compiler_facts.hpp"
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

} // namespace

trusted_builder::trusted_builder(spawner& processes, std::string cache_directory,
                                 std::string architecture)
    : processes_(processes), cache_directory_(std::move(cache_directory)),
      architecture_(std::move(architecture)) {
  // nop
}

expected<std::vector<std::string>>
trusted_builder::command_for(const std::string& source_path) const {
  std::vector<std::string> result{"/usr/bin/g++"};
  if (!source_path.ends_with(".cu")) {
    result.insert(result.end(), flags.begin(), flags.end());
    return result;
  }
  auto nvcc = find_nvcc();
  if (nvcc.empty())
    return infrastructure_error("toolchain_missing",
                                "failed to build " + source_path + ": there is no nvcc",
                                "install the CUDA toolkit, or use --backend cpu");
  return nvcc_command(nvcc, architecture_);
}

expected<std::string> trusted_builder::build(const std::string& source_path,
                                             const std::string& declaration) {
  auto source = read_source(source_path);
  KM_TRY(source);
  auto command = command_for(source_path);
  KM_TRY(command);
  if (!declaration.empty()) command->insert(command->end(), {"-include", declared_at});
  std::string all = *source + declaration;
  for (const auto& word : *command) all += "\n" + word;
  auto path = cache_directory_ + "/trusted-" + sha256_hex(all) + ".so";
  std::error_code problem;
  if (std::filesystem::exists(path, problem)) return path;
  std::filesystem::create_directories(cache_directory_, problem);
  // Under another name first: a reader never sees half a library.
  static std::atomic<unsigned> number = 0;
  auto unfinished = path + "." + std::to_string(::getpid()) + "-" + std::to_string(++number);
  command->insert(command->end(), {"-o", unfinished, source_path});
  KM_TRY(compile(*command, source_path, declaration));
  std::filesystem::rename(unfinished, path, problem);
  if (problem)
    return infrastructure_error("cache_failed", "failed to keep " + path + ": " + problem.message(),
                                "check space and rights of the cache directory");
  return path;
}

expected<void> trusted_builder::compile(const std::vector<std::string>& command,
                                        const std::string& source_path,
                                        const std::string& declaration) {
  descriptor log{::memfd_create("kernelmill-build-log", MFD_CLOEXEC)};
  process_spec spec;
  spec.argv = command;
  // nvcc finds its own tools beside itself.
  auto tools = command[0].substr(0, command[0].rfind('/'));
  spec.environment = {"PATH=" + tools + ":/usr/bin:/bin", "LC_ALL=C"};
  spec.descriptors = {{log.get(), 1}, {log.get(), 2}};
  descriptor header{::memfd_create("kernelmill-declaration", MFD_CLOEXEC)};
  if (!declaration.empty()) {
    auto text = declaration + ";\n";
    if (::write(header.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
      return infrastructure_error("no_memory_file",
                                  "failed to build " + source_path + ": no memory for a header");
    spec.descriptors.push_back({header.get(), declared_descriptor});
  }
  auto compiler = processes_.start(spec);
  KM_TRY(compiler);
  auto status = compiler->wait(compile_deadline_ms);
  KM_TRY(status);
  auto said = status->code != 0 ? read_first(log.get(), most_said) : std::string{};
  if (said.find("conflicting declaration of C function") != said.npos)
    return configuration_error("bad_reference",
                               "failed to build " + source_path +
                                   ": its function has another signature than task.json gives it",
                               "define it as " + declaration);
  if (status->code != 0) {
    return configuration_error("bad_reference", "failed to build " + source_path + ": " + said,
                               "it is built with " + joined(command, " "));
  }
  return {};
}

} // namespace kernelmill
