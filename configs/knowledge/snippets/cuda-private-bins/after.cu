constexpr int bins = 1024, copies = 8;
__device__ void count(unsigned (*own)[bins], unsigned bin) {
  atomicAdd(&own[threadIdx.x / 32 % copies][bin], 1u);
}
__device__ void flush(unsigned (*own)[bins], unsigned* total) {
  __syncthreads();
  for (int b = threadIdx.x; b < bins; b += blockDim.x) {
    unsigned s = 0;
    for (int c = 0; c < copies; ++c) s += own[c][b];
    if (s != 0) atomicAdd(&total[b], s);
  }
}
