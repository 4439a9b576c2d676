#include "gpu/toolchain/torch_recorder.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <optional>

#include <sys/stat.h>

#include "gpu/task/task.hpp"
#include "gpu/toolchain/build_attribution.hpp"
#include "gpu/toolchain/build_cache.hpp"
#include "gpu/toolchain/warm_recorder.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/files.hpp"
#include "messages/folder_file.hpp"

namespace kernelmill {

namespace {

constexpr const char* init_path = "/build/init.pt";
constexpr const char* shown_name = "<candidate>";

// torch with CUDA maps some 10 GB of libraries; what it really uses the cgroup limits.
constexpr uint64_t address_space = uint64_t{64} << 30;
constexpr uint64_t memory = uint64_t{8} << 30;
constexpr uint64_t most_init = uint64_t{16} << 20;
constexpr uint64_t processes = 256;
constexpr int init_deadline_ms = 120'000;

compiler_job python_job(const python_facts& python, const char* program) {
  compiler_job job;
  job.argv = {python.executable, "-I", "-B",
              std::string{python_package_mount} + "/kernelmill_torch/" + program};
  job.environment = python_environment();
  job.mounts = python_mounts(python);
  job.memory_bytes = memory;
  job.address_space = address_space;
  job.process_count = processes;
  return job;
}

std::string end_of(const compiler_outcome& x) {
  if (x.timed_out) return "was ended by its deadline";
  if (x.status.signal != 0) return "ended with signal " + std::to_string(x.status.signal);
  return "ended with exit code " + std::to_string(x.status.code);
}

// How a process of ours ended, with its last line, which says why.
std::string last_words(const compiler_outcome& x) {
  auto text = clean_log(x.text, most_log);
  while (text.ends_with('\n')) text.pop_back();
  auto line = text.substr(text.rfind('\n') + 1).substr(0, 500);
  return end_of(x) + (line.empty() ? "" : "; its last line: " + line);
}

/// What a problem gives to ModelNew.
struct init_arguments {
  std::string bytes; ///< of torch.save; empty: there are none, and ModelNew is not constructed here
  std::string problem; ///< why there are none
};

// They are kept in the cache.
init_arguments find_arguments(sandbox& walls, const python_facts& python,
                              const recorder_options& options, const std::string& task_directory) {
  if (task_directory.empty()) return {{}, "no task is named (--task)"};
  auto problem = read_in_folder(task_directory, "problem.py");
  if (!problem) return {{}, problem.error().message};
  auto variants = shown_variants(task_directory);
  auto key = sha256_hex("init-5\n" + python.torch + '\n' + variants + '\n' + *problem);
  auto folder = options.cache_directory + "/" + key.substr(0, 2);
  auto place = folder + "/" + key + ".init";
  // Behind its digest: a damaged one would be taken for an error of each answer.
  constexpr size_t digest_size = 64;
  if (auto known = read_whole(place); known && known->size() > digest_size)
    if (auto bytes = known->substr(digest_size); known->starts_with(sha256_hex(bytes)))
      return {std::move(bytes), {}};
  auto job = python_job(python, "init_inputs.py");
  job.argv.insert(job.argv.end(), {"/build/problem.py", product_path});
  if (!variants.empty()) job.argv.push_back(variants);
  job.source_name = "problem.py";
  job.source = *problem;
  job.deadline_ms = init_deadline_ms;
  job.product_bytes = most_init;
  auto outcome = run_compiler(walls, job);
  if (!outcome) return {{}, outcome.error().message};
  auto bytes = read_whole(outcome->product.get()).value_or("");
  if (outcome->status.code != 0 || bytes.empty())
    return {{}, "init_inputs.py " + last_words(*outcome)};
  ::mkdir(folder.c_str(), 0700);
  [[maybe_unused]] auto kept = write_atomically(place, sha256_hex(bytes) + bytes, 0444);
  return {std::move(bytes), {}};
}

// "sm_90" is "9.0", "sm_120a" is "12.0".
std::string capability_of(const std::string& architecture) {
  std::string digits;
  for (char c : architecture)
    if (c >= '0' && c <= '9') digits += c;
  if (digits.size() < 2) return "9.0";
  return digits.substr(0, digits.size() - 1) + "." + digits.back();
}

// Two lines of it say enough in a message; the log has it all.
std::string short_of(const std::string& text) {
  auto end = text.find('\n');
  end = std::min(end == text.npos ? text.size() : end, size_t{500});
  return clean_log(text.substr(0, end), 1000);
}

void add_problem(const python_problem& x, build_findings& out) {
  bool syntax = x.line > 0 &&
                (x.type == "SyntaxError" || x.type == "IndentationError" || x.type == "TabError");
  auto where =
      x.line > 0 ? std::string{shown_name} + ":" + std::to_string(x.line) + ": " : std::string{};
  auto what = short_of(x.type) + (x.message.empty() ? "" : ": " + short_of(x.message));
  out.fault = candidate_fault(
      syntax ? "compile_error" : "import_error",
      (syntax ? "failed to compile the candidate: " : "failed to import the candidate: ") + where +
          what,
      syntax ? "correct the line that is named" : "see the traceback in the log");
  out.diagnostics.push_back({shown_name, x.line, 0, "error", what});
  out.log += clean_log(x.traceback, most_log);
}

// The recorder ended and said nothing of the import.
error fault_of_silence(const compiler_outcome& x, int deadline_ms) {
  auto fail = [](const char* category, const std::string& how, const char* hint) {
    return candidate_fault(category, "failed to import the candidate: " + how, hint);
  };
  if (x.timed_out || x.status.signal == SIGXCPU)
    return fail("compile_timeout",
                "the import was not finished after " + seconds_text(deadline_ms / 1000.0),
                "do at import only what defines the model; work belongs into forward");
  if (x.out_of_memory)
    return fail("compile_memory", "the import needs more memory than there is", "use less memory");
  if (x.flooded) return fail("import_error", "the module prints more than 16 MiB", "print less");
  auto how = x.status.signal != 0 ? "with signal " + std::to_string(x.status.signal)
                                  : "with exit code " + std::to_string(x.status.code);
  return fail("import_error", "the module ended the process " + how,
              "a module must not end the process that imports it");
}

error broken_python(const compiler_outcome& x) {
  return {fault_class::infrastructure, "python_failed",
          "failed to start Python in the sandbox: " +
              (x.timed_out ? std::string{"it was not ready in time"}
                           : short_of(x.text.substr(x.text.rfind('\n', x.text.size() - 2) + 1))),
          "`kernelmill doctor` looks at the interpreter"};
}

expected<compiler_outcome> record_warm(const recorder_options& options, const std::string& source,
                                       const std::string& entry, int init, int deadline_ms) {
  if (options.warm == nullptr) return infrastructure_error("python_failed", "no warm process");
  auto file = memory_file(source);
  KM_TRY(file);
  return options.warm->run({options.backend, capability_of(options.architecture), file->get(), init,
                            deadline_ms, entry});
}

// Why Triton's kernels were not compiled ahead, where the recorder itself does not say.
std::string why_not_ahead(const init_arguments& init, const compiler_outcome& outcome) {
  if (init.bytes.empty()) return "the inputs of the problem are not known: " + init.problem;
  return "the recorder " + last_words(outcome);
}

struct recording_try {
  recorded result;
  bool silent = false;                    // it ran, and its report says nothing
  std::optional<build_evidence> evidence; // of an import that failed
};

// An import that ended all at once, or raised what a machine makes it raise. One whose time is over
// may have had no core.
build_evidence evidence_of_end(const compiler_outcome& x) {
  bool limited = x.flooded || x.out_of_memory || x.status.signal == SIGXCPU;
  return limited ? build_evidence::source : build_evidence::unclear;
}

build_evidence evidence_of_problem(const python_problem& x) {
  bool lacks = x.type == "MemoryError" || x.type == "BlockingIOError" ||
               speaks_of_machine(x.type + ": " + x.message);
  return lacks ? build_evidence::unclear : build_evidence::source;
}

error missing_model(const torch_entry& entry) {
  if (!entry.is_asked())
    return candidate_fault("missing_model", "failed to find the class ModelNew in the candidate",
                           "define class ModelNew(nn.Module) at the module's top level");
  return candidate_fault("missing_model",
                         "failed to find the function " + entry.function +
                             ", or a class ModelNew, in the candidate",
                         "define " + entry.function + " at the module's top level");
}

recording_try record_once(sandbox& walls, const python_facts& python,
                          const recorder_options& options, const std::string& source,
                          const std::string& task_directory, int deadline_ms) {
  recording_try all;
  auto& result = all.result;
  auto& found = result.findings;
  auto init = find_arguments(walls, python, options, task_directory);
  bool has_init = !init.bytes.empty();
  auto entry = entry_of(task_directory);
  auto job = python_job(python, "record.py");
  job.argv.insert(job.argv.end(),
                  {"/build/candidate.py", product_path, options.backend,
                   capability_of(options.architecture), has_init ? init_path : "-", entry.text()});
  job.source_name = "candidate.py";
  job.source = source;
  job.deadline_ms = deadline_ms;
  job.cpu_seconds = static_cast<uint64_t>(std::max(1, deadline_ms / 1000));
  descriptor init_file;
  if (has_init) {
    auto file = memory_file(init.bytes);
    if (!file) {
      found.fault = file.error();
      return all;
    }
    init_file = std::move(*file);
    job.files.push_back({init_file.get(), init_path});
  }
  auto outcome = record_warm(options, source, entry.text(), init_file.get(), deadline_ms);
  if (!outcome) outcome = run_compiler(walls, job);
  if (!outcome) {
    found.fault = outcome.error();
    return all;
  }
  found.seconds = outcome->seconds;
  auto report = parse_recording(read_whole(outcome->product.get()).value_or(""));
  if (!report) {
    found.fault = report.error();
    return all;
  }
  result.report = std::move(*report);
  auto& said = result.report;
  if (said.stage.empty()) {
    found.fault = broken_python(*outcome);
    all.silent = true;
    all.evidence = build_evidence::unclear;
  } else if (said.stage == "ready") {
    found.fault = fault_of_silence(*outcome, deadline_ms);
    found.repeatable = outcome->repeatable();
    all.evidence = evidence_of_end(*outcome);
    found.log = clean_log(outcome->text, most_log);
  } else if (said.problem) {
    add_problem(*said.problem, found);
    all.evidence = evidence_of_problem(*said.problem);
  } else if (said.has_model_new) {
    if (said.stage != "compiled" && said.triton_problem.empty() && options.backend == "cuda" &&
        source.find("triton") != source.npos)
      said.triton_problem = why_not_ahead(init, *outcome);
    if (!said.triton_problem.empty())
      found.log +=
          "Triton kernels are compiled in the slot, because ahead of it not all could be:\n" +
          clean_log(said.triton_problem, most_log);
  } else {
    found.fault = missing_model(entry);
  }
  return all;
}

} // namespace

torch_entry entry_of(const std::string& task_directory) {
  auto spec = load_task_folder(task_directory);
  return spec ? (*spec)->torch.entry : torch_entry{};
}

std::string shown_variants(const std::string& task_directory) {
  auto spec = load_task_folder(task_directory);
  return spec ? visible_constants((*spec)->torch) : std::string{};
}

// The report lies where the module can reach it, so an empty one is no proof that Python did not
// start, and a module that ends its process looks like one that was ended: a module of ours,
// recorded at once afterwards, says whether the machine does.
recorded record_candidate(sandbox& walls, const python_facts& python,
                          const recorder_options& options, const std::string& source,
                          const std::string& task_directory, int deadline_ms) {
  auto record = [&](const std::string& what, const std::string& task) {
    return record_once(walls, python, options, what, task, deadline_ms);
  };
  recording_try latest;
  auto control = [&]() -> expected<void> {
    auto ours = record("import torch\nclass ModelNew: pass\n", {});
    const auto& fault = ours.result.findings.fault;
    if (fault.cls == fault_class::none) return {};
    if (fault.cls != fault_class::candidate) return tl::unexpected<error>{fault};
    return infrastructure_error("python_failed",
                                "failed to import a module of ours, too: " + fault.message,
                                "`kernelmill doctor` looks at the interpreter");
  };
  auto whose = attribute({[&] {
                            latest = record(source, task_directory);
                            return latest.evidence;
                          },
                          control});
  auto& fault = latest.result.findings.fault;
  if (!whose)
    fault = whose.error();
  else if (latest.silent)
    fault =
        candidate_fault("import_error", "failed to import the candidate: nothing came of it, twice",
                        "a module must leave alone what it did not open");
  return std::move(latest.result);
}

} // namespace kernelmill
