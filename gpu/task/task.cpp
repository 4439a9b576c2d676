#include "gpu/task/task.hpp"

#include <algorithm>

namespace kernelmill {

namespace {

std::string parameter(const argument& x) {
  std::string type = x.type == dtype::f32 ? "float" : "int";
  if (x.role == argument_role::scalar) return type + " " + x.name;
  if (x.role == argument_role::input) return "const " + type + "* " + x.name;
  return type + "* " + x.name;
}

} // namespace

std::string task::declaration() const {
  std::string text = "extern \"C\" void " + function + "(";
  for (size_t i = 0; i < arguments.size(); ++i)
    text += (i > 0 ? ", " : "") + parameter(arguments[i]);
  return text + ")";
}

expected<void> choose_backend(task& x, const std::string& backend) {
  if (std::find(x.backends.begin(), x.backends.end(), backend) == x.backends.end())
    return configuration_error("unsupported_backend",
                               "failed to use task " + x.id + " on backend " + backend +
                                   ": its task.json does not name it in backends",
                               "`kernelmill task show " + x.id + "` lists its backends");
  if (backend == x.backend) return {};
  x.backend = backend;
  x.timed = x.timed_gpu;
  bool own = backend == "hip" && !x.starter_hip.empty();
  x.starter = own ? x.starter_hip : x.starter_gpu;
  return {};
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
