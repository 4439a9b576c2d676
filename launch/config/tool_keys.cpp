// The keys of compile.*, evaluation.* and profile.*: which tools are used, and how.

#include <algorithm>
#include <cctype>

#include "launch/config/key_builders.hpp"
#include "messages/torch_words.hpp"

namespace kernelmill {

using namespace key_builders;

namespace {

bool is_seed(const std::string& x) {
  return x.empty() || (x.size() == 64 && std::all_of(x.begin(), x.end(), [](unsigned char c) {
                         return std::isdigit(c) || (c >= 'a' && c <= 'f');
                       }));
}

} // namespace

void add_tool_keys(std::vector<config_key>& k) {
  k.push_back(within(KEY(compile.slots, "Concurrent builds; 0: one per core."), 0, 4096));
  k.push_back(within(KEY(compile.deadline_ms,
                         "Time for one build; a compiler that has no core is waited for longer."),
                     100, week_ms));
  k.push_back(within(KEY(compile.torch_deadline_ms,
                         "The same for an answer of the contract `torch`, with its extensions."),
                     100, week_ms));
  k.push_back(within(KEY(compile.memory_mb, "Memory for one build."), 256, 1048576));
  k.push_back(directory(KEY(
      compile.cache_dir, "Folder of the build cache; empty: $XDG_CACHE_HOME/kernelmill/build.")));
  k.push_back(matching(KEY(compile.compiler, "Absolute path of the C++ compiler."), "^/",
                       [](const std::string& x) { return x.starts_with("/"); }));
  k.push_back(one_of(
      KEY(evaluation.backend, "Where kernels run; `auto` takes the best that this machine has."),
      {"auto", "cpu", "cuda", "hip"}));
  k.push_back(
      one_of(KEY(evaluation.contract,
                 "Contract of candidates: `native` libraries, `device` code, or `torch` modules "
                 "in Python. Tasks of the contract torch always take torch modules."),
             {"native", "device", "torch"}));
  k.push_back(file(KEY(evaluation.python,
                       "Python interpreter with torch, and with Triton if needed; empty: "
                       "$KERNELMILL_PYTHON, then python3. Only tasks of the contract torch use "
                       "this key and the next three.")));
  k.push_back(one_of(KEY(evaluation.torch_mode,
                         "`honest`: fresh inputs in every call and an error bound scaled to the "
                         "data; `suite`: the same inputs and checks, and the task's own "
                         "`tolerance`; `kernelbench`: KernelBench's tolerances and trial counts."),
                     {"honest", "suite", "kernelbench"}));
  k.push_back(
      one_of(KEY(evaluation.language,
                 "Language that a Python candidate's kernels must use. With `torch`, "
                 "calls of the framework are enough. Those behind `torch` need a package of "
                 "the interpreter: triton 3.6, nvidia-cutlass-dsl, cuda-tile, tilelang or "
                 "helion."),
             answer_languages()));
  k.push_back(
      one_of(KEY(evaluation.float32,
                 "Arithmetic of float32 of baseline and reference, which an answer may use: "
                 "with `tf32` the error bound is as wide as what tensor cores lose."),
             {"ieee", "tf32"}));
  k.push_back(matching(
      KEY(evaluation.baseline,
          "What is speedup 1. `eager` is the task's own baseline; of the contract `torch`, the "
          "problem's model as it is. `compile` is that model behind torch.compile, and "
          "`compile_max_autotune` the same with the mode max-autotune-no-cudagraphs; other tasks "
          "keep their own baseline. `best` is the fastest kernel of `evaluation.best_kernels` that "
          "was verified on this hardware, or the task's own baseline where there is none. A path "
          "of "
          "a source file, with a slash or a dot, is that solution, which is judged as a candidate "
          "first. What torch.compile refuses is timed as it is, and the verdict says why."),
      "^(eager|compile|compile_max_autotune|best|.*[./].*)$", [](const std::string& x) {
        return is_baseline_word(x) || x.find_first_of("./") != std::string::npos;
      }));
  k.push_back(
      directory(KEY(evaluation.best_kernels,
                    "A run directory, or a folder of them, for `evaluation.baseline=best`.")));
  k.push_back(
      within(KEY(evaluation.shapes,
                 "Variants of a task of the contract `torch` that each evaluation judges "
                 "beside the problem's own shape, drawn by the evaluation's secret seed; 0: "
                 "all."),
             0, 64));
  k.push_back(one_of(KEY(evaluation.clock,
                         "Time that the reward uses: `device`, the GPU's work, or `call`, with the "
                         "launches of calls."),
                     {"call", "device"}));
  k.push_back(within(KEY(evaluation.slots, "Concurrent evaluations; 0: as many as fit the cores."),
                     0, 1024));
  k.push_back(within(KEY(evaluation.threads_per_slot,
                         "Cores of one evaluation; 0: the cores divided by the slots."),
                     0, 1024));
  k.push_back(within(KEY(evaluation.deadline_ms, "Time for one evaluation."), 100, week_ms));
  k.push_back(
      within(KEY(evaluation.torch_deadline_ms, "The same for a task of the contract `torch`."), 100,
             week_ms));
  k.push_back(matching(
      KEY(evaluation.seed,
          "64 hex digits that replay an evaluation; empty: drawn after the candidate is loaded."),
      "^([0-9a-f]{64})?$", is_seed));
  k.push_back(
      within(KEY(evaluation.determinism_runs,
                 "Calls on the same contents of each case whose results are compared, for the gate "
                 "`determinism`. In a cluster the configuration of the node that judges counts."),
             2, 64));
  k.push_back(one_of(
      KEY(evaluation.sanitize,
          "When sanitizers check a candidate, in the slot that judged it: `on_accept`, when it "
          "is "
          "right; `always`, when it was built. What they find is for the gate `memory_safety`. On "
          "a "
          "GPU it is compute-sanitizer, and host code of the contracts `native` and `torch` runs "
          "in "
          "the outer walls alone meanwhile. On a CPU it is AddressSanitizer, "
          "UndefinedBehaviorSanitizer and ThreadSanitizer of g++, for the contract `native`."),
      {"off", "on_accept", "always"}));
  k.push_back(within(KEY(evaluation.sanitize_ms, "Time for all of its checks of one candidate."),
                     1000, 600e3));
  k.push_back(KEY(evaluation.timing.enabled, "Whether correct candidates are timed."));
  k.push_back(above(
      KEY(evaluation.timing.half_width,
          "Precision of a speedup: timing ends when half the relative width of its interval is "
          "below this, or after the most batches."),
      0, 1));
  k.push_back(above(KEY(evaluation.timing.widest,
                        "Widest interval of a speedup that counts, as half of its relative width. "
                        "A wider one is `not_timed`, unless all of it lies below 1."),
                    0, 1000));
  k.push_back(
      one_of(KEY(evaluation.required_layers,
                 "Sandbox layers without which a run does not start; one that is weaker counts as "
                 "missing. See `kernelmill doctor`."),
             {"namespaces", "seccomp", "cgroup_memory", "cgroup_pids", "rlimits", "no_network",
              "separate_user", "landlock"}));
  k.push_back(KEY(
      profile.enabled,
      "Whether correct candidates are profiled. On a CPU that takes calls of its own; on a GPU the "
      "profile is what the build and the timing tell, which every turn has."));
  k.push_back(one_of(KEY(profile.when,
                         "Which candidates are profiled: `accepted`, those whose outputs are all "
                         "correct."),
                     {"accepted", "never"}));
  k.push_back(
      one_of(KEY(profile.feedback,
                 "What the next turn's prompt shows of a profile: `none`, the `card` (what limits "
                 "the kernel, why, what to try), or the card and its `numbers`."),
             {"none", "card", "numbers"}));
  k.push_back(within(
      KEY(profile.share,
          "Share of the accepted turns that keep what tools wrote: the sanitizers of "
          "evaluation.sanitize, counters on a CPU, ncu on a GPU, which takes up to a minute of its "
          "slot. `kernelmill show TURN` names them."),
      0, 1));
}

} // namespace kernelmill
