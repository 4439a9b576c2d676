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
  double max_error;
};

__device__ inline u64 thread_index() { return u64(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline u64 thread_count() { return u64(gridDim.x) * blockDim.x; }

// As in distribution.cpp; `kind` is device_fill of device.hpp.
__device__ inline float content(unsigned i, unsigned kind, float scale, const keys& key) {
  unsigned word = mix(i, key.k[0], key.k[1]);
  if (kind == 1) return unit(word);                                      // uniform
  if (kind == 2) return 0.5f + unit(word);                               // positive
  if (kind == 3)                                                         // signs
    return ((word & 1u) != 0 ? 1.0f : -1.0f) + (unit(word) - 0.5f) * 2e-3f;
  if (kind == 4) return 0.0f;                                            // zeros
  float sum = unit(word) + unit(mix(i, key.k[2], key.k[3])) + unit(mix(i, key.k[4], key.k[5]));
  return (sum - 1.5f) * 2.0f * scale;                                    // normal
}

__device__ inline int index_content(unsigned i, int low, u64 width, const keys& key) {
  return low + int((mix(i, key.k[0], key.k[1]) * width) >> 32);
}

extern "C" __global__ void fill_f32(float* x, u64 n, unsigned kind, float scale, keys key) {
  for (u64 i = thread_index(); i < n; i += thread_count())
    x[i] = content(unsigned(i), kind, scale, key);
}

extern "C" __global__ void fill_i32(int* x, u64 n, int low, u64 width, keys key) {
  for (u64 i = thread_index(); i < n; i += thread_count())
    x[i] = index_content(unsigned(i), low, width, key);
}

extern "C" __global__ void verify_f32(const float* x, u64 n, unsigned kind, float scale, keys key,
                                      audit* out) {
  for (u64 i = thread_index(); i < n; i += thread_count())
    if (__float_as_uint(x[i]) != __float_as_uint(content(unsigned(i), kind, scale, key)))
      atomicAdd(&out->changed_inputs, 1ull);
}

extern "C" __global__ void verify_i32(const int* x, u64 n, int low, u64 width, keys key,
                                      audit* out) {
  for (u64 i = thread_index(); i < n; i += thread_count())
    if (x[i] != index_content(unsigned(i), low, width, key))
      atomicAdd(&out->changed_inputs, 1ull);
}

extern "C" __global__ void set_bytes(unsigned char* x, u64 n, unsigned char value) {
  for (u64 i = thread_index(); i < n; i += thread_count()) x[i] = value;
}

extern "C" __global__ void check_bytes(const unsigned char* x, u64 n, unsigned char value,
                                       audit* out) {
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
  double largest = 0;
  for (u64 i = thread_index(); i < n; i += thread_count()) {
    double g = got[i], w = want[i];
    double difference = fabs(g - w);
    bool same = (isnan(w) && isnan(g)) || (isinf(w) && g == w);
    if (same) continue;
    if (!(difference <= unit_error * scale[i] + 1e-30)) note_bad(out, i, argument, set);
    if (difference > largest) largest = difference;
  }
  if (largest > 0)
    atomicMax(reinterpret_cast<u64*>(&out->max_error), u64(__double_as_longlong(largest)));
}

extern "C" __global__ void compare_i32(const int* got, const int* want, u64 n, unsigned argument,
                                       unsigned set, audit* out) {
  for (u64 i = thread_index(); i < n; i += thread_count())
    if (got[i] != want[i]) note_bad(out, i, argument, set);
}

// Takes words at places that only the seed tells, so that what is written after the clock has
// stopped cannot hide.
extern "C" __global__ void take_sample(const unsigned* x, u64 n, unsigned seed, unsigned* into,
                                       unsigned count) {
  for (u64 i = thread_index(); i < count; i += thread_count()) {
    u64 place = (u64(mix(unsigned(i), seed, ~seed)) * n) >> 32;
    into[i] = x[place];
  }
}

extern "C" __global__ void check_sample(const unsigned* x, u64 n, unsigned seed,
                                        const unsigned* taken, unsigned count, audit* out) {
  for (u64 i = thread_index(); i < count; i += thread_count()) {
    u64 place = (u64(mix(unsigned(i), seed, ~seed)) * n) >> 32;
    if (taken[i] != x[place]) atomicAdd(&out->late, 1ull);
  }
}
