// Launch lines of a candidate's source, and the expressions in them.

#include "gpu/task/launch_plan.hpp"
#include "gpu/task/device_artifact.hpp"
#include "tests/fuzz/support.hpp"
#include "tests/fuzz/targets.hpp"

namespace kernelmill::fuzz {

namespace {

const kernelmill::task& row_sum() {
  static const auto loaded = load_task(KERNELMILL_FUZZ_TASKS, "native/row_sum");
  promise(loaded.has_value(), "the task of the seeds can be read");
  return *loaded;
}

const scalar_values& scalars() {
  static const scalar_values values{{"rows", 64}, {"cols", 256}};
  return values;
}

void check_plan(const kernelmill::launch_plan& plan) {
  promise(plan.launches.size() <= most_launches && plan.scratch.size() <= most_scratch_buffers,
          "a plan is within its limits");
  for (const auto& x : plan.scratch) check(x.bytes.evaluate(scalars()));
  for (const auto& x : plan.launches) {
    promise(x.kernel.size() <= longest_kernel_name && x.arguments.size() <= most_launch_arguments,
            "a launch is within its limits");
    for (const auto* sizes : {&x.grid, &x.block})
      for (const auto& size : *sizes) check(size.evaluate(scalars()));
    check(x.shared.evaluate(scalars()));
  }
  auto bound = bind_arguments(plan, row_sum());
  check(bound);
  if (bound) promise(bound->size() == plan.launches.size(), "each launch is bound");
}

} // namespace

void launch_plan(std::string_view bytes) {
  std::string text{bytes};
  auto plan = parse_launch_plan(text);
  check(plan);
  if (plan) check_plan(*plan);
  auto lines = lines_of(bytes, 1);
  auto one = expression::parse(lines.empty() ? "" : lines.front());
  check(one);
  if (one) check(one->evaluate(scalars()));
  auto artifact = unpack_device_artifact(text);
  if (artifact)
    promise(pack_device_artifact(*artifact).size() <= text.size(),
            "an artifact is what was packed");
}

} // namespace kernelmill::fuzz
