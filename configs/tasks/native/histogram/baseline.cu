namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 1056;     // eight for each of 132 multiprocessors
constexpr int kSharedBins = 6144; // 24 KiB leave room for eight blocks on a multiprocessor

__global__ void clear(int* counts, int bins) {
  const long stride = long(gridDim.x) * kThreads;
  for (long b = long(blockIdx.x) * kThreads + threadIdx.x; b < bins; b += stride) counts[b] = 0;
}

// A histogram per block, so that only one addition per block and bin goes to global memory.
__global__ void count_shared(const int* x, int* counts, int n, int bins) {
  extern __shared__ int local[];
  for (int b = threadIdx.x; b < bins; b += kThreads) local[b] = 0;
  __syncthreads();
  const long stride = long(gridDim.x) * kThreads;
  for (long i = long(blockIdx.x) * kThreads + threadIdx.x; i < n; i += stride) {
    const int bin = x[i];
    if (bin >= 0 && bin < bins) atomicAdd(local + bin, 1);
  }
  __syncthreads();
  for (int b = threadIdx.x; b < bins; b += kThreads)
    if (local[b] > 0) atomicAdd(counts + b, local[b]);
}

__global__ void count_global(const int* x, int* counts, int n, int bins) {
  const long stride = long(gridDim.x) * kThreads;
  for (long i = long(blockIdx.x) * kThreads + threadIdx.x; i < n; i += stride) {
    const int bin = x[i];
    if (bin >= 0 && bin < bins) atomicAdd(counts + bin, 1);
  }
}

int blocks_for(int size) {
  const int blocks = (size - 1) / kThreads + 1;
  return blocks < kBlocks ? blocks : kBlocks;
}

} // namespace

extern "C" void solve(const int* x, int* counts, int n, int bins) {
  clear<<<blocks_for(bins), kThreads>>>(counts, bins);
  if (bins <= kSharedBins)
    count_shared<<<blocks_for(n), kThreads, bins * sizeof(int)>>>(x, counts, n, bins);
  else
    count_global<<<blocks_for(n), kThreads>>>(x, counts, n, bins);
}
