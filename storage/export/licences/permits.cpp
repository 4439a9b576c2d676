#include "storage/export/licences/permits.hpp"

#include <fnmatch.h>

namespace kernelmill::exports {

const permit& permits::of_example(const std::string& id) const {
  if (id.starts_with("card:")) return cards;
  auto found = examples.find(id);
  // "kernel:kernelbook/17" is of the source that its id begins with.
  if (found == examples.end()) found = examples.find(id.substr(0, id.find('/')) + "/*");
  return found == examples.end() ? kernels : found->second;
}

const permit* permits::of_model(const std::string& name, bool shared) const {
  const auto& named = shared ? shared_answers : answers;
  const permit* result = named ? &*named : nullptr;
  for (const auto& [glob, may] : models)
    if ((!result || result->allowed) && ::fnmatch(glob.c_str(), name.c_str(), FNM_CASEFOLD) == 0)
      result = &may;
  return result;
}

expected<void> check_all(const permits& x, const std::string& failed) {
  for (const auto& [task, may] : x.tasks)
    if (!may.allowed)
      return configuration_error("licence_forbids", failed + ": " + may.reason, may.hint);
  return {};
}

permit permit_of(const permits& x, const std::string& task) {
  auto found = x.tasks.find(task);
  if (found != x.tasks.end()) return found->second;
  permit result;
  result.reason = "the run's manifest does not list " + task;
  result.hint = "restore the run's manifest.json from a copy";
  return result;
}

} // namespace kernelmill::exports
