#include "gpu/task/task.hpp"

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
