__device__ int remapped(int block, int blocks) {
  const int dies = 8;
  if (blocks % dies != 0) return block;
  return block % dies * (blocks / dies) + block / dies;
}
__global__ void tiles(float* y) {
  int tile = remapped(blockIdx.x, gridDim.x);
  y[(size_t)tile * blockDim.x + threadIdx.x] = tile;
}
