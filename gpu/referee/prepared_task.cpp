#include "gpu/referee/prepared_task.hpp"

#include <algorithm>

#include <dlfcn.h>

namespace kernelmill {

expected<std::unique_ptr<prepared_task>> prepared_task::prepare(task x, trusted_builder& builder) {
  std::unique_ptr<prepared_task> result{new prepared_task{std::move(x)}};
  const auto& folder = result->task_.directory;
  auto reference = builder.build(folder + "/reference.cpp");
  if (!reference) return tl::unexpected<error>{reference.error()};
  auto baseline = builder.build(folder + "/baseline.cpp");
  if (!baseline) return tl::unexpected<error>{baseline.error()};
  result->baseline_path_ = *baseline;
  result->library_ = ::dlopen(reference->c_str(), RTLD_NOW | RTLD_LOCAL);
  if (result->library_ == nullptr)
    return configuration_error("bad_reference",
                               "failed to load " + folder + "/reference.cpp: " + ::dlerror());
  result->reference_ = ::dlsym(result->library_, "reference");
  if (result->reference_ == nullptr)
    return configuration_error("bad_reference",
                               "failed to load " + folder +
                                   "/reference.cpp: it does not define reference",
                               "define it as extern \"C\" void reference(...)");
  return result;
}

prepared_task::~prepared_task() {
  if (library_ != nullptr) ::dlclose(library_);
}

expected<prepared_task*> prepared_tasks::get(const std::string& directory,
                                             const std::string& digest) {
  auto found = std::find_if(tasks_.begin(), tasks_.end(), [&](const auto& x) {
    return !digest.empty() && x->spec().digest == digest && x->spec().directory == directory;
  });
  if (found == tasks_.end()) {
    auto loaded = load_task_folder(directory);
    if (!loaded) return tl::unexpected<error>{loaded.error()};
    if (!digest.empty() && loaded->digest != digest)
      return configuration_error("task_changed",
                                 "failed to use task " + loaded->id +
                                     ": its files have changed since the run began",
                                 "start a new run, or restore the task's files");
    found = std::find_if(tasks_.begin(), tasks_.end(), [&](const auto& x) {
      return x->spec().digest == loaded->digest && x->spec().directory == loaded->directory;
    });
    if (found == tasks_.end()) {
      auto prepared = prepared_task::prepare(std::move(*loaded), builder_);
      if (!prepared) return tl::unexpected<error>{prepared.error()};
      tasks_.push_front(std::move(*prepared));
      found = tasks_.begin();
    }
  }
  tasks_.splice(tasks_.begin(), tasks_, found);
  if (tasks_.size() > limit_) tasks_.pop_back();
  return tasks_.front().get();
}

} // namespace kernelmill
