namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 1024;
constexpr int kSharedBins = 8192; // 32 KiB; more bins are counted in global memory

__global__ void clear(int* counts, int bins) {
  const long stride = long(gridDim.x) * kThreads;
  for (long b = long(blockIdx.x) * kThreads + threadIdx.x; b < bins; b += stride) counts[b] = 0;
}

// Integer additions commute, so the order of the atomics does not matter.
__global__ void count(const int* x, int* counts, int n, int bins) {
  extern __shared__ int local[];
  const bool shared = bins <= kSharedBins;
  int* target = shared ? local : counts;
  if (shared)
    for (int b = threadIdx.x; b < bins; b += kThreads) local[b] = 0;
  __syncthreads();
  const long stride = long(gridDim.x) * kThreads;
  for (long i = long(blockIdx.x) * kThreads + threadIdx.x; i < n; i += stride) {
    const int bin = x[i];
    if (bin >= 0 && bin < bins) atomicAdd(target + bin, 1);
  }
  __syncthreads();
  if (shared)
    for (int b = threadIdx.x; b < bins; b += kThreads) atomicAdd(counts + b, local[b]);
}

int blocks_for(int size) {
  const int blocks = (size - 1) / kThreads + 1;
  return blocks < kBlocks ? blocks : kBlocks;
}

} // namespace

extern "C" void reference(const int* x, int* counts, int n, int bins) {
  const int bytes = bins <= kSharedBins ? bins * int(sizeof(int)) : 0;
  clear<<<blocks_for(bins), kThreads>>>(counts, bins);
  count<<<blocks_for(n), kThreads, bytes>>>(x, counts, n, bins);
}
