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

// What a plan may hold, the shared file has room for; and both count the kinds of arguments alike.
static_assert(most_launches <= program_launches && most_scratch_buffers <= program_scratch);
static_assert(most_launch_arguments <= max_arguments);
static_assert(longest_kernel_name < sizeof(program_launch::kernel));
static_assert(int(bound_argument::kind::tensor) == int(program_argument_kind::tensor) &&
              int(bound_argument::kind::scratch) == int(program_argument_kind::scratch) &&
              int(bound_argument::kind::value) == int(program_argument_kind::value));

constexpr unsigned queue_places = 480;
constexpr int64_t most_threads = 1024;      // of a block, on every card
constexpr int64_t most_blocks = 2147483647; // along x; the driver knows the other limits

error bad_launch(unsigned line, const std::string& cause) {
  return {fault_class::candidate, "bad_launch", "line " + std::to_string(line) + ": " + cause,
          "grid, block and shared memory must be possible at every shape"};
}

bool dimensions(const std::array<expression, 3>& from, const scalar_values& scalars,
                int64_t (&into)[3]) {
  for (size_t i = 0; i < 3; ++i) {
    auto value = from[i].evaluate(scalars);
    if (!value || *value < 1 || *value > most_blocks) return false;
    into[i] = *value;
  }
  return true;
}

// The geometry of one launch at a shape, or what is wrong with it.
std::string evaluate(const launch_line& x, const scalar_values& scalars, program_launch& into) {
  int64_t grid[3];
  int64_t block[3];
  auto at = " at " + shape_text(scalars);
  if (!dimensions(x.grid, scalars, grid)) return "the grid of " + x.kernel + " is no grid" + at;
  if (!dimensions(x.block, scalars, block) || block[0] > most_threads || block[1] > most_threads ||
      block[0] * block[1] > most_threads || block[2] > most_threads / (block[0] * block[1]))
    return "the block of " + x.kernel + " has no or more than 1024 threads" + at;
  auto shared = x.shared.evaluate(scalars);
  if (!shared || *shared < 0 || *shared > (int64_t{1} << 20))
    return "the shared memory of " + x.kernel + " is impossible" + at;
  for (int i = 0; i < 3; ++i) {
    into.grid[i] = static_cast<uint32_t>(grid[i]);
    into.block[i] = static_cast<uint32_t>(block[i]);
  }
  into.shared = static_cast<uint32_t>(*shared);
  return {};
}

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
  auto plan = parse_launch_plan(parts->source);
  if (!plan) return plan.error();
  auto bound = bind_arguments(*plan, spec());
  if (!bound) return bound.error();
  plan_ = std::move(*plan);
  bound_ = std::move(*bound);
  auto& into = shared();
  std::memset(&into, 0, sizeof into);
  into.launches = static_cast<uint32_t>(plan_.launches.size());
  for (size_t i = 0; i < plan_.launches.size(); ++i) {
    auto& launch = into.plan[i];
    plan_.launches[i].kernel.copy(launch.kernel, sizeof launch.kernel - 1);
    launch.arguments = static_cast<uint32_t>(bound_[i].size());
    for (size_t k = 0; k < bound_[i].size(); ++k) {
      launch.list[k].kind = static_cast<program_argument_kind>(bound_[i][k].what);
      launch.list[k].index = static_cast<uint32_t>(bound_[i][k].index);
    }
  }
  if (auto fault = take_scratch()) return fault;
  std::memcpy(static_cast<char*>(file_.data()) + program_cubin_at, parts->cubin.data(),
              parts->cubin.size());
  uses_heap_ = parts->cubin.find("malloc") != std::string::npos; // a symbol that it wants
  return load(deadline_ms);
}

// As much as the largest shape wants, so that it is taken once.
std::optional<error> program_slot::take_scratch() {
  auto& into = shared();
  int64_t all = 0;
  into.scratch_buffers = static_cast<uint32_t>(plan_.scratch.size());
  for (size_t i = 0; i < plan_.scratch.size(); ++i) {
    const auto& x = plan_.scratch[i];
    int64_t most = 0;
    auto look = [&](const task_case& which) {
      auto bytes = x.bytes.evaluate(which.scalars);
      most = bytes && *bytes >= 0 && most >= 0 ? std::max(most, *bytes) : -1;
    };
    for (const auto& which : spec().cases) look(which);
    look(spec().timed);
    if (most < 0 || most > most_scratch_bytes - all)
      return bad_launch(x.line, "the bytes of scratch " + x.name +
                                    " are no number, negative, or more than 256 MiB with the "
                                    "other buffers");
    all += most;
    into.scratch_bytes[i] = static_cast<uint64_t>(most);
  }
  return std::nullopt;
}

std::optional<error> program_slot::select(const scalar_values& scalars) {
  auto& into = shared();
  for (size_t i = 0; i < plan_.launches.size(); ++i) {
    const auto& line = plan_.launches[i];
    if (auto cause = evaluate(line, scalars, into.plan[i]); !cause.empty())
      return bad_launch(line.line, cause);
    for (size_t k = 0; k < bound_[i].size(); ++k) {
      const auto& from = bound_[i][k];
      if (from.what != bound_argument::kind::value) continue;
      auto value = from.value.evaluate(scalars);
      if (!value)
        return bad_launch(line.line, "argument \"" + from.value.text() + "\" has no value at " +
                                         shape_text(scalars));
      into.plan[i].list[k].value = *value;
    }
  }
  return std::nullopt;
}

unsigned program_slot::most_queued() const noexcept {
  auto launches = static_cast<unsigned>(std::max<size_t>(plan_.launches.size(), 1));
  return std::min(queue_places / launches, static_cast<unsigned>(program_calls));
}

bool program_slot::queue(const std::vector<std::vector<int64_t>>& calls, int deadline_ms) {
  auto& into = shared();
  into.calls = static_cast<uint32_t>(calls.size());
  for (size_t i = 0; i < calls.size(); ++i)
    std::copy(calls[i].begin(), calls[i].end(), into.offsets[i]);
  return process().run(candidate_command::queue, {}, deadline_ms).has_value();
}

} // namespace kernelmill
