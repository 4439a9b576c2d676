#include "gpu/task/task.hpp"

#include <algorithm>
#include <filesystem>

#include "gpu/task/task_files.hpp"

namespace kernelmill {

namespace {

std::string parameter(const argument& x) {
  std::string type = x.type == dtype::f32 ? "float" : "int";
  if (x.role == argument_role::scalar) return type + " " + x.name;
  if (x.role == argument_role::input) return "const " + type + "* " + x.name;
  return type + "* " + x.name;
}

} // namespace

std::string task::parameters() const {
  std::string text;
  for (size_t i = 0; i < arguments.size(); ++i)
    text += (i > 0 ? ", " : "") + parameter(arguments[i]);
  return text;
}

std::string task::declaration() const {
  return "extern \"C\" void " + function + "(" + parameters() + ")";
}

std::string task::computation() const {
  if (contract == contract_kind::program) return prompt;
  return contract == contract_kind::torch ? torch.code : declaration();
}

std::string task::reference_declaration() const {
  std::string text;
  for (const auto& x : arguments) {
    std::string type = x.type == dtype::f32 && x.role != argument_role::scalar ? "double" : "int";
    if (x.role != argument_role::scalar) type += "*";
    if (x.role == argument_role::input) type = "const " + type;
    text += (text.empty() ? "" : ", ") + type + " " + x.name;
    bool judged = x.role == argument_role::output || x.role == argument_role::inout;
    if (judged && x.type == dtype::f32) text += ", " + type + " " + x.name + "_scale";
  }
  return "extern \"C\" void reference(" + text + ")";
}

const std::string& fill_of(const argument& input, const task_case& which) {
  auto found = which.fills.find(input.name);
  return found != which.fills.end() ? found->second : input.fill;
}

bool task::names(const std::string& wanted) const {
  return std::find(backends.begin(), backends.end(), wanted) != backends.end();
}

namespace {

expected<void> check_contract(const task& x, const judging_terms& terms) {
  if (terms.contract == contract_kind::program)
    return configuration_error("unsupported_contract",
                               "failed to use contract program for task " + x.id +
                                   ": it has no commands that build and test a program",
                               "use --contract native");
  if (terms.contract == contract_kind::torch)
    return configuration_error("unsupported_contract",
                               "failed to use contract torch for task " + x.id +
                                   ": it has no problem in Python",
                               "use --contract native; `kernelmill task import kernelbench` brings "
                               "tasks of the contract torch");
  if (terms.contract == contract_kind::device && terms.backend == "cpu")
    return configuration_error("unsupported_contract",
                               "failed to use contract device for task " + x.id +
                                   ": device code needs a GPU, and the backend is " + terms.backend,
                               "use --contract native, or a machine with a GPU");
  return {};
}

// A run's or a command's wish must not contradict what the task is about.
expected<void> use_language(const task& x, judging_terms& terms) {
  const auto& wanted = x.torch.language;
  if (wanted == "any") return {};
  if (terms.language != "any" && terms.language != wanted)
    return configuration_error("config_inconsistent",
                               "failed to use task " + x.id + " with answers in " + terms.language +
                                   ": its task.json asks for " + wanted,
                               "set evaluation.language (--language) to any, or to " + wanted);
  terms.language = wanted;
  return {};
}

expected<void> check_mode(const task& x, const judging_terms& terms) {
  if (terms.mode != "suite" || x.torch.tolerance) return {};
  return configuration_error(
      "config_inconsistent",
      "failed to use task " + x.id +
          " with evaluation.torch_mode=suite: its task.json has no tolerance",
      "set evaluation.torch_mode (--torch-mode) to honest, or give the task "
      "the tolerance of its suite");
}

} // namespace

expected<task_ptr> on_terms(const task& x, judging_terms terms) {
  if (!x.names(terms.backend))
    return configuration_error("unsupported_backend",
                               "failed to use task " + x.id + " on backend " + terms.backend +
                                   ": its task.json does not name it in backends",
                               "`kernelmill task show " + x.id + "` lists its backends");
  auto result = std::make_shared<task>(x);
  result->terms = std::move(terms);
  const auto& asked = result->terms;
  if (x.contract == contract_kind::torch) {
    KM_TRY(use_language(x, result->terms));
    KM_TRY(check_mode(x, result->terms));
    result->starter = x.starter_python;
    return task_ptr{std::move(result)};
  }
  if (x.contract == contract_kind::program) {
    result->starter = starter_of(x.program);
    return task_ptr{std::move(result)};
  }
  KM_TRY(check_contract(x, asked));
  bool gpu = asked.backend != "cpu";
  result->contract = asked.contract;
  result->timed = gpu ? x.timed_gpu : x.timed_cpu;
  result->starter = gpu ? x.starter_gpu : x.starter_cpu;
  if (asked.backend == "hip" && !x.starter_hip.empty()) result->starter = x.starter_hip;
  if (x.verb == "port") result->starter = starter_to_port(x);
  return task_ptr{std::move(result)};
}

std::string device_file(const task& x, const std::string& stem) {
  std::error_code problem;
  auto path = x.directory + "/" + stem;
  bool own = x.terms.backend == "hip" && std::filesystem::exists(path + ".hip", problem);
  return path + (own ? ".hip" : ".cu");
}

std::string shape_text(const scalar_values& scalars) {
  std::string text;
  for (const auto& [name, value] : scalars)
    text += (text.empty() ? "" : " ") + name + "=" + std::to_string(value);
  return text;
}

std::string shape_text(const task& x, const scalar_values& scalars) {
  std::string text;
  for (const auto& arg : x.arguments) {
    auto found = scalars.find(arg.name);
    if (found != scalars.end())
      text += (text.empty() ? "" : " ") + arg.name + "=" + std::to_string(found->second);
  }
  return text;
}

} // namespace kernelmill
