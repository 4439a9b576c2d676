#include "gpu/referee/device/truth.hpp"

#include <cmath>

#include <fmt/format.h>

namespace kernelmill {

namespace {

constexpr double unit_roundoff = 0x1p-24;
constexpr double truth_share = 0.01; // of what a candidate may err; fp64 is far better
constexpr double scale_share = 0.05; // scales may be found in another order
constexpr secret_seed known_seed{};  // agreement needs no secret

bool near(double a, double b, double bound) {
  return a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= bound;
}

} // namespace

device_truth::device_truth(device& gpu, const task& x, reference_function reference)
    : gpu_(gpu), task_(x), reference_(reference), inputs_(x.arguments.size()),
      outputs_(x.arguments.size()) {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const auto& arg = x.arguments[i];
    if (arg.role == argument_role::scalar) continue;
    size_t count = capacity_of(x, i) / 4;
    if (!is_output(arg)) {
      inputs_[i] = device_memory{gpu.cuda(), count * 4};
      continue;
    }
    outputs_[i].want = device_memory{gpu.cuda(), count * (arg.type == dtype::f32 ? 8 : 4)};
    if (arg.type == dtype::f32) outputs_[i].scale = device_memory{gpu.cuda(), count * 8};
  }
}

void device_truth::find(const task_case& which, const device_arena* inputs, unsigned set) {
  std::array<int64_t, max_reference_arguments> values{};
  size_t next = 0;
  const auto& arguments = task_.arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto& arg = arguments[i];
    if (arg.role == argument_role::scalar) {
      values[next++] = which.scalars.at(arg.name);
    } else if (is_output(arg)) {
      values[next++] = static_cast<int64_t>(outputs_[i].want.address());
      if (arg.type == dtype::f32)
        values[next++] = static_cast<int64_t>(outputs_[i].scale.address());
    } else {
      values[next++] = static_cast<int64_t>(inputs != nullptr ? inputs->address(i, set) : input(i));
    }
  }
  call_reference(reference_, values);
}

void device_truth::check(const task_case& which, const device_arena& arena, unsigned set,
                         reads what, double share_of_bounds) {
  find(which, what == reads::set ? &arena : nullptr, set);
  auto& gpu = gpu_;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const auto& arg = task_.arguments[i];
    if (!is_output(arg)) continue;
    auto n = static_cast<uint64_t>(arena.count(i));
    auto argument = static_cast<unsigned>(i);
    auto got = arena.address(i, set);
    auto want = outputs_[i].want.address();
    if (arg.type == dtype::f32)
      gpu.launch("compare_f32", 1, n, got, want, outputs_[i].scale.address(), n,
                 share_of_bounds * task_.tolerance * unit_roundoff, argument, set,
                 gpu.audit_address());
    else
      gpu.launch("compare_i32", 1, n, got, want, n, argument, set, gpu.audit_address());
  }
}

std::string device_truth::describe(const task_case& which, const device_arena& arena,
                                   const device_audit& found, reads what) {
  const auto& arg = task_.arguments[found.bad_argument];
  auto set = static_cast<unsigned>(found.bad_set);
  auto index = found.first_bad;
  find(which, what == reads::set ? &arena : nullptr, set); // the truth of that set again
  auto& gpu = gpu_;
  gpu.synchronize();
  auto read = [&](cuda::device_pointer at, auto into) {
    gpu.check("read an element", gpu.cuda().copy_to_host(&into, at, sizeof into));
    return into;
  };
  auto at = arena.address(found.bad_argument, set) + 4 * index;
  const auto& truth = outputs_[found.bad_argument].want;
  auto place = fmt::format("{}[{}]", arg.name, index);
  if (arg.type == dtype::i32)
    return fmt::format("{}: got {}, want {}", place, read(at, int32_t{}),
                       read(truth.address() + 4 * index, int32_t{}));
  auto got = read(at, float{});
  uint32_t bits = read(at, uint32_t{});
  return fmt::format("{}: got {:.9g}{}, want {:.9g}", place, got,
                     bits == poison_f32 ? " (never written)" : "",
                     read(truth.address() + 8 * index, double{}));
}

std::optional<std::string> device_truth::disagreement(workload& host) {
  for (const auto& which : task_.cases) {
    host.select(which);
    host.fill(known_seed, 0);
    host.find_truth();
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const auto& arg = task_.arguments[i];
      if (arg.role != argument_role::input) continue;
      const auto& t = host.tensor(i);
      const void* from =
          arg.type == dtype::f32 ? static_cast<const void*>(t.f32.data()) : t.i32.data();
      gpu_.check("copy an input", gpu_.cuda().copy_to_device(input(i), from, host.bytes(i)));
    }
    find(which, nullptr, 0);
    gpu_.synchronize();
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (is_output(task_.arguments[i]))
        if (auto cause = differs(host, i)) return "case " + which.name + ": " + *cause;
  }
  return std::nullopt;
}

std::optional<std::string> device_truth::differs(const workload& host, size_t argument) const {
  const auto& arg = task_.arguments[argument];
  const auto& t = host.tensor(argument);
  const auto& gpu = gpu_;
  auto fetch = [&](auto& into, const device_memory& from) {
    gpu.check("read a truth",
              gpu.cuda().copy_to_host(into.data(), from.address(), into.size() * sizeof into[0]));
  };
  if (arg.type == dtype::i32) {
    std::vector<int32_t> want(t.count);
    fetch(want, outputs_[argument].want);
    for (size_t k = 0; k < t.count; ++k)
      if (want[k] != t.want[k])
        return fmt::format("{}[{}] is {}, and {} by reference.cpp", arg.name, k, want[k],
                           t.want[k]);
    return std::nullopt;
  }
  std::vector<double> want(t.count);
  std::vector<double> scale(t.count);
  fetch(want, outputs_[argument].want);
  fetch(scale, outputs_[argument].scale);
  double unit = task_.tolerance * unit_roundoff;
  for (size_t k = 0; k < t.count; ++k) {
    if (!near(want[k], t.wide[k], truth_share * unit * t.scale[k] + 1e-30))
      return fmt::format("{}[{}] is {:.17g}, and {:.17g} by reference.cpp", arg.name, k, want[k],
                         t.wide[k]);
    if (!near(scale[k], t.scale[k], scale_share * std::fabs(t.scale[k]) + 1e-30))
      return fmt::format("{}_scale[{}] is {:.9g}, and {:.9g} by reference.cpp", arg.name, k,
                         scale[k], t.scale[k]);
  }
  return std::nullopt;
}

} // namespace kernelmill
