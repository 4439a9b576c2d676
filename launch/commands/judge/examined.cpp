#include "launch/commands/judge/examined.hpp"

#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/tasks_root.hpp"
#include "launch/config/paths.hpp"
#include "launch/machine/accelerators.hpp"
#include "launch/machine/programs.hpp"
#include "launch/machine/python.hpp"
#include "launch/node/task_choice.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/files.hpp"
#include "messages/fault.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

expected<void> build_it(examined_candidate& x) {
  cli::show_activity("compiling");
  x.built = build_candidate(x.bench.toolchain(), x.candidate);
  auto opened = x.built.open();
  x.log = std::string{opened->getLog().cStr(), opened->getLog().size()};
  if (!opened->getCompiled()) {
    auto fault = fault_of(opened->getFault());
    if (fault.cls == fault_class::infrastructure) return tl::unexpected<error>{fault};
    if (x.log.empty()) x.log = fault.message;
    return {};
  }
  std::string path = opened->getLibraryPath();
  auto bytes = read_whole(path);
  if (!bytes) return infrastructure_error("io_error", "failed to read " + path);
  x.artifact = std::move(*bytes);
  return {};
}

} // namespace

expected<examined_candidate> prepare_examined(const invocation& in, const std::string& wanted) {
  auto roots = tasks_roots(in);
  KM_TRY(roots);
  auto loaded = choose_task(*roots, in.value("--task"));
  KM_TRY(loaded);
  if ((*loaded)->contract == contract_kind::program)
    return configuration_error("unsupported_contract",
                               "failed to look into a program: task " + (*loaded)->id +
                                   " is run by its own tests, and those would be looked at, too",
                               "`kernelmill eval` judges and times it");
  auto text = read_candidate(in.value("FILE"));
  KM_TRY(text);
  auto backend = choose_backend(wanted);
  if (!backend) return tl::unexpected<error>{for_file(backend.error(), in.value("FILE"))};
  bool on_gpu = !backend->gpus.empty();
  if (on_gpu && !backend->on_nvidia())
    return configuration_error(
        "unsupported_backend",
        "failed to look at a candidate on an AMD GPU: no tool of AMD's is run "
        "here",
        "run it under rocprofv3, and read what that wrote: `kernelmill "
        "profile read FILE`");
  if (on_gpu) backend->gpus.resize(1);
  auto here = on_terms(**loaded, terms_of(*backend, {}));
  KM_TRY(here);
  auto what = on_contract(*here, "auto", *text);
  KM_TRY(what);
  std::string python;
  if ((*what)->contract == contract_kind::torch) {
    auto found = find_python(in.value("--python"));
    KM_TRY(found);
    python = backend->python = found->path;
  }
  auto gpu = on_gpu ? backend->gpus.front() : cuda::gpu{};
  examine_options options;
  options.program = helper_program("kernelmill-candidate");
  if (on_gpu) {
    options.gpu_node = gpu.node;
    options.driver = driver_library();
  }
  auto device = hardware_text(*backend);
  auto bench = workbench::open(std::move(*backend));
  KM_TRY(bench);
  if (on_gpu) bench->keep_lines();
  auto parsed = as_source(*text, **what);
  if (!parsed.ok)
    return configuration_error("usage", "failed to read the candidate: " + parsed.problems.front());
  auto sha256 = sha256_hex(parsed.kernel);
  examined_candidate result{std::move(*bench),
                            std::move(options),
                            std::move(gpu),
                            std::move(device),
                            std::move(python),
                            {std::move(*what), std::move(parsed), std::move(sha256)},
                            {},
                            {},
                            {}};
  KM_TRY(build_it(result));
  return result;
}

json head_of(const examined_candidate& x) {
  return {{"task", x.what().id},
          {"candidate_sha256", x.candidate.sha256},
          {"contract", to_string(x.what().contract)},
          {"device", cli::clean(x.device)},
          {"compiled", x.artifact.has_value()}};
}

expected<void> leave_examined(examined_candidate& x, json document, left_bundle& bundle,
                              const Message<wire::ProfileResult>& profile) {
  if (!bundle.wanted()) return {};
  bundle.facts = facts_of(x.candidate, x.built, {}, std::nullopt, profile);
  bundle.output = std::move(document);
  return bundle.leave(x.candidate, x.bench);
}

expected<int> say_not_compiled(const invocation& in, examined_candidate& x, left_bundle& bundle) {
  auto document = head_of(x);
  document["log"] = cli::clean(x.log);
  if (in.json)
    cli::print_json(document);
  else
    cli::print(cli::clean(x.log) + "\nnot compiled\n");
  KM_TRY(leave_examined(x, std::move(document), bundle));
  return cli::exit_quality;
}

std::string said_last(const examination& x) {
  auto text = cli::clean(x.said);
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

cli::argument_spec examined_file() {
  return {"FILE", "Source file; - reads stdin.", true, false, completes::file, {}};
}

cli::option_spec examined_task() {
  return {"--task", "TASK", "Id of the task.", "", true, {}, completes::task};
}

} // namespace kernelmill::commands
