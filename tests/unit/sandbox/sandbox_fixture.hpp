#pragma once

// A spawner, a sandbox, and the intruder inside it.

#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>

#include <gmock/gmock.h>

#include "gpu/sandbox/sandbox.hpp"
#include "messages/base/descriptor.hpp"
#include "tests/unit/sandbox/spawner_program.hpp"

namespace kernelmill {

inline constexpr int patience_ms = 30'000;

// build/tests, where the running test lies, and build/bin beside it.
inline std::filesystem::path test_directory() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

class sandbox_fixture : public testing::Test {
protected:
  struct outcome {
    exit_status status;
    std::map<std::string, long> said;
    bool out_of_memory = false;
  };

  sandbox_fixture() : processes_(*spawner::launch(spawner_program())), walls_(processes_) {}

  static sandbox_spec intrude(std::vector<std::string> what) {
    sandbox_spec spec;
    spec.argv = {"/intruder"};
    spec.argv.insert(spec.argv.end(), what.begin(), what.end());
    spec.mounts = {{test_directory() / "sandbox_intruder", "/intruder", false}};
#ifdef __SANITIZE_ADDRESS__
    // Its shadow takes 16 TiB of address space, its leak check a ptrace, and it turns crashes into
    // exit codes.
    spec.limits.address_space = no_limit;
    spec.environment = {"ASAN_OPTIONS=detect_leaks=0:handle_segv=0"};
#endif
    return spec;
  }

  // Starts with standard output and error in a pipe, whose read end comes back.
  expected<sandboxed_child> start(sandbox_spec spec, descriptor& output) {
    auto ends = make_pipe();
    spec.descriptors.emplace_back(ends.write.get(), 1);
    spec.descriptors.emplace_back(ends.write.get(), 2);
    output = std::move(ends.read);
    return walls_.start(spec);
  }

  // What it prints until every process that can print is dead.
  static std::string read_all(const descriptor& output) {
    std::string text;
    char part[4096];
    while (wait_readable(output.get(), patience_ms)) {
      auto n = read_retrying(output.get(), part, sizeof part);
      if (n <= 0) return text;
      if (text.size() < 1 << 20) text.append(part, static_cast<size_t>(n));
    }
    ADD_FAILURE() << "something in the sandbox still lives";
    return text;
  }

  outcome run(const sandbox_spec& spec) {
    descriptor output;
    auto started = start(spec, output);
    if (!started) {
      ADD_FAILURE() << render(started.error());
      return {};
    }
    outcome result;
    auto text = read_all(output);
    std::istringstream in{text};
    std::string name;
    for (long value = 0; in >> name >> value;) result.said[name] = value;
    auto status = started->wait(patience_ms);
    if (status)
      result.status = *status;
    else
      ADD_FAILURE() << render(status.error()) << text;
    result.out_of_memory = started->out_of_memory();
    return result;
  }

  bool has_layer(const char* name) {
    for (auto& x : walls_.probe())
      if (x.name == name) return x.state == layer_state::active;
    return false;
  }

  spawner processes_;
  sandbox walls_;
};

} // namespace kernelmill
