#include "launch/commands/options.hpp"

#include <utility>

#include "messages/torch_words.hpp"

namespace kernelmill::commands {

using cli::argument_spec;
using cli::option_spec;

cli::command without_tables(cli::command row) {
  row.columns.emplace();
  return row;
}

option_spec flag(const char* name, const char* doc) {
  return {name, "", doc, "", false, {}, nothing};
}

argument_spec config_words() {
  return {"CONFIG",
          "Configuration file, preset, or override: a.b=value, a.b+=value of a list, a.b=@FILE, "
          "~a.b.",
          true,
          true,
          completes::config,
          {}};
}

option_spec runs_root() {
  return {"--root", "DIR", "Folder that holds the runs.", "runs", false, {}, completes::directory};
}

option_spec tasks_root() {
  return {"--root",
          "DIR",
          "Folder that holds the tasks. Default: the installation's tasks and the imported ones.",
          "",
          false,
          {},
          completes::directory};
}

option_spec log_file() {
  return {
      "--log-file", "FILE",         "Also logs to FILE. Four files of 16 MiB are kept.", "", false,
      {},           completes::file};
}

option_spec clock_option() {
  return {"--clock",
          "NAME",
          "Time that the reward uses: `device` is the GPU's work, `call` includes launches.",
          "device",
          false,
          {"device", "call"},
          nothing};
}

option_spec bundle_option() {
  return {"--bundle",
          "DIR",
          "Also leaves all that was found out as a folder of files, which must be new or empty.",
          "",
          false,
          {},
          completes::directory};
}

option_spec python_path() {
  return {"--python",
          "PATH",
          "Python interpreter with torch, for tasks of the contract torch. Default: "
          "$KERNELMILL_PYTHON, then python3.",
          "",
          false,
          {},
          completes::file};
}

std::vector<option_spec> with_torch_options(std::vector<option_spec> options) {
  const option_spec torch[] = {
      python_path(),
      {"--torch-mode",
       "MODE",
       "`honest`; `suite` for the tolerance of the task's own suite; `kernelbench` for "
       "KernelBench's "
       "own tolerances and trial counts.",
       "honest",
       false,
       {"honest", "suite", "kernelbench"},
       nothing},
      {"--language", "NAME", "Language that the kernels of a Python candidate must use.", "any",
       false, answer_languages(), nothing},
      {"--float32",
       "NAME",
       "Arithmetic that a Python candidate may use for float32.",
       "ieee",
       false,
       {"ieee", "tf32"},
       nothing},
      {"--baseline",
       "NAME|FILE",
       "What is speedup 1: `eager`, `compile`, `compile_max_autotune`, `best`, or a source file. "
       "See "
       "evaluation.baseline in the configuration.",
       "eager",
       false,
       {},
       completes::file},
      {"--best-kernels",
       "DIR",
       "Run directory, or a folder of them, for --baseline best.",
       "runs",
       false,
       {},
       completes::directory}};
  options.insert(options.end(), std::begin(torch), std::end(torch));
  return options;
}

torch_choice torch_choice_of(const cli::invocation& in) {
  return {in.value("--torch-mode"), in.value("--language"), in.value("--float32"),
          in.value("--baseline"), in.value("--best-kernels")};
}

option_spec credentials() {
  return {"--credentials",
          "DIR",
          "Credentials made by `cluster init`. Default: $KERNELMILL_CREDENTIALS, then its "
          "default directory.",
          "",
          false,
          {},
          completes::directory};
}

option_spec insecure() {
  return {"--insecure-loopback",
          "",
          "Disables TLS. Allowed on 127.0.0.1 and ::1 only.",
          "",
          false,
          {},
          nothing};
}

std::vector<option_spec> with_head_options(std::vector<option_spec> options) {
  options.push_back({"--head",
                     "ADDR:PORT",
                     "Address of the head. Default: $KERNELMILL_HEAD, then 127.0.0.1:7612.",
                     "",
                     false,
                     {},
                     nothing});
  options.push_back(credentials());
  options.push_back(insecure());
  return options;
}

const std::vector<std::string>& server_kinds() {
  static const std::vector<std::string> all{"openai", "vllm", "sglang", "llamacpp"};
  return all;
}

} // namespace kernelmill::commands
