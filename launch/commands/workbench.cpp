#include "launch/commands/workbench.hpp"

#include "launch/config/paths.hpp"
#include "launch/config/run_config.hpp"

namespace kernelmill::commands {

namespace {

expected<std::string> need(const std::string& name) {
  auto path = helper_program(name);
  if (path.empty())
    return infrastructure_error("program_missing",
                                "failed to find " + name + ": it is not beside kernelmill",
                                "build it: ninja -C build " + name);
  return path;
}

} // namespace

expected<workbench> workbench::open(chosen_backend backend) {
  auto program = need("kernelmill-spawner");
  if (!program) return tl::unexpected<error>{program.error()};
  auto processes = spawner::launch(*program);
  if (!processes) return tl::unexpected<error>{processes.error()};
  return workbench{std::make_unique<spawner>(std::move(*processes)), std::move(backend)};
}

native_toolchain& workbench::toolchain() {
  if (!toolchain_) {
    toolchain_options options;
    options.compiler = compile_section{}.compiler;
    options.cache_directory = default_build_cache();
    backend_.apply(options);
    toolchain_ = std::make_unique<native_toolchain>(*walls_, options);
  }
  return *toolchain_;
}

expected<referee_client*> workbench::referee() {
  if (referee_) return referee_.get();
  auto program = need("kernelmill-referee");
  if (!program) return tl::unexpected<error>{program.error()};
  referee_options options;
  options.cache_directory = default_build_cache();
  options.pool = 1;
  backend_.apply(options, 0);
  auto client = referee_client::launch(*processes_, *program, options);
  if (!client) return tl::unexpected<error>{client.error()};
  referee_ = std::make_unique<referee_client>(std::move(*client));
  return referee_.get();
}

} // namespace kernelmill::commands
