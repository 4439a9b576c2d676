#include "gpu/referee/device/slots.hpp"

#include <cstring>

#include <fmt/format.h>

#include "gpu/task/device_artifact.hpp"

namespace kernelmill {

// -- of any kind ------------------------------------------------------------------------------

expected<std::unique_ptr<slot>> device_slot::create(candidate_process process, const task& x,
                                                    int library, device_arena& arena) {
  std::unique_ptr<device_slot> result{new device_slot{std::move(process), x, arena}};
  KM_TRY(result->attach(arena.parameters(), library, x.function));
  return result;
}

std::optional<std::string> device_slot::damage() const {
  arena_.gpu().begin_audit();
  arena_.check_guards();
  auto found = arena_.gpu().end_audit();
  if (found.damaged_guards == 0) return std::nullopt;
  return std::to_string(found.damaged_guards) + " bytes beside an output were written";
}

void device_slot::place(const workload& work, bool) {
  auto& gpu = arena_.gpu();
  arena_.select(work.selected(), 1);
  arena_.poison_outputs(0, 1);
  for (size_t i = 0; i < spec().arguments.size(); ++i) {
    const auto& arg = spec().arguments[i];
    if (arg.role == argument_role::scalar || !is_filled(arg)) continue;
    const auto& t = work.tensor(i);
    const void* from =
        arg.type == dtype::f32 ? static_cast<const void*>(t.f32.data()) : t.i32.data();
    gpu.check("deliver an input",
              gpu.cuda().copy_to_device(arena_.address(i, 0), from, work.bytes(i)));
  }
  gpu.synchronize();
}

void device_slot::copy_out(size_t argument, taken_output& into, uint64_t) const {
  const auto& gpu = arena_.gpu();
  gpu.check("take an output",
            gpu.cuda().copy_to_host(bytes_of(into, spec().arguments[argument].type),
                                    arena_.address(argument, 0), arena_.count(argument) * 4));
}

// -- device code ------------------------------------------------------------------------------

namespace {

constexpr unsigned queue_places = 480;

} // namespace

expected<std::unique_ptr<program_slot>> program_slot::create(candidate_process process,
                                                             const task& x, device_arena& arena) {
  auto file = shared_page::create(program_file_bytes);
  KM_TRY(file);
  std::unique_ptr<program_slot> result{
      new program_slot{std::move(process), x, arena, std::move(*file)}};
  KM_TRY(result->attach(arena.parameters(), result->file_.descriptor(), {}));
  return result;
}

std::optional<error> program_slot::load_program(const std::string& artifact, int deadline_ms) {
  forget();
  auto parts = unpack_device_artifact(artifact);
  if (!parts || parts->cubin.size() > program_file_bytes - program_cubin_at)
    return error{fault_class::candidate,
                 "load_failed",
                 "failed to load the device code: it is larger than 31 MiB or damaged",
                 {}};
  auto plan = program_plan::read(parts->source, spec());
  if (!plan) return plan.error();
  plan_ = std::move(*plan);
  std::memset(&shared(), 0, sizeof shared());
  if (auto fault = plan_.write(shared())) return fault;
  std::memcpy(static_cast<char*>(file_.data()) + program_cubin_at, parts->cubin.data(),
              parts->cubin.size());
  uses_heap_ = parts->cubin.find("malloc") != std::string::npos; // a symbol that it wants
  return load(deadline_ms);
}

std::optional<error> program_slot::select(const scalar_values& scalars) {
  return plan_.select(scalars, shared());
}

unsigned program_slot::most_queued() const noexcept {
  auto launches = static_cast<unsigned>(std::max<size_t>(plan_.launches().size(), 1));
  return queue_places / launches;
}

} // namespace kernelmill
