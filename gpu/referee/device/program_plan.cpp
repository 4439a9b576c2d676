#include "gpu/referee/device/program_plan.hpp"

#include <algorithm>

namespace kernelmill {

namespace {

// What a plan may hold, the shared file has room for; and both count the kinds of arguments alike.
static_assert(most_launches <= program_launches && most_scratch_buffers <= program_scratch);
static_assert(most_launch_arguments <= max_arguments);
static_assert(longest_kernel_name < sizeof(program_launch::kernel));
static_assert(int(bound_argument::kind::tensor) == int(program_argument_kind::tensor) &&
              int(bound_argument::kind::scratch) == int(program_argument_kind::scratch) &&
              int(bound_argument::kind::value) == int(program_argument_kind::value));

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

expected<program_plan> program_plan::read(const std::string& source, const task& x) {
  program_plan result;
  result.task_ = &x;
  auto plan = parse_launch_plan(source);
  KM_TRY(plan);
  auto bound = bind_arguments(*plan, x);
  KM_TRY(bound);
  result.plan_ = std::move(*plan);
  result.bound_ = std::move(*bound);
  return result;
}

std::optional<error> program_plan::write(device_program& into) const {
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
  return write_scratch(into);
}

// As much as the largest shape wants, so that it is taken once.
std::optional<error> program_plan::write_scratch(device_program& into) const {
  int64_t all = 0;
  into.scratch_buffers = static_cast<uint32_t>(plan_.scratch.size());
  for (size_t i = 0; i < plan_.scratch.size(); ++i) {
    const auto& x = plan_.scratch[i];
    int64_t most = 0;
    auto look = [&](const task_case& which) {
      auto bytes = x.bytes.evaluate(which.scalars);
      most = bytes && *bytes >= 0 && most >= 0 ? std::max(most, *bytes) : -1;
    };
    for (const auto& which : task_->cases) look(which);
    look(task_->timed);
    if (most < 0 || most > most_scratch_bytes - all)
      return bad_launch(x.line, "the bytes of scratch " + x.name +
                                    " are no number, negative, or more than 256 MiB with the "
                                    "other buffers");
    all += most;
    into.scratch_bytes[i] = static_cast<uint64_t>(most);
  }
  return std::nullopt;
}

std::optional<error> program_plan::select(const scalar_values& scalars,
                                          device_program& into) const {
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

} // namespace kernelmill
