#include "launch/commands/options.hpp"

namespace kernelmill::commands {

using cli::argument_spec;
using cli::option_spec;

option_spec flag(const char* name, const char* doc) {
  return {name, "", doc, "", false, {}, nothing};
}

argument_spec config_words() {
  return {"CONFIG",
          "A configuration file or preset, or an override a.b=value, +a.b=value, ~a.b.",
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
          "Folder below which tasks are found; without it the installation's, and "
          "those that were imported.",
          "",
          false,
          {},
          completes::directory};
}

option_spec log_file() {
  return {"--log-file", "FILE",         "Logs there too; four files of 16 MiB are kept.", "", false,
          {},           completes::file};
}

option_spec clock_option() {
  return {"--clock",
          "NAME",
          "Which time is paid: of calls with their launches, or of the GPU's "
          "work alone.",
          "call",
          false,
          {"call", "device"},
          nothing};
}

option_spec python_path() {
  return {"--python",
          "PATH",
          "Interpreter that has torch, for tasks of the contract torch; "
          "without it $KERNELMILL_PYTHON, then python3.",
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
       "`honest`, or `kernelbench` for its own tolerances and trial counts.",
       "honest",
       false,
       {"honest", "kernelbench"},
       nothing},
      {"--language",
       "NAME",
       "What the kernels of an answer in Python must be written in.",
       "any",
       false,
       {"any", "cuda", "triton", "torch"},
       nothing},
      {"--float32",
       "NAME",
       "Arithmetic that an answer in Python may use for float32.",
       "ieee",
       false,
       {"ieee", "tf32"},
       nothing}};
  options.insert(options.end(), std::begin(torch), std::end(torch));
  return options;
}

option_spec credentials() {
  return {"--credentials",
          "DIR",
          "What `cluster init` made; without it $KERNELMILL_CREDENTIALS, then "
          "the default place.",
          "",
          false,
          {},
          completes::directory};
}

option_spec insecure() {
  return {
      "--insecure-loopback", "", "No TLS, for 127.0.0.1 and ::1 alone.", "", false, {}, nothing};
}

std::vector<option_spec> with_head_options(std::vector<option_spec> options) {
  options.push_back({"--head",
                     "ADDR:PORT",
                     "The head; without it $KERNELMILL_HEAD, then 127.0.0.1:7612.",
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
