// `kernelmill build`: the compiler's half of `eval` as a command of its own.

#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/judge/candidate_source.hpp"
#include "launch/commands/judge/compile_only.hpp"
#include "launch/commands/judge/left_bundle.hpp"
#include "launch/commands/options.hpp"
#include "launch/judging/inspecting/compiling.hpp"

namespace kernelmill::commands {

namespace {

// Where it is said what the compiler made of it, besides the build itself: of HIP always, since its
// build tells registers of one kind alone.
expected<bool> wants_listing(const invocation& in, const candidate_source& x) {
  bool asked = in.has("--assembly");
  const auto& what = *x.candidate.what;
  bool gpu_source = what.terms.backend != "cpu" && what.contract != contract_kind::torch &&
                    what.contract != contract_kind::program;
  if (asked && !gpu_source)
    return configuration_error(
        "usage", "failed to use --assembly: it lists code of GPUs, of CUDA and HIP",
        what.contract == contract_kind::torch ? "`kernelmill inspect` lists that of Python modules"
                                              : "leave it out, or name --backend cuda or hip");
  return asked || what.terms.backend == "hip";
}

expected<int> build_file(const invocation& in) {
  auto bundle = left_bundle::begin(in, "build");
  KM_TRY(bundle);
  auto offer = open_candidate(in, candidate_use::building);
  KM_TRY(offer);
  auto listed = wants_listing(in, *offer);
  KM_TRY(listed);
  const auto& candidate = offer->candidate;
  Message<wire::BuildResult> built;
  cli::show_activity("compiling");
  if (candidate.parsed.ok) built = build_candidate(offer->bench.toolchain(), candidate);
  if (!*listed || !built.open()->getCompiled())
    return show_build(in, offer->bench, candidate, built, *bundle);
  cli::show_activity("listing the code");
  auto listing = inspecting::inspect_source(offer->bench.walls(), candidate.parsed.kernel,
                                            offer->architecture);
  KM_TRY(listing);
  for (const auto& what : listing->missing) cli::talk("missing: " + cli::clean(what));
  if (!listing->compiled) cli::talk("missing: a listing: " + cli::clean(listing->log));
  bool all = in.has("--assembly");
  inspecting::showing how{all ? "" : "build", 256, cli::terminal_width(1), in.colour_out};
  build_extras more;
  if (in.json)
    more.keys = {{"listing", inspecting::document_of(*listing, how)}};
  else
    more.text = inspecting::text_of(*listing, how) + "\n";
  add_listings(*listing, bundle->tools);
  return show_build(in, offer->bench, candidate, built, *bundle, more);
}

} // namespace

cli::command build_row() {
  return {"build",
          "Builds one kernel and shows what its compiler says. Needs no GPU.",
          "kernelmill build kernel.cpp\n"
          "kernelmill build kernel.cu\n"
          "kernelmill build kernel.hip --arch gfx90a --assembly\n"
          "kernelmill build answer.py --task torch/row_softmax --python venv/bin/python",
          "The build is that of `eval`, in the sandbox: registers, spills and shared memory of "
          "each kernel, warnings and errors; of HIP also VGPRs,\n"
          "SGPRs, LDS, spills and the mix of instructions.\n"
          "A kernel that does not compile is a normal result: exit code 0. Exit code 1 means that "
          "the machine failed.",
          {{"FILE", "Source file; - reads stdin.", true, false, completes::file, {}}},
          with_candidate_options(
              {{"--task",
                "TASK",
                "Id of the task. A Python module needs one.",
                "",
                false,
                {},
                completes::task},
               architecture_option(),
               flag("--assembly",
                    "Also shows the code of the GPU beside its source: PTX and SASS, or GCN."),
               python_path(),
               flag("--completion", "FILE is a whole completion with <think> and <KERNEL>."),
               bundle_option(),
               tasks_root()}),
          build_file};
}

} // namespace kernelmill::commands
