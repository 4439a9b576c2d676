// `kernelmill adapter list|summary`: suites of tasks, backends, languages and tools, whether each
// is here, and what it gives. Whether it is here are the findings of `doctor`.

#include <algorithm>
#include <iterator>
#include <map>

#include <fmt/format.h>

#include "gpu/inspect/listed_build.hpp"
#include "gpu/task/task.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/program/doctor.hpp"
#include "launch/config/paths.hpp"
#include "launch/machine/programs.hpp"
#include "launch/machine/python.hpp"
#include "messages/base/counted.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/suggest.hpp"
#include "storage/export/split.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;
using counts_by_word = std::map<std::string, std::map<std::string, uint64_t>>; // "verb", "debug"

struct adapter {
  std::string kind; ///< "suite", "backend", "language" or "tool"
  finding here;
  std::string gives;
  uint64_t tasks = 0;         ///< of a suite
  counts_by_word counts = {}; ///< of its tasks
};

// -- suites ---------------------------------------------------------------------------------------

void count_task(const task& x, counts_by_word& into) {
  ++into["verb"][x.verb];
  ++into["family"][x.operator_family];
  ++into["contract"][to_string(x.contract)];
  ++into["difficulty"][x.difficulty];
  ++into["split"][exports::split_of(x.id, x.split)];
  for (const auto& backend : x.backends) ++into["backend"][backend];
  if (x.contract == contract_kind::torch && x.torch.level > 0)
    ++into["level"][std::to_string(x.torch.level)];
}

std::string words_of(const counts_by_word& counts, const std::string& what) {
  std::string result;
  auto found = counts.find(what);
  if (found == counts.end()) return result;
  for (const auto& [name, unused] : found->second) result += (result.empty() ? "" : ", ") + name;
  return result;
}

// A suite is the first part of its tasks' ids.
expected<std::vector<adapter>> suites(const task_roots& roots) {
  auto ids = list_tasks(roots);
  KM_TRY(ids);
  std::map<std::string, adapter> all;
  for (const auto& id : *ids) {
    auto name = id.substr(0, id.find('/'));
    auto& suite = all.try_emplace(name, adapter{"suite", {name, {}, {}, {}, {}}, {}}).first->second;
    ++suite.tasks;
    auto loaded = load_task(roots, id);
    if (loaded)
      count_task(**loaded, suite.counts);
    else if (suite.here.state == finding_state::ok)
      suite.here = {name, finding_state::warn, loaded.error().message, "the task is not run",
                    "`kernelmill task check` names every such task"};
  }
  std::vector<adapter> result;
  for (auto& [name, x] : all) {
    x.gives = fmt::format("{}, contract {}: {}", counted(x.tasks, "task"),
                          words_of(x.counts, "contract"), words_of(x.counts, "verb"));
    result.push_back(std::move(x));
  }
  return result;
}

// -- what the machine has -------------------------------------------------------------------------

finding optional_tool(const std::string& name, const std::string& path, const std::string& cost,
                      const std::string& remedy) {
  if (!path.empty()) return {name, finding_state::ok, path, {}, {}};
  return {name, finding_state::none, "not found", cost, remedy};
}

/// The findings of `doctor` by name.
class examined_machine {
public:
  examined_machine() {
    findings all;
    examine_tools(all);
    examine_counters(all);
    auto facts = find_accelerators();
    examine_accelerators(all, facts);
    for (auto& x : all) known_.emplace(x.name, x);
    // Of several GPUs the first stands for all.
    for (auto& x : all)
      if (x.name.starts_with("gpu ")) known_.emplace("gpu", x);
  }

  /// The first of these that is not ok, else the first, under another name.
  finding worst(const std::string& name, const std::vector<std::string>& of) const {
    finding result;
    for (const auto& one : of) {
      auto found = known_.find(one);
      if (found == known_.end()) continue;
      if (result.name.empty() || result.state == finding_state::ok) result = found->second;
    }
    result.name = name;
    return result;
  }

private:
  std::map<std::string, finding> known_;
};

std::vector<adapter> of_this_machine() {
  examined_machine machine;
  auto python = find_python({});
  finding torch{"PyTorch", finding_state::ok, python ? describe(*python) : std::string{}, {}, {}};
  if (!python)
    torch = {"PyTorch", finding_state::none, "no interpreter imports torch",
             "tasks of the contract torch are not run", python.error().hint};
  auto triton = torch;
  triton.name = "Triton";
  if (python && python->triton.empty())
    triton = {"Triton", finding_state::none, describe(*python),
              "answers in Triton fail when they are loaded", "pip install triton"};
  auto listing = find_listing_tools();
  const char* reads = "nothing: no command starts it";
  return {
      {"backend", machine.worst("cpu", {"compiler"}),
       "contract native in C++, and torch modules: built, judged, timed and profiled on cores"},
      {"backend", machine.worst("cuda", {"gpu", "gpus", "cuda driver", "nvcc", "nvrtc"}),
       "contracts native and device in CUDA C++, and torch modules: built, judged and timed on "
       "NVIDIA GPUs"},
      {"backend", machine.worst("hip", {"hip backend"}),
       "HIP kernels are judged on AMD GPUs, and on NVIDIA GPUs through HIP's headers"},
      {"language", machine.worst("C++", {"compiler"}), "contract native, backend cpu"},
      {"language", machine.worst("CUDA C++", {"nvcc"}),
       "contracts native and device, and sources inside of torch modules"},
      {"language", machine.worst("HIP", {"hipcc"}),
       "contracts native and device; for AMD GPUs also `build` and `inspect`"},
      {"language", torch, "contract torch: modules of PyTorch"},
      {"language", triton, "contract torch: kernels of Triton"},
      {"tool", machine.worst("ncu", {"ncu", "gpu counters"}),
       "`profile`: counters of each kernel on a GPU, and what limits it"},
      {"tool", machine.worst("perf events", {"perf events"}),
       "cycles, instructions and cache misses in the profile of a turn on a CPU"},
      {"tool",
       optional_tool("compute-sanitizer", toolkit_program("compute-sanitizer"),
                     "`sanitize` and evaluation.sanitize refuse a GPU",
                     "install the CUDA toolkit (cuda-sanitizer)"),
       "`sanitize`, evaluation.sanitize: races, barriers, reads of what was never written and "
       "accesses out of bounds on a GPU"},
      {"tool", machine.worst("g++ sanitizers", {"sanitizers"}),
       "`sanitize`, evaluation.sanitize: the same on a CPU, by AddressSanitizer, "
       "UndefinedBehaviorSanitizer and ThreadSanitizer"},
      {"tool",
       optional_tool("nvdisasm", listing.nvdisasm, "SASS has no lines of source",
                     "install the CUDA toolkit (cuda-nvdisasm)"),
       "`inspect`, `build --assembly`: SASS with lines of source and live registers"},
      {"tool",
       optional_tool("cuobjdump", listing.cuobjdump, "without nvdisasm there is no SASS",
                     "install the CUDA toolkit (cuda-cuobjdump)"),
       "`inspect`, `build --assembly`: SASS without lines, where nvdisasm is missing"},
      {"tool",
       optional_tool("nsys", on_path("nsys"), reads, "install Nsight Systems where you trace"),
       "`profile read` reads what `nsys export --type sqlite` wrote: times of kernels, idle gaps"},
      {"tool",
       optional_tool("rocprofv3", on_path("rocprofv3"), reads, "install ROCm where you trace"),
       "`profile read` reads its traces and counters"},
  };
}

expected<std::vector<adapter>> all_adapters(const invocation& in) {
  auto root = in.value("--root");
  auto result = suites(root.empty() ? default_tasks_roots() : task_roots{root});
  KM_TRY(result);
  auto more = of_this_machine();
  result->insert(result->end(), std::make_move_iterator(more.begin()),
                 std::make_move_iterator(more.end()));
  return result;
}

// -- the commands ---------------------------------------------------------------------------------

json adapter_json(const adapter& x) {
  json result = {
      {"kind", x.kind},          {"name", x.here.name}, {"state", to_string(x.here.state)},
      {"detail", x.here.detail}, {"gives", x.gives},    {"cost", x.here.cost},
      {"remedy", x.here.remedy}};
  if (x.kind == "suite") result["tasks"] = x.tasks;
  return result;
}

expected<int> adapter_list(const invocation& in) {
  auto all = all_adapters(in);
  KM_TRY(all);
  if (in.json) {
    json document = {{"adapters", json::array()}};
    for (const auto& x : *all) document["adapters"].push_back(adapter_json(x));
    cli::print_json(document);
    return 0;
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& x : *all)
    rows.push_back({x.kind, x.here.name, to_string(x.here.state), x.gives});
  cli::print(cli::format_table({"KIND", "NAME", "HERE", "GIVES"}, rows));
  return 0;
}

std::string adapter_text(const adapter& x) {
  auto result = fmt::format("{}, {}: {}\n", x.here.name, x.kind, to_string(x.here.state));
  auto add = [&](const char* name, const std::string& text) {
    if (!text.empty()) result += cli::hanging(fmt::format("{}: ", name), 8, cli::clean(text));
  };
  add("gives", x.gives);
  add("here", x.here.detail);
  add("costs", x.here.cost);
  add("remedy", x.here.remedy);
  std::vector<std::vector<std::string>> rows;
  for (const auto& [what, by_name] : x.counts)
    for (const auto& [name, count] : by_name) rows.push_back({what, name, fmt::to_string(count)});
  if (!rows.empty()) result += "\n" + cli::format_table({"BY", "NAME", "TASKS>"}, rows);
  return result;
}

expected<int> adapter_summary(const invocation& in) {
  auto all = all_adapters(in);
  KM_TRY(all);
  const auto& name = in.value("NAME");
  auto found =
      std::find_if(all->begin(), all->end(), [&](const adapter& x) { return x.here.name == name; });
  if (found == all->end()) {
    std::vector<std::string> names;
    for (const auto& x : *all) names.push_back(x.here.name);
    auto meant = closest(name, names);
    return configuration_error("not_found",
                               "failed to find the adapter '" + name + "': there is none",
                               meant.empty() ? "`kernelmill adapter list` has the names"
                                             : "did you mean '" + meant + "'?");
  }
  if (in.json) {
    auto document = adapter_json(*found);
    if (found->kind == "suite") document["by"] = found->counts;
    cli::print_json(document);
  } else {
    cli::print(adapter_text(*found));
  }
  return 0;
}

} // namespace

cli::command adapter_list_row() {
  return {
      "adapter list",
      "Lists suites of tasks, backends, languages and tools, and whether each is here.",
      "kernelmill adapter list",
      "HERE: `ok`, `none` (not here, and nothing fails without it), `warn` or `fail`, as `doctor` "
      "has them. Exit\n"
      "code 0 in any case.",
      {},
      {tasks_root()},
      adapter_list};
}

cli::command adapter_summary_row() {
  return {
      "adapter summary",
      "Says what one suite, backend, language or tool gives, and what is missing.",
      "kernelmill adapter summary native\n"
      "kernelmill adapter summary cuda --json",
      "Of a suite it counts the tasks by verb, family, contract, difficulty, split and backend. "
      "`task list` lists them.",
      {{"NAME", "A name of `adapter list`.", true, false, nothing, {}}},
      {tasks_root()},
      adapter_summary};
}

} // namespace kernelmill::commands
