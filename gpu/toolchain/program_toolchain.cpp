#include "gpu/toolchain/program_toolchain.hpp"

#include <mutex>
#include <optional>

#include "gpu/task/program_answer.hpp"
#include "gpu/toolchain/build_attribution.hpp"
#include "gpu/toolchain/program_build.hpp"
#include "messages/base/digest.hpp"

namespace kernelmill {

namespace {

// Part of every key: raise it when the meaning of an entry changes.
constexpr const char* program_cache_generation = "kernelmill-program-2";

} // namespace

struct program_toolchain::state {
  state(sandbox& w, const toolchain_options& o, build_cache& c) : walls(w), options(o), cache(c) {
    // nop
  }

  sandbox& walls;
  toolchain_options options;
  build_cache& cache;
  std::mutex mutex; // guards tools
  std::optional<program_tools> tools;

  expected<program_tools> learn();
  build_findings make(const program_tools& with, const std::string& key, const task& what,
                      const std::string& source, int deadline_ms);
};

// Asked again until it answers, as native_toolchain does.
expected<program_tools> program_toolchain::state::learn() {
  std::lock_guard guard{mutex};
  if (tools) return *tools;
  KM_TRY(cache.prepare());
  auto answer = ask_program_tools(walls, {options.backend, options.compiler, options.architecture});
  if (answer) tools = *answer;
  return answer;
}

build_findings program_toolchain::state::make(const program_tools& with, const std::string& key,
                                              const task& what, const std::string& source,
                                              int deadline_ms) {
  build_findings refused;
  auto files = files_of_answer(what.program, source);
  if (files)
    if (auto ok = check_references(what.program, *files); !ok) files = tl::unexpected{ok.error()};
  if (!files) {
    refused.fault = files.error();
    return refused;
  }
  auto outcome =
      build_program(walls, with, what.program, *files, deadline_ms, options.memory_bytes);
  if (!outcome) {
    refused.fault = outcome.error();
    return refused;
  }
  std::optional<expected<compiler_outcome>> alone;
  if (has_failed(*outcome) && outcome->repeatable())
    alone = run_program_build(walls, with, without_tests(what.program), *files, deadline_ms,
                              options.memory_bytes);
  auto result =
      findings_to_show(*outcome, alone ? &*alone : nullptr, with, what.program, deadline_ms);
  if (result.fault.cls != fault_class::none) return result;
  auto stored = cache.store_library(key, outcome->product.get());
  if (stored)
    result.library_sha256 = *stored;
  else
    result.fault = stored.error();
  return result;
}

program_toolchain::program_toolchain(sandbox& walls, const toolchain_options& options,
                                     build_cache& cache)
    : state_(std::make_unique<state>(walls, options, cache)) {
  // nop
}

program_toolchain::~program_toolchain() = default;

Message<wire::BuildResult> program_toolchain::build(wire::BuildRequest::Reader request,
                                                    int deadline_ms) {
  auto refuse = [&](const error& why) {
    build_findings refused;
    refused.fault = why;
    return to_message(refused, {}, state_->options.backend, {});
  };
  auto loaded = load_task_folder(request.getTaskDir());
  if (!loaded) return refuse(loaded.error());
  const task& what = **loaded;
  if (what.contract != contract_kind::program ||
      (request.getTaskDigest().size() > 0 && what.digest != request.getTaskDigest().cStr()))
    return refuse({fault_class::configuration, "task_changed",
                   "failed to use task " + what.id + ": its files have changed since the run began",
                   "start a new run, or restore the task's files"});
  auto with = state_->learn();
  if (!with) return refuse(with.error());
  if (auto ok = check_needs(what.program.needs, *with); !ok) return refuse(ok.error());
  std::string source = request.getSource();
  auto key =
      sha256_hex(std::string{program_cache_generation} + '\n' + with->digest + '\n' +
                 with->architecture + '\n' + std::to_string(deadline_ms) + ' ' +
                 std::to_string(state_->options.memory_bytes) + '\n' + what.digest + '\n' + source);
  if (auto found = state_->cache.find(key)) return *found;
  auto made = state_->make(*with, key, what, source, deadline_ms);
  auto result =
      to_message(made, state_->cache.library_path(key), with->identity, with->architecture);
  auto cls = made.fault.cls;
  if (made.repeatable && (cls == fault_class::none || cls == fault_class::candidate))
    state_->cache.store_result(key, result);
  return result;
}

} // namespace kernelmill
