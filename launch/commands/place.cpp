#include "launch/commands/place.hpp"

namespace kernelmill::commands {

expected<place> locate(const std::string& what, const std::string& root) {
  place result;
  auto slash = what.find_last_of('/');
  auto name = slash == std::string::npos ? std::nullopt : parse_name(what.substr(slash + 1));
  auto run = find_run(name ? what.substr(0, slash) : what, root);
  KM_TRY(run);
  result.run = *run;
  result.whole_run = !name;
  if (name) result.name = *name;
  return result;
}

} // namespace kernelmill::commands
