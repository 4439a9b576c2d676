// What extensions usually need of torch, for a third of the time that torch's own headers take to
// compile. The folder of this file stands before torch's own, so that it is found in their place
// (torch/extension.h, torch/types.h, torch/torch.h, ATen/ATen.h). Names that are missing here are
// compile errors, and then the toolchain builds with torch's own headers; a name that is here means
// what it means there, with every overload that a call could choose between.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/core/TensorOptions.h>
#include <c10/util/Exception.h>
#include <torch/version.h>

#include <ATen/ops/empty_like_ops.h>
#include <ATen/ops/empty_ops.h>
#include <ATen/ops/empty_strided_ops.h>
#include <ATen/ops/full_like_ops.h>
#include <ATen/ops/full_ops.h>
#include <ATen/ops/ones_like_ops.h>
#include <ATen/ops/ones_ops.h>
#include <ATen/ops/zeros_like_ops.h>
#include <ATen/ops/zeros_ops.h>

#if !defined(__CUDACC__) || defined(KERNELMILL_WANTS_DISPATCH)
#include <ATen/Dispatch.h>
#endif
#if !defined(__CUDACC__) || defined(KERNELMILL_WANTS_PYBIND)
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
#endif
#if defined(__CUDACC__) && defined(KERNELMILL_WANTS_CUDA)
#include <kernelmill/slim_cuda.h>
#endif

namespace kernelmill_slim {

inline auto sizes(at::IntArrayRef x) {
#if TORCH_VERSION_MAJOR >= 2
  return c10::fromIntArrayRefSlow(x);
#else
  return c10::fromIntArrayRef(x);
#endif
}

using format_option = decltype(std::declval<at::TensorOptions>().memory_format_opt());

inline auto format(const at::TensorOptions& options, format_option format) {
  return c10::impl::check_tensor_options_and_extract_memory_format(options, format);
}

inline at::Tensor finish(at::Tensor x, const at::TensorOptions& options) {
  if (options.requires_grad()) x.set_requires_grad(true);
  return x;
}

} // namespace kernelmill_slim

#define KERNELMILL_OPTIONS(o)                                                                      \
  c10::optTypeMetaToScalarType((o).dtype_opt()), (o).layout_opt(), (o).device_opt(),               \
      (o).pinned_memory_opt()

namespace at {

inline Tensor empty(IntArrayRef size, TensorOptions options = {},
                    kernelmill_slim::format_option memory_format = {}) {
  return kernelmill_slim::finish(
      _ops::empty_memory_format::call(kernelmill_slim::sizes(size), KERNELMILL_OPTIONS(options),
                                      kernelmill_slim::format(options, memory_format)),
      options);
}
inline Tensor empty_strided(IntArrayRef size, IntArrayRef stride, TensorOptions options = {}) {
  return kernelmill_slim::finish(_ops::empty_strided::call(kernelmill_slim::sizes(size),
                                                           kernelmill_slim::sizes(stride),
                                                           KERNELMILL_OPTIONS(options)),
                                 options);
}
inline Tensor zeros(IntArrayRef size, TensorOptions options = {}) {
  return kernelmill_slim::finish(
      _ops::zeros::call(kernelmill_slim::sizes(size), KERNELMILL_OPTIONS(options)), options);
}
inline Tensor ones(IntArrayRef size, TensorOptions options = {}) {
  return kernelmill_slim::finish(
      _ops::ones::call(kernelmill_slim::sizes(size), KERNELMILL_OPTIONS(options)), options);
}
inline Tensor full(IntArrayRef size, const Scalar& value, TensorOptions options = {}) {
  return kernelmill_slim::finish(
      _ops::full::call(kernelmill_slim::sizes(size), value, KERNELMILL_OPTIONS(options)), options);
}

#define KERNELMILL_LIKE(name)                                                                      \
  inline Tensor name(const Tensor& self, TensorOptions options = {},                               \
                     kernelmill_slim::format_option memory_format = {}) {                          \
    return kernelmill_slim::finish(                                                                \
        _ops::name::call(self, KERNELMILL_OPTIONS(options),                                        \
                         kernelmill_slim::format(options, memory_format)),                         \
        options);                                                                                  \
  }
KERNELMILL_LIKE(empty_like)
KERNELMILL_LIKE(zeros_like)
KERNELMILL_LIKE(ones_like)
#undef KERNELMILL_LIKE

inline Tensor full_like(const Tensor& self, const Scalar& value, TensorOptions options = {},
                        kernelmill_slim::format_option memory_format = {}) {
  return kernelmill_slim::finish(
      _ops::full_like::call(self, value, KERNELMILL_OPTIONS(options),
                            kernelmill_slim::format(options, memory_format)),
      options);
}

// -- functions that are methods too, in the forms that are not ambiguous ---------------------------

#define KERNELMILL_UNARY(name)                                                                     \
  inline Tensor name(const Tensor& self) { return self.name(); }
KERNELMILL_UNARY(abs)
KERNELMILL_UNARY(exp)
KERNELMILL_UNARY(log)
KERNELMILL_UNARY(neg)
KERNELMILL_UNARY(relu)
KERNELMILL_UNARY(rsqrt)
KERNELMILL_UNARY(sigmoid)
KERNELMILL_UNARY(sqrt)
KERNELMILL_UNARY(tanh)
#undef KERNELMILL_UNARY
#define KERNELMILL_BINARY(name)                                                                    \
  inline Tensor name(const Tensor& self, const Tensor& other) { return self.name(other); }
KERNELMILL_BINARY(bmm)
KERNELMILL_BINARY(matmul)
KERNELMILL_BINARY(mm)
#undef KERNELMILL_BINARY

#define KERNELMILL_OPERATOR(op, name, with_scalar_first)                                           \
  inline Tensor operator op(const Tensor& x, const Tensor& y) { return x.name(y); }                \
  inline Tensor operator op(const Tensor& x, const Scalar& y) { return x.name(y); }                \
  inline Tensor operator op(const Scalar& x, const Tensor& y) { return with_scalar_first; }
KERNELMILL_OPERATOR(+, add, y.add(x))
KERNELMILL_OPERATOR(*, mul, y.mul(x))
KERNELMILL_OPERATOR(-, sub, at::empty_like(y, at::MemoryFormat::Preserve).fill_(x).sub_(y))
KERNELMILL_OPERATOR(/, div, at::empty_like(y, at::MemoryFormat::Preserve).fill_(x).div_(y))
KERNELMILL_OPERATOR(<, lt, y.gt(x))
KERNELMILL_OPERATOR(<=, le, y.ge(x))
KERNELMILL_OPERATOR(>, gt, y.lt(x))
KERNELMILL_OPERATOR(>=, ge, y.le(x))
KERNELMILL_OPERATOR(==, eq, y.eq(x))
KERNELMILL_OPERATOR(!=, ne, y.ne(x))
#undef KERNELMILL_OPERATOR

} // namespace at

#undef KERNELMILL_OPTIONS

namespace torch {

using namespace at; // as torch/types.h does

#if TORCH_VERSION_MAJOR >= 2
using std::nullopt;
using std::optional;
#else
using c10::nullopt;
using c10::optional;
#endif

using Dtype = at::ScalarType;

constexpr auto kUInt8 = at::kByte;
constexpr auto kInt8 = at::kChar;
constexpr auto kInt16 = at::kShort;
constexpr auto kInt32 = at::kInt;
constexpr auto kInt64 = at::kLong;
constexpr auto kFloat16 = at::kHalf;
constexpr auto kFloat32 = at::kFloat;
constexpr auto kFloat64 = at::kDouble;
constexpr auto kU8 = kUInt8;
constexpr auto kI8 = kInt8;
constexpr auto kI16 = kInt16;
constexpr auto kI32 = kInt32;
constexpr auto kI64 = kInt64;
constexpr auto kF16 = kFloat16;
constexpr auto kF32 = kFloat32;
constexpr auto kF64 = kFloat64;

} // namespace torch
