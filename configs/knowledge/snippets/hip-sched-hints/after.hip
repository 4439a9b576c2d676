typedef _Float16 half4 __attribute__((ext_vector_type(4)));
typedef float float16_ __attribute__((ext_vector_type(16)));
__device__ float16_ steps(const half4* a, const half4* b, float16_ acc) { // a and b lie in LDS
  __builtin_amdgcn_s_setprio(1);
  for (int k = 0; k < 4; ++k)
    acc = __builtin_amdgcn_mfma_f32_32x32x8f16(a[k * 64 + threadIdx.x % 64],
                                               b[k * 64 + threadIdx.x % 64], acc, 0, 0, 0);
  __builtin_amdgcn_s_setprio(0);
#if __has_builtin(__builtin_amdgcn_sched_group_barrier)
  for (int k = 0; k < 4; ++k) {
    __builtin_amdgcn_sched_group_barrier(0x100, 2, 0); // two reads of the LDS
    __builtin_amdgcn_sched_group_barrier(0x8, 1, 0);   // one MFMA
  }
#endif
  return acc;
}
