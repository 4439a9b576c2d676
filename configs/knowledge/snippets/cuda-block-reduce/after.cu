__device__ float warp_sum(float v) {
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}
// All threads of the block call it, and all get the sum. blockDim.x is a multiple of 32.
__device__ float block_sum(float v) {
  __shared__ float parts[32];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  v = warp_sum(v);
  __syncthreads(); // of an earlier call, all have read parts
  if (lane == 0) parts[warp] = v;
  __syncthreads();
  return warp_sum(lane < blockDim.x / 32 ? parts[lane] : 0.0f);
}
