#include "gpu/referee/trusted_build.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <sys/mman.h>
#include <unistd.h>

#include "gpu/process/descriptor.hpp"
#include "messages/digest.hpp"

namespace kernelmill {

namespace {

constexpr int compile_deadline_ms = 120'000;

// The flags of candidates, for a fair baseline.
const std::vector<std::string> flags = {"-std=c++20", "-O3",   "-march=native",
                                        "-fopenmp",   "-fPIC", "-shared"};

expected<std::string> read_source(const std::string& path) {
  std::ifstream in{path, std::ios::binary};
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) return configuration_error("missing_file", "failed to read " + path);
  return text.str();
}

std::string read_log(int file) {
  std::string text(4096, '\0');
  auto got = ::pread(file, text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return text;
}

} // namespace

trusted_builder::trusted_builder(spawner& processes, std::string cache_directory)
    : processes_(processes), cache_directory_(std::move(cache_directory)) {
  // nop
}

expected<std::string> trusted_builder::build(const std::string& source_path) {
  auto source = read_source(source_path);
  if (!source) return tl::unexpected<error>{source.error()};
  std::string all = *source;
  for (const auto& flag : flags) all += "\n" + flag;
  auto path = cache_directory_ + "/trusted-" + sha256_hex(all) + ".so";
  std::error_code problem;
  if (std::filesystem::exists(path, problem)) return path;
  std::filesystem::create_directories(cache_directory_, problem);
  // Under another name first: a reader never sees half a library.
  auto unfinished = path + "." + std::to_string(::getpid());
  if (auto ok = compile(source_path, unfinished); !ok) return tl::unexpected<error>{ok.error()};
  std::filesystem::rename(unfinished, path, problem);
  if (problem)
    return infrastructure_error("cache_failed", "failed to keep " + path + ": " + problem.message(),
                                "check space and rights of the cache directory");
  return path;
}

expected<void> trusted_builder::compile(const std::string& source_path, const std::string& output) {
  descriptor log{::memfd_create("kernelmill-build-log", MFD_CLOEXEC)};
  process_spec spec;
  spec.argv = {"/usr/bin/g++"};
  spec.argv.insert(spec.argv.end(), flags.begin(), flags.end());
  spec.argv.insert(spec.argv.end(), {"-o", output, source_path});
  spec.environment = {"PATH=/usr/bin:/bin", "LC_ALL=C"};
  spec.descriptors = {{log.get(), 1}, {log.get(), 2}};
  auto compiler = processes_.start(spec);
  if (!compiler) return tl::unexpected<error>{compiler.error()};
  auto status = compiler->wait(compile_deadline_ms);
  if (!status) return tl::unexpected<error>{status.error()};
  if (status->code != 0)
    return configuration_error(
        "bad_reference", "failed to build " + source_path + ": " + read_log(log.get()),
        "the files of a task are built with g++ -std=c++20 -O3 -march=native -fopenmp");
  return {};
}

} // namespace kernelmill
