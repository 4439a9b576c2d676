#include "gpu/referee/prepared_task.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include <dlfcn.h>
#include <fcntl.h>

#include "gpu/referee/candidate_pool.hpp"
#include "gpu/referee/device/slots.hpp"
#include "gpu/referee/device/truth.hpp"
#include "gpu/referee/measured_run.hpp"
#include "messages/base/descriptor.hpp"

namespace kernelmill {

prepared_task::prepared_task(task x) : task_(std::move(x)) {
  // nop
}

expected<reference_function> prepared_task::load(const std::string& path,
                                                 const std::string& source) {
  auto fail = [&](const std::string& cause, const std::string& hint) {
    return configuration_error("bad_reference", "failed to load " + source + ": " + cause, hint);
  };
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return fail(::dlerror(), "");
  libraries_.push_back(library);
  void* function = ::dlsym(library, "reference");
  if (function == nullptr)
    return fail("it does not define reference as task.json gives it",
                "define it as " + task_.reference_declaration());
  return function;
}

// A starter to be repaired may as well not compile.
expected<void> prepared_task::build_starter(trusted_builder& builder, bool gpu) {
  if (!has_starter(task_.verb) || task_.verb == "port") return {};
  auto built = gpu ? builder.build(device_file(task_, "starter"))
                   : builder.build(task_.directory + "/starter.cpp", task_.declaration());
  if (!built && built.error().category != "bad_reference") KM_TRY(built);
  if (built) starter_path_ = std::move(*built);
  return {};
}

expected<std::unique_ptr<prepared_task>> prepared_task::prepare(task x, trusted_builder& builder,
                                                                device* gpu) {
  std::unique_ptr<prepared_task> result{new prepared_task{std::move(x)}};
  const auto& folder = result->task_.directory;
  auto reference = builder.build(folder + "/reference.cpp", result->task_.reference_declaration());
  KM_TRY(reference);
  auto baseline = gpu != nullptr
                      ? builder.build(device_file(result->task_, "baseline"))
                      : builder.build(folder + "/baseline.cpp", result->task_.declaration());
  KM_TRY(baseline);
  result->baseline_path_ = *baseline;
  KM_TRY(result->build_starter(builder, gpu != nullptr));
  auto function = result->load(*reference, folder + "/reference.cpp");
  KM_TRY(function);
  result->reference_ = *function;
  if (gpu == nullptr) return result;
  auto source = device_file(result->task_, "reference");
  reference = builder.build(source);
  KM_TRY(reference);
  function = result->load(*reference, source);
  KM_TRY(function);
  result->gpu_ = gpu;
  result->device_reference_ = *function;
  return result;
}

expected<void> prepared_task::await(buffers& x) {
  if (x.gone.valid() && x.gone.wait_for(std::chrono::seconds{10}) != std::future_status::ready)
    return infrastructure_error("gpu_stuck",
                                "failed to end a candidate's process within 10 s: the GPU is stuck",
                                "`nvidia-smi` shows its state; the work is tried elsewhere");
  return {};
}

expected<void> prepared_task::await_gone() {
  for (auto& x : lanes_)
    if (auto ok = await(x); !ok) return ok;
  return {};
}

// Device code leaves nothing behind that could write later, so one set of buffers does.
expected<void> prepared_task::begin(bool device_code) {
  if (gpu_ == nullptr) return {};
  current_ = device_code ? 0 : 1 - current_;
  auto& x = lane();
  if (auto ok = await(x); !ok) return ok;
  if (x.arena != nullptr) return {};
  x.arena = std::make_unique<device_arena>(*gpu_, task_);
  if (truth_ != nullptr) return {};
  truth_ = std::make_unique<device_truth>(*gpu_, task_, device_reference_);
  make_baseline_arena();
  return {};
}

// Once for all: a baseline that shares its buffers has one process for each lane.
void prepared_task::make_baseline_arena() {
  auto room = gpu_->memory();
  auto bytes = lane().arena->bytes();
  if (room.free < 2 * bytes + room.total / 16) return; // the other lane's are to come
  baseline_arena_ = std::make_unique<device_arena>(*gpu_, task_);
}

std::optional<error> prepared_task::start_baseline(candidate_pool& pool) {
  auto& current = baseline();
  if (current && current->process().alive()) return std::nullopt;
  current.reset();
  const auto& path = named_baseline_.empty() ? baseline_path_ : named_baseline_;
  descriptor library{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!library)
    return error{fault_class::infrastructure,
                 "library_lost",
                 "failed to open " + path + ": " + std::strerror(errno),
                 {}};
  auto process = pool.take();
  if (!process) return process.error();
  auto made = gpu_ == nullptr ? make_host_slot(std::move(*process), task_, library.get())
                              : device_slot::create(std::move(*process), task_, library.get(),
                                                    baseline_arena());
  if (!made) return made.error();
  if (auto fault = (*made)->load(call_deadline_ms))
    return bad_baseline(task_, "does not load", *fault);
  current = std::move(*made);
  return std::nullopt;
}

expected<program_slot*> prepared_task::runner(candidate_pool& pool) {
  auto& x = lane();
  if (x.runner && x.runner->process().alive()) return x.runner.get();
  auto process = pool.take();
  KM_TRY(process);
  auto made = program_slot::create(std::move(*process), task_, *x.arena);
  KM_TRY(made);
  x.runner = std::move(*made);
  return x.runner.get();
}

void prepared_task::drop_runner(candidate_pool& pool) {
  if (lane().runner) release(pool.retire(std::move(lane().runner)));
}

prepared_task::~prepared_task() {
  for (auto& x : lanes_) {
    if (x.gone.valid()) x.gone.wait();
    x = {};
  }
  baseline_.reset();
  baseline_arena_.reset();
  truth_.reset();
  for (auto* x : libraries_) ::dlclose(x);
}

expected<std::unique_ptr<slot>> prepared_task::make_slot(candidate_process process, int library) {
  return gpu_ != nullptr ? device_slot::create(std::move(process), task_, library, *arena())
                         : make_host_slot(std::move(process), task_, library);
}

void prepared_tasks::make_room() {
  while (!tasks_.empty() && gpu_ != nullptr && gpu_->crowded()) tasks_.pop_back();
}

expected<prepared_task*> prepared_tasks::get(const std::string& directory,
                                             const std::string& digest,
                                             const std::string& baseline) {
  auto found = std::find_if(tasks_.begin(), tasks_.end(), [&](const auto& x) {
    return !digest.empty() && x->spec().digest == digest && x->spec().directory == directory &&
           x->named_baseline() == baseline;
  });
  if (found == tasks_.end()) {
    auto loaded = load_task_folder(directory);
    KM_TRY(loaded);
    const auto& spec = **loaded;
    // The other lanes end here: such a task has no signature, no cases and no reference.cpp.
    if (spec.contract == contract_kind::torch)
      return configuration_error("unsupported_contract",
                                 "failed to use task " + spec.id +
                                     " for libraries or device code: its contract is torch",
                                 "judge a Python answer, with --python PATH or evaluation.python");
    if (!digest.empty() && spec.digest != digest)
      return configuration_error("task_changed",
                                 "failed to use task " + spec.id +
                                     ": its files have changed since the run began",
                                 "start a new run, or restore the task's files");
    found = std::find_if(tasks_.begin(), tasks_.end(), [&](const auto& x) {
      return x->spec().digest == spec.digest && x->spec().directory == spec.directory &&
             x->named_baseline() == baseline;
    });
    if (found == tasks_.end()) {
      judging_terms terms;
      terms.backend = builder_.target().backend;
      auto here = on_terms(spec, std::move(terms));
      KM_TRY(here);
      while (tasks_.size() >= limit_) tasks_.pop_back();
      make_room();
      auto prepared = prepared_task::prepare(**here, builder_, gpu_);
      KM_TRY(prepared);
      (*prepared)->time_beside(baseline);
      tasks_.push_front(std::move(*prepared));
      found = tasks_.begin();
    }
  }
  tasks_.splice(tasks_.begin(), tasks_, found);
  return tasks_.front().get();
}

} // namespace kernelmill
