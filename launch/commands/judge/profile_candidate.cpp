// `kernelmill profile FILE`: what limits a candidate of any contract, by ncu around it in the
// sandbox; where there are no counters, by what the build and the machine tell (tier 0).

#include <optional>

#include <fmt/format.h>

#include "gpu/inspect/card_lines.hpp"
#include "gpu/profiler/profile_result.hpp"
#include "gpu/profiler/tier0.hpp"
#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/judge/candidate_lines.hpp"
#include "launch/commands/judge/candidate_source.hpp"
#include "launch/commands/judge/examined.hpp"
#include "launch/commands/judge/left_bundle.hpp"
#include "launch/commands/judge/roofline_picture.hpp"
#include "launch/commands/judge/tool_reports.hpp"
#include "launch/commands/remote/on_host.hpp"
#include "launch/commands/tasks_root.hpp"
#include "launch/judging/tier0_text.hpp"
#include "launch/judging/verdict_text.hpp"
#include "launch/machine/accelerators.hpp"
#include "storage/files.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

constexpr size_t most_profiled_launches = 64; // where ncu stops
constexpr size_t most_points = 9;

constexpr const char* install_ncu = "install Nsight Compute, or put its folder on PATH";

/// What is known of a candidate, and why there are no counters.
struct candidate_profile {
  Message<wire::ProfileResult> tier0;
  std::optional<ncu_examination> counted; ///< nothing: there is no ncu
  std::vector<carded_kernel> kernels;
  device_roof roof;
  std::vector<std::string> missing;     ///< that lines of source would need
  std::string problem = "tool_missing"; ///< "none": there are counters
  std::string words = "ncu was not found";
  std::string next = install_ncu;

  bool has_counters() const { return !kernels.empty(); }
};

// Nothing was run: the machine's peaks take the place of an evaluation.
Message<wire::ProfileResult> tier0_of(const examined_candidate& x, const cuda::gpu_peaks& peaks) {
  auto evaluated = build<wire::EvaluateResult>([&](wire::EvaluateResult::Builder out) {
    auto list = out.initCounters(3);
    auto set = [&](unsigned i, const char* name, double value) {
      list[i].setName(name);
      list[i].setValue(value);
    };
    set(0, "machine_memory_bandwidth", peaks.memory_bytes_per_second.value_or(0));
    set(1, "machine_flops", peaks.flops_per_second.value_or(0));
    set(2, "machine_multiprocessors", peaks.multiprocessors.value_or(0));
  });
  auto found =
      tier0_profile(x.what(), x.candidate.parsed.kernel, *x.built.open(), *evaluated.open());
  return found ? *found : Message<wire::ProfileResult>{};
}

std::string next_of(const std::string& problem, ncu_problem by_ncu) {
  if (problem == "timed_out") return "does each kernel end? `--pack quick` takes the least time";
  if (by_ncu == ncu_problem::no_permission || by_ncu == ncu_problem::no_profiler)
    return hint_of(by_ncu);
  return "`kernelmill eval` says whether the kernel runs; --json has the tool's last words in "
         "`said`";
}

expected<void> count(const invocation& in, const std::string& ncu, examined_candidate& x,
                     candidate_profile& into) {
  unsigned calls = profiled_calls(x.what());
  auto files =
      lay_out_profiled(x.bench.walls(), x.python, x.what(), *x.artifact, calls, x.options.limit_ms);
  KM_TRY(files);
  auto pack = in.value("--pack") == "full" ? metric_pack::full : metric_pack::quick;
  cli::show_activity("profiling");
  auto found =
      examine_by_ncu(x.bench.walls(), x.options, {ncu, pack, in.value("--kernel")}, calls, *files);
  KM_TRY(found);
  bool lost = found->run.timed_out && found->report.kernels.empty();
  into.problem = lost ? "timed_out" : std::string{to_string(found->report.problem)};
  into.words = cli::clean(found->report.words);
  if (into.words.empty()) into.words = said_last(found->run);
  into.next = next_of(into.problem, found->report.problem);
  into.counted = std::move(*found);
  into.kernels = carded(into.counted->report);
  if (wants_lines(into.kernels)) add_lines(listed_texts(x, into.missing), into.kernels);
  return {};
}

// -- the roofline ---------------------------------------------------------------------------------

double declared(const task& what, const expression& x) {
  auto result = x.evaluate(what.timed.scalars);
  return result ? static_cast<double>(*result) : 0;
}

// By what the task declares and the time of all kernels of the call. Nothing is known of the call
// where some of its kernels were left out.
roofline_point call_point(const invocation& in, const examined_candidate& x,
                          const candidate_profile& found) {
  const auto& what = x.what();
  roofline_work work;
  if (what.contract != contract_kind::torch) {
    if (auto flops = declared(what, what.flops); flops > 0) work.flops = flops;
    if (auto bytes = declared(what, what.bytes); bytes > 0) work.bytes = bytes;
  }
  double time = 0;
  bool all = found.has_counters() && in.value("--kernel").empty() &&
             found.kernels.size() < most_profiled_launches;
  for (const auto& one : found.kernels) {
    auto its = one.kernel.metrics.values[metric::time];
    all = all && its;
    time += its.value_or(0);
  }
  if (all && time > 0) work.seconds = time * 1e-6;
  return {"call, by the task's flops and bytes", position_of(work, found.roof)};
}

std::vector<roofline_point> points_of(const invocation& in, const examined_candidate& x,
                                      const candidate_profile& found) {
  std::vector<roofline_point> result{call_point(in, x, found)};
  for (const auto& one : found.kernels) {
    if (result.size() == most_points) break;
    const auto& metrics = one.kernel.metrics;
    result.push_back({bare_name(metrics.kernel) + ", by counters",
                      position_of(counted_work(metrics.values), found.roof)});
  }
  return result;
}

expected<void> write_picture(const std::string& path, const std::string& title,
                             const std::vector<roofline_point>& points) {
  auto picture = roofline_svg(title, points);
  if (picture.empty()) {
    cli::talk("no " + path + ": the driver does not tell this GPU's peaks");
    return {};
  }
  return write_file(path, picture);
}

// -- documents ------------------------------------------------------------------------------------

// The process that could have written the counters.
const char* author_of(const examined_candidate& x) {
  return x.what().contract == contract_kind::device ? "ncu" : "candidate";
}

json profile_document(const invocation& in, const examined_candidate& x,
                      const candidate_profile& found) {
  auto document = head_of(x);
  document.update(ncu_document(found.counted ? found.counted->report : ncu_report{}, found.kernels,
                               found.roof));
  if (!found.counted) document["words"] = found.words;
  document["problem"] = found.problem;
  document["author"] = author_of(x);
  document["shape"] = shape_text(x.what(), x.what().timed.scalars);
  document["pack"] = in.value("--pack");
  document["refused_metrics"] = found.counted ? found.counted->refused : std::vector<std::string>{};
  document["seconds"] = found.counted ? found.counted->run.seconds : 0;
  document["said"] = found.counted ? said_last(found.counted->run) : "";
  document["missing"] = found.missing;
  document["roofline"] = roofline_json(call_point(in, x, found).position);
  document["tier0"] = profile_json(*found.tier0.open());
  return document;
}

std::string profile_words_of(const examined_candidate& x, const candidate_profile& found,
                             bool colour) {
  auto result = fmt::format("{}  {}  at {}\n", x.what().id, cli::clean(x.device),
                            shape_text(x.what(), x.what().timed.scalars));
  if (!found.has_counters()) return result + tier0_text(*found.tier0.open());
  if (x.what().contract != contract_kind::device)
    result += "Host code of the candidate ran beside ncu and can write this report: advice only.\n";
  result += ncu_text(found.kernels, colour);
  for (const auto& line : found.missing) result += "missing: " + cli::clean(line) + "\n";
  return result;
}

// -- the command ----------------------------------------------------------------------------------

// There is no --backend here: ncu looks at NVIDIA's GPUs alone.
error without_other_backends(error why) {
  if (lacks_gpu(why))
    why.hint = "run it on a machine with an NVIDIA GPU, its driver and ncu; a run profiles what it "
               "judges on a CPU, and `kernelmill show RUN/g0.e0.t0` prints that";
  return why;
}

// As a turn's record has it: by counters, else by what the build and the machine tell.
Message<wire::ProfileResult> as_record(const invocation& in, const examined_candidate& x,
                                       const candidate_profile& found) {
  if (!found.has_counters()) return found.tier0;
  std::vector<kernel_metrics> kernels;
  for (const auto& one : found.kernels) kernels.push_back(one.kernel.metrics);
  return profile_result({}, kernels, found.missing, found.counted->run.seconds,
                        call_point(in, x, found).position);
}

expected<int> profile_candidate(const invocation& in) {
  if (in.has("--on")) return on_host(in, profile_row());
  auto bundle = left_bundle::begin(in, "profile");
  KM_TRY(bundle);
  auto x = prepare_examined(in, is_hip_name(in.value("FILE")) ? "hip" : "cuda");
  if (!x) return tl::unexpected<error>{without_other_backends(x.error())};
  if (!x->artifact) return say_not_compiled(in, *x, *bundle);
  candidate_profile found;
  auto peaks = peaks_of(x->gpu);
  found.roof = {peaks.flops_per_second, peaks.memory_bytes_per_second};
  found.tier0 = tier0_of(*x, peaks);
  if (auto ncu = toolkit_program("ncu"); !ncu.empty()) KM_TRY(count(in, ncu, *x, found));
  auto points = points_of(in, *x, found);
  if (auto path = in.value("--svg"); !path.empty())
    KM_TRY(write_picture(path, x->what().id + " on " + x->device, points));
  auto document = profile_document(in, *x, found);
  if (in.json)
    cli::print_json(document);
  else
    cli::print(profile_words_of(*x, found, in.colour_out) +
               (found.has_counters() ? roofline_text(points) : std::string{}));
  if (found.counted && !found.counted->run.report.empty())
    bundle->reports.push_back({"ncu", "report.csv", found.counted->run.report});
  KM_TRY(leave_examined(*x, std::move(document), *bundle, as_record(in, *x, found)));
  if (found.problem == "none") return cli::exit_ok;
  cli::talk(fmt::format("no counters ({}): {}\nnext: {}", found.problem, found.words, found.next));
  return cli::exit_quality;
}

} // namespace

cli::command profile_row() {
  return {
      "profile",
      "Runs ncu around one kernel in the sandbox, and says what limits it.",
      "kernelmill profile kernel.cu --task native/row_sum\n"
      "kernelmill profile kernel.cu --task native/row_sum --pack full --json\n"
      "kernelmill profile answer.py --task torch/row_softmax --kernel softmax",
      "The kernels run at the timed shape, on fresh contents. The GPU's clocks are left alone. "
      "Leave the GPU to it: what is\n"
      "timed there meanwhile is slower. Of the contract `device` the process has no host code "
      "of the candidate, so that the\n"
      "report is ncu's own word; of a library or a module it is the candidate's: advice only. "
      "Without counters it shows\n"
      "what the build and the machine tell. Exit code 5: there are no counters; stderr says "
      "why.",
      {examined_file()},
      {examined_task(),
       {"--pack",
        "NAME",
        "`quick`: which limit of the machine is near; `full`: all that rules read.",
        "quick",
        false,
        {"quick", "full"},
        nothing},
       {"--kernel", "REGEX", "Kernels to profile, by name. Default: all.", "", false, {}, nothing},
       {"--svg",
        "FILE",
        "Writes the roofline with the call and its kernels as a picture.",
        "",
        false,
        {},
        completes::file},
       bundle_option(),
       tasks_root(),
       on_option(),
       python_path()},
      profile_candidate};
}

} // namespace kernelmill::commands
