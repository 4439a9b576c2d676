#include "gpu/referee/workload.hpp"

#include <algorithm>
#include <array>

#include "gpu/candidate/protocol.hpp"
#include "gpu/task/vectorized.hpp"

namespace kernelmill {

namespace {

// The loader has evaluated every shape of every case, so this cannot fail.
int64_t value_of(const expression& x, const scalar_values& scalars) {
  return x.evaluate(scalars).value_or(0);
}

size_t count_of(const argument& x, const scalar_values& scalars) {
  if (x.role == argument_role::scalar) return 0;
  size_t count = 1;
  for (const auto& dimension : x.shape) count *= static_cast<size_t>(value_of(dimension, scalars));
  return count;
}

KERNELMILL_VECTORIZED void widen_all(const float* from, double* to, size_t n) {
  for (size_t i = 0; i < n; ++i) to[i] = from[i];
}

template <size_t... I>
void call_with(void* function, const std::array<int64_t, max_reference_arguments>& a,
               std::index_sequence<I...>) {
  reinterpret_cast<void (*)(decltype(static_cast<int64_t>(I))...)>(function)(a[I]...);
}

} // namespace

void call_reference(reference_function function,
                    const std::array<int64_t, max_reference_arguments>& values) {
  call_with(function, values, std::make_index_sequence<max_reference_arguments>{});
}

bool is_output(const argument& x) noexcept {
  return x.role == argument_role::output || x.role == argument_role::inout;
}

bool is_filled(const argument& x) noexcept {
  return x.role == argument_role::input || x.role == argument_role::inout;
}

size_t tensor_bytes(const task& x, size_t argument, const task_case& which) {
  return 4 * count_of(x.arguments[argument], which.scalars);
}

size_t capacity_of(const task& x, size_t argument) {
  size_t most = count_of(x.arguments[argument], x.timed.scalars);
  for (const auto& c : x.cases) most = std::max(most, count_of(x.arguments[argument], c.scalars));
  return most * 4;
}

double working_set(const task& x, const task_case& which) {
  double bytes = 0;
  for (const auto& arg : x.arguments)
    bytes += 4.0 * static_cast<double>(count_of(arg, which.scalars));
  return bytes;
}

workload::workload(const task& x, reference_function reference)
    : task_(&x), reference_(reference), tensors_(x.arguments.size()) {
  // nop
}

void workload::select(const task_case& which) {
  case_ = &which;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const auto& arg = task_->arguments[i];
    auto& t = tensors_[i];
    t.count = count_of(arg, which.scalars);
    if (t.count == 0) continue;
    t.row = static_cast<size_t>(value_of(arg.shape.back(), which.scalars));
    if (arg.type == dtype::f32) t.wide.resize(t.count);
    if (arg.type == dtype::f32 && is_filled(arg)) t.f32.resize(t.count);
    if (arg.type == dtype::f32 && is_output(arg)) t.scale.resize(t.count);
    if (arg.type == dtype::i32 && is_filled(arg)) t.i32.resize(t.count);
    if (arg.type == dtype::i32 && is_output(arg)) t.want.resize(t.count);
  }
}

const std::string& workload::distribution(size_t argument) const {
  return fill_of(task_->arguments[argument], *case_);
}

void workload::refill(size_t argument, const secret_seed& seed, uint64_t call) {
  const auto& arg = task_->arguments[argument];
  auto& t = tensors_[argument];
  auto key = derive_key(seed, case_->name, call, arg.name);
  if (arg.type == dtype::f32) {
    kernelmill::fill(std::span{t.f32}, distribution(argument), t.row, key);
  } else {
    kernelmill::fill(std::span{t.i32}, distribution(argument), t.row,
                     value_of(arg.fill_range[0], case_->scalars),
                     value_of(arg.fill_range[1], case_->scalars), key);
  }
}

void workload::fill(const secret_seed& seed, uint64_t call) {
  for (size_t i = 0; i < tensors_.size(); ++i)
    if (is_filled(task_->arguments[i])) refill(i, seed, call);
}

void workload::widen(size_t argument) {
  auto& t = tensors_[argument];
  if (task_->arguments[argument].type == dtype::f32)
    widen_all(t.f32.data(), t.wide.data(), t.count);
  else if (is_output(task_->arguments[argument]))
    t.want = t.i32;
}

void workload::find_truth() {
  std::array<int64_t, max_reference_arguments> values{};
  size_t next = 0;
  auto pass = [&](const void* x) { values[next++] = reinterpret_cast<int64_t>(x); };
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const auto& arg = task_->arguments[i];
    auto& t = tensors_[i];
    if (arg.role == argument_role::scalar) {
      values[next++] = case_->scalars.at(arg.name);
      continue;
    }
    if (is_filled(arg)) widen(i);
    if (arg.type == dtype::f32)
      pass(t.wide.data());
    else
      pass(is_output(arg) ? t.want.data() : t.i32.data());
    if (arg.type == dtype::f32 && is_output(arg)) pass(t.scale.data());
  }
  call_reference(reference_, values);
}

comparison workload::check(const std::vector<taken_output>& outputs, double share) const {
  comparison result;
  bool first = true;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const auto& arg = task_->arguments[i];
    if (!is_output(arg)) continue;
    const auto& t = tensors_[i];
    auto one = arg.type == dtype::f32
                   ? compare(outputs[i].f32, t.wide, t.scale, share * task_->tolerance, arg.name)
                   : compare(outputs[i].i32, t.want, arg.name);
    result = first ? one : worse_of(result, one);
    first = false;
  }
  return result;
}

std::string workload::distribution_text() const {
  std::string list;
  std::string single;
  bool same = true;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (!is_filled(task_->arguments[i])) continue;
    const auto& name = distribution(i);
    same = same && (single.empty() || single == name);
    single = name;
    list += (list.empty() ? "" : " ") + task_->arguments[i].name + "=" + name;
  }
  return same ? single : list;
}

} // namespace kernelmill
