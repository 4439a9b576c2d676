// The referee's own work on a GPU: fresh contents, poison, guards, and looking at outputs. NVRTC
// compiles this text, after gpu/task/random_words.hpp, when a referee starts; device.cpp launches.

using kernelmill::mix;
using kernelmill::unit;

typedef unsigned long long u64;

struct keys {
  unsigned k[8];
};

// What the audit of some calls has found so far. device.hpp has its twin.
struct audit {
  u64 bad;            // elements outside their bound
  u64 first_bad;      // the least index of one, in the first set that had any
  u64 bad_argument;   // where that was
  u64 bad_set;
  u64 changed_inputs; // elements that are not what was delivered
  u64 damaged_guards; // bytes
  u64 unasked;        // elements written in sets that were not called
  u64 late;           // samples that changed after the clock had stopped
  double share;       // largest error, in units of its bound
};

__device__ inline u64 thread_index() { return u64(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline u64 thread_count() { return u64(gridDim.x) * blockDim.x; }

// How the elements of one tensor are made. device.hpp has its twin.
struct content_how {
  unsigned kind; // as in device_fill.cpp
  float scale;
  unsigned row; // elements of one
  int low;      // of integers: [low, low + width)
  u64 width;
};

// Each set of a row has keys of its own.
__device__ inline keys keys_of(const keys& row, unsigned set) {
  keys own;
  for (int j = 0; j < 8; ++j) own.k[j] = mix(8 * set + j, row.k[j], row.k[(j + 3) & 7]);
  return own;
}

// One to three places of a tensor, as the keys tell. All three are looked at, however many count: who
// waits for contents is charged for what takes longer, and that must not be what the keys tell.
struct few_places {
  unsigned at[3];
};
constexpr unsigned no_place = ~0u; // no tensor has so many elements

__device__ inline few_places places_of(u64 n, const keys& key) {
  few_places result;
  unsigned count = 1 + mix(3, key.k[6], key.k[7]) % 3;
  for (unsigned j = 0; j < 3; ++j)
    result.at[j] = j < count ? unsigned((mix(j, key.k[6], key.k[7]) * n) >> 32) : no_place;
  return result;
}

__device__ inline int place_in(const few_places& x, unsigned i) {
  int result = -1;
#pragma unroll
  for (int j = 2; j >= 0; --j) result = x.at[j] == i ? j : result;
  return result;
}

__device__ inline float bell(unsigned i, const keys& key) {
  float sum = unit(mix(i, key.k[0], key.k[1])) + unit(mix(i, key.k[2], key.k[3])) +
              unit(mix(i, key.k[4], key.k[5]));
  return (sum - 1.5f) * 2.0f;
}

// The laws of distribution.cpp, but each element by itself: what is sorted there is a ramp with
// noise here.
__device__ inline float content(unsigned i, const content_how& how, const few_places& few,
                                const keys& key) {
  unsigned word = mix(i, key.k[0], key.k[1]);
  switch (how.kind) {
    case 1: return unit(word);                                             // uniform
    case 2: return 0.5f + unit(word);                                      // positive
    case 3: return ((word & 1u) != 0 ? 1.0f : -1.0f) + (unit(word) - 0.5f) * 2e-3f; // signs
    case 4: return 0.0f;                                                   // zeros
    case 5: {                                                              // outlier
      bool is_one = (mix(i, key.k[6], key.k[7]) & 255u) == 0;
      return bell(i, key) * (is_one ? 1e4f : 1.0f);
    }
    case 6: {                                                              // sparse
      unsigned row = i / how.row;
      unsigned place = unsigned((u64(mix(row, key.k[2], key.k[3])) * how.row) >> 32);
      if (i - row * how.row != place) return 0.0f;
      unsigned drawn = mix(row, key.k[4], key.k[5]);
      float value = __uint_as_float(0x3f800000u | (drawn >> 9) | 1u);
      return (drawn & 1u) != 0 ? value : -value;
    }
    case 7: return bell(i / how.row, key);                                 // constant_rows
    case 8:                                                                // sorted
    case 9: {                                                              // descending
      float slot = (float(i % how.row) + 0.25f + 0.5f * unit(word)) / float(how.row);
      return (how.kind == 8 ? 1.0f : -1.0f) * (slot * 3.0f - 1.5f);
    }
    case 10: {                                                             // few_negatives
      float value = 0.5f + unit(word);
      return place_in(few, i) >= 0 ? -value : value;
    }
    case 11: {                                                             // few_outliers
      int which = place_in(few, i);
      if (which < 0) return bell(i, key);
      unsigned drawn = mix(unsigned(which) + 4, key.k[6], key.k[7]);
      return ((drawn & 1u) != 0 ? 1.0f : -1.0f) * (30.0f + 70.0f * unit(drawn));
    }
    case 12:                                                               // unequal_rows
      return bell(i, key) * exp2f(-float(mix(i / how.row, key.k[6], key.k[7]) % 13u));
    case 13: return (unit(word) - 0.5f) * 102.0f;                          // wide
    case 14: return 0.9375f + 0.125f * unit(word);                         // near_one
    default: return bell(i, key) * how.scale;                              // normal
  }
}

__device__ inline int content_i32(unsigned i, const content_how& how, const keys& key) {
  auto any = [&](unsigned word) { return how.low + int((word * how.width) >> 32); };
  unsigned word = mix(i, key.k[0], key.k[1]);
  switch (how.kind) {
    case 1: return any(mix(0, key.k[2], key.k[3]));                        // constant
    case 2:                                                                // skewed
      return any((mix(i, key.k[4], key.k[5]) >> 30) != 0 ? mix(0, key.k[2], key.k[3]) : word);
    case 3: return how.low + int(u64(i % how.row) * how.width / how.row);  // sorted
    case 4: return 0;                                                      // zeros
    default: return any(word);                                             // index
  }
}

// Fills and looks work on as many sets as the grid has rows; `stride` is elements from one set to
// the next, `first` the number of the first.

extern "C" __global__ void fill_f32(float* x, u64 n, u64 stride, unsigned first, content_how how,
                                    keys row) {
  const keys key = keys_of(row, first + blockIdx.y);
  const few_places few = places_of(n, key);
  x += blockIdx.y * stride;
  for (u64 i = thread_index(); i < n; i += thread_count())
    x[i] = content(unsigned(i), how, few, key);
}

extern "C" __global__ void fill_i32(int* x, u64 n, u64 stride, unsigned first, content_how how,
                                    keys row) {
  const keys key = keys_of(row, first + blockIdx.y);
  x += blockIdx.y * stride;
  for (u64 i = thread_index(); i < n; i += thread_count()) x[i] = content_i32(unsigned(i), how, key);
}

extern "C" __global__ void verify_f32(const float* x, u64 n, u64 stride, unsigned first,
                                      content_how how, keys row, audit* out) {
  const keys key = keys_of(row, first + blockIdx.y);
  const few_places few = places_of(n, key);
  x += blockIdx.y * stride;
  for (u64 i = thread_index(); i < n; i += thread_count())
    if (__float_as_uint(x[i]) != __float_as_uint(content(unsigned(i), how, few, key)))
      atomicAdd(&out->changed_inputs, 1ull);
}

extern "C" __global__ void verify_i32(const int* x, u64 n, u64 stride, unsigned first,
                                      content_how how, keys row, audit* out) {
  const keys key = keys_of(row, first + blockIdx.y);
  x += blockIdx.y * stride;
  for (u64 i = thread_index(); i < n; i += thread_count())
    if (x[i] != content_i32(unsigned(i), how, key)) atomicAdd(&out->changed_inputs, 1ull);
}

extern "C" __global__ void fill_words(unsigned* x, u64 n, u64 stride, unsigned value) {
  x += blockIdx.y * stride;
  for (u64 i = thread_index(); i < n; i += thread_count()) x[i] = value;
}

// Pushes out what caches hold. What was only read need not be written back, for which the calls that come next would wait.
extern "C" __global__ void read_words(uint4* x, u64 n) {
  unsigned all = 0;
  for (u64 i = thread_index(); i < n; i += thread_count()) all |= x[i].x | x[i].y | x[i].z | x[i].w;
  if (all == 1) x[0].x = 0; // so that no compiler leaves the reads out
}

// Tells the referee that all inputs are there, and then lets calls go on that wait for that.
extern "C" __global__ void open_gate(volatile unsigned* told, unsigned release,
                                     volatile unsigned* gate, unsigned number) {
  *told = release;
  __threadfence_system();
  *gate = number;
}

extern "C" __global__ void set_bytes(unsigned char* x, u64 n, u64 stride, unsigned char value) {
  x += blockIdx.y * stride;
  for (u64 i = thread_index(); i < n; i += thread_count()) x[i] = value;
}

extern "C" __global__ void check_bytes(const unsigned char* x, u64 n, u64 stride,
                                       unsigned char value, audit* out) {
  x += blockIdx.y * stride;
  for (u64 i = thread_index(); i < n; i += thread_count())
    if (x[i] != value) atomicAdd(&out->damaged_guards, 1ull);
}

extern "C" __global__ void count_written(const unsigned* x, u64 n, unsigned poison, audit* out) {
  for (u64 i = thread_index(); i < n; i += thread_count())
    if (x[i] != poison) atomicAdd(&out->unasked, 1ull);
}

__device__ inline void note_bad(audit* out, u64 i, unsigned argument, unsigned set) {
  if (atomicAdd(&out->bad, 1ull) == 0) {
    out->bad_argument = argument;
    out->bad_set = set;
  }
  if (out->bad_set == set && out->bad_argument == argument) atomicMin(&out->first_bad, i);
}

// The bound of comparison.cpp. Positive doubles order like their bits.
extern "C" __global__ void compare_f32(const float* got, const double* want, const double* scale,
                                       u64 n, double unit_error, unsigned argument, unsigned set,
                                       audit* out) {
  double largest = 0; // in units of the bound
  for (u64 i = thread_index(); i < n; i += thread_count()) {
    double g = got[i], w = want[i];
    double difference = fabs(g - w);
    bool same = (isnan(w) && isnan(g)) || (isinf(w) && g == w);
    if (same) continue;
    double bound = unit_error * scale[i] + 1e-30;
    if (!(difference <= bound)) note_bad(out, i, argument, set);
    if (difference > largest * bound) largest = difference / bound;
  }
  if (largest > 0)
    atomicMax(reinterpret_cast<u64*>(&out->share), u64(__double_as_longlong(largest)));
}

extern "C" __global__ void compare_i32(const int* got, const int* want, u64 n, unsigned argument,
                                       unsigned set, audit* out) {
  for (u64 i = thread_index(); i < n; i += thread_count())
    if (got[i] != want[i]) note_bad(out, i, argument, set);
}

// Takes words at places that only the seed tells, so that what is written after the clock has
// stopped cannot hide. A row of the grid is one call of the row; `order` names its set.
extern "C" __global__ void take_sample(const unsigned* x, u64 n, u64 stride, const unsigned* order,
                                       unsigned seed, unsigned* into, unsigned count) {
  x += order[blockIdx.y] * stride;
  into += blockIdx.y * count;
  seed += blockIdx.y;
  for (u64 i = thread_index(); i < count; i += thread_count())
    into[i] = x[(u64(mix(unsigned(i), seed, ~seed)) * n) >> 32];
}

// The same of bytes of tensors that lie anywhere. A row of the grid is one tensor.
struct stretch {
  const unsigned char* x;
  u64 bytes;
};

extern "C" __global__ void take_samples(const stretch* all, unsigned seed, unsigned char* into,
                                        unsigned count) {
  stretch one = all[blockIdx.y];
  into += u64(blockIdx.y) * count;
  seed += blockIdx.y;
  for (u64 i = thread_index(); i < count; i += thread_count()) {
    u64 place = (u64(mix(unsigned(i), seed, ~seed)) << 32) | mix(unsigned(i), ~seed, seed);
    into[i] = one.bytes != 0 ? one.x[__umul64hi(place, one.bytes)] : 0;
  }
}

// Outputs of calls against what is wanted. A row of the grid is one output. `beyond`: the largest
// error less a share of what is wanted, infinite where something is not finite; `squares`: the sum
// of those of what is wanted.
struct compared {
  const void* got;
  const void* want;
  u64 count;
  double relative;
};

struct comparison_sums {
  double beyond;
  double squares;
};

__device__ inline float as_float(float x) { return x; }
__device__ inline float as_float(unsigned short bits) { // bfloat16
  return __uint_as_float(unsigned(bits) << 16);
}
struct half_bits {
  unsigned short bits;
};
__device__ inline float as_float(half_bits x) {
#ifdef __HIP__
  return float(__builtin_bit_cast(_Float16, x.bits));
#else
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(x.bits));
  return result;
#endif
}

// Within 32 lanes, also where AMD's wavefronts have 64.
template <class T>
__device__ inline T other_lane(T x, int step) {
#ifdef __HIP__
  return __shfl_xor(x, step, 32);
#else
  return __shfl_xor_sync(~0u, x, step);
#endif
}

template <class T>
__device__ void compare_outputs(const compared* all, comparison_sums* into) {
  compared one = all[blockIdx.y];
  auto got = static_cast<const T*>(one.got);
  auto want = static_cast<const T*>(one.want);
  auto relative = float(one.relative);
  float beyond = 0;
  double squares = 0;
  for (u64 i = thread_index(); i < one.count; i += thread_count()) {
    float w = as_float(want[i]);
    float off = fabsf(as_float(got[i]) - w) - relative * fabsf(w);
    beyond = off < 3e38f ? fmaxf(beyond, off) : __uint_as_float(0x7f800000u); // also no number
    squares += double(w) * w;
  }
  for (int i = 16; i > 0; i /= 2) {
    beyond = fmaxf(beyond, other_lane(beyond, i));
    squares += other_lane(squares, i);
  }
  if (threadIdx.x % 32 != 0) return;
  // What is not negative has the order of its bits.
  atomicMax(reinterpret_cast<unsigned long long*>(&into[blockIdx.y].beyond),
            static_cast<unsigned long long>(__double_as_longlong(beyond)));
  atomicAdd(&into[blockIdx.y].squares, squares);
}

extern "C" __global__ void near_f32(const compared* all, comparison_sums* into) {
  compare_outputs<float>(all, into);
}
extern "C" __global__ void near_f16(const compared* all, comparison_sums* into) {
  compare_outputs<half_bits>(all, into);
}
extern "C" __global__ void near_bf16(const compared* all, comparison_sums* into) {
  compare_outputs<unsigned short>(all, into);
}

extern "C" __global__ void check_sample(const unsigned* x, u64 n, u64 stride, const unsigned* order,
                                        unsigned seed, const unsigned* taken, unsigned count,
                                        audit* out) {
  x += order[blockIdx.y] * stride;
  taken += blockIdx.y * count;
  seed += blockIdx.y;
  for (u64 i = thread_index(); i < count; i += thread_count())
    if (taken[i] != x[(u64(mix(unsigned(i), seed, ~seed)) * n) >> 32]) atomicAdd(&out->late, 1ull);
}
