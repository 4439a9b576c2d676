#include "launch/commands/judge/candidate_source.hpp"

#include <charconv>
#include <utility>

#include "launch/cli/terminal.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/tasks_root.hpp"
#include "launch/import/sol/solution.hpp"
#include "launch/machine/python.hpp"
#include "launch/node/named_baseline.hpp"
#include "launch/node/task_choice.hpp"
#include "messages/base/digest.hpp"

namespace kernelmill::commands {

namespace {

expected<int> gpu_number(const invocation& in) {
  int result = -1;
  const auto& text = in.value("--gpu");
  if (text.empty()) return result;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), result);
  if (problem != std::errc{} || end != text.data() + text.size() || result < 0)
    return configuration_error("usage", "failed to read --gpu: \"" + text + "\" is no number",
                               "`kernelmill doctor` lists the GPUs, from 0 on");
  return result;
}

// The name of a file says what its author meant; where it does not, the machine decides.
expected<chosen_backend> backend_of(const invocation& in, const task& x, candidate_use why) {
  auto wanted = in.value("--backend");
  auto file = in.value("FILE");
  auto architecture = in.value("--arch");
  bool host_code = file.ends_with(".cpp") || file.ends_with(".cc") || file.ends_with(".cxx");
  if (wanted == "auto" && is_hip_name(file)) wanted = "hip";
  // An architecture says more than the name: a .cu file may be one of HIP's as well.
  if (wanted == "auto" && file.ends_with(".cu") && architecture.empty()) wanted = "cuda";
  bool free = wanted == "auto" && in.value("--gpu").empty() && architecture.empty();
  if (free && (host_code || !x.names("cuda"))) wanted = "cpu";
  auto only = gpu_number(in);
  KM_TRY(only);
  if (why == candidate_use::building) {
    auto result = choose_compiler(wanted, architecture, *only);
    if (result && architecture.empty() && result->gpus.empty() && result->name != "cpu")
      cli::talk("built for " + result->architecture + "; --arch names another");
    return result;
  }
  auto result = choose_backend(wanted, *only);
  if (!result) return tl::unexpected<error>{for_file(result.error(), file)};
  return result;
}

// A compiler of the contracts native and device needs nothing of a task.
task_ptr no_task() {
  auto result = std::make_shared<task>();
  result->backends = {"cpu", "cuda", "hip"};
  return result;
}

expected<task_ptr> task_of(const invocation& in) {
  if (!in.has("--task")) {
    if (!in.value("FILE").ends_with(".py")) return no_task();
    return configuration_error("usage",
                               "failed to build a Python module: what it is compiled for is the "
                               "problem of its task",
                               "name it: --task torch/row_softmax");
  }
  auto roots = tasks_roots(in);
  KM_TRY(roots);
  return choose_task(*roots, in.value("--task"));
}

} // namespace

bool is_hip_name(const std::string& file) {
  return file.ends_with(".hip") || file.ends_with(".hip.cpp");
}

expected<std::string> read_candidate_for(const task& x, const std::string& file) {
  auto text = read_candidate(file);
  if (!text || !file.ends_with(".json") || x.contract != contract_kind::torch) return text;
  return sol::module_for_task(x.directory, *text, file);
}

expected<candidate_source> open_candidate(const invocation& in, candidate_use why) {
  auto loaded = task_of(in);
  KM_TRY(loaded);
  auto text = read_candidate_for(**loaded, in.value("FILE"));
  KM_TRY(text);
  auto backend = backend_of(in, **loaded, why);
  KM_TRY(backend);
  auto torch = in.has("--torch-mode") ? torch_choice_of(in) : torch_choice{};
  auto here = on_terms(**loaded, terms_of(*backend, torch));
  KM_TRY(here);
  auto parsed = in.has("--completion") ? parse_completion(*text) : as_source(*text, **here);
  auto contract = in.value("--contract");
  auto x = on_contract(*here, contract.empty() ? "auto" : contract, parsed.kernel);
  KM_TRY(x);
  auto interpreter = in.has("--torch-mode") ? in.value("--python") : std::string{};
  baseline_finder baselines{{torch.baseline, torch.best_kernels, interpreter, {}}, *backend};
  x = baselines.give(std::move(*x));
  KM_TRY(x);
  if ((*x)->contract == contract_kind::torch) {
    auto python = find_python(in.value("--python"));
    KM_TRY(python);
    backend->python = python->path;
  }
  auto architecture = backend->gpus.empty() || !backend->architecture.empty()
                          ? backend->architecture
                          : backend->gpus.front().architecture;
  auto bench = workbench::open(std::move(*backend));
  KM_TRY(bench);
  if (auto fell = layers_that_fell(bench->layers()); !fell.empty()) cli::talk("warning: " + fell);
  auto sha256 = sha256_hex(parsed.ok ? parsed.kernel : *text);
  return candidate_source{std::move(*bench),
                          {std::move(*x), std::move(parsed), std::move(sha256)},
                          std::move(architecture)};
}

std::vector<cli::option_spec> with_candidate_options(std::vector<cli::option_spec> options) {
  const cli::option_spec shared[] = {
      {"--contract",
       "NAME",
       "Contract of FILE: source of a `native` library, `device` code, a `torch` module or the "
       "files of a `program`. "
       "`auto` decides by the task and by launch lines.",
       "auto",
       false,
       {"auto", "native", "device", "torch", "program"},
       nothing},
      backend_option({"auto", "cpu", "cuda", "hip"}),
      {"--gpu",
       "N",
       "Number of the GPU. Default: the first in CUDA_VISIBLE_DEVICES.",
       "",
       false,
       {},
       nothing}};
  options.insert(options.end(), std::begin(shared), std::end(shared));
  return options;
}

cli::option_spec backend_option(std::vector<std::string> choices) {
  return {"--backend",
          "NAME",
          "Where it runs. `auto` decides by the file's name, then by the machine's hardware.",
          "auto",
          false,
          std::move(choices),
          nothing};
}

cli::option_spec architecture_option(const char* doc) {
  return {"--arch", "ARCH", doc, "", false, {}, nothing};
}

} // namespace kernelmill::commands
