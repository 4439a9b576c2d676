__device__ void process(int tile, float* y) { y[tile * blockDim.x + threadIdx.x] = tile; }
__global__ void persistent(int* next, int tiles, float* y) {
  __shared__ int tile;
  while (true) {
    __syncthreads(); // all have read the last tile
    if (threadIdx.x == 0) tile = atomicAdd(next, 1);
    __syncthreads();
    if (tile >= tiles) return;
    process(tile, y);
  }
}
int blocks_that_fit(int threads, size_t shared_bytes) {
  int device = 0, sms = 0, each = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, persistent, threads, shared_bytes);
  return sms * each;
}
