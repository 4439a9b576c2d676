__device__ int warp_inclusive(int v) {
  int lane = threadIdx.x % 32;
  for (int d = 1; d < 32; d *= 2) {
    int left = __shfl_up_sync(0xffffffffu, v, d);
    if (lane >= d) v += left;
  }
  return v;
}
// The sum of what threads before this one gave; blockDim.x is a multiple of 32.
__device__ int block_exclusive(int v) {
  __shared__ int totals[32];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, sum = warp_inclusive(v);
  if (lane == 31) totals[warp] = sum;
  __syncthreads();
  int own = lane < blockDim.x / 32 ? totals[lane] : 0;
  int before = warp_inclusive(own) - own; // of the warp with this lane's number
  return sum - v + __shfl_sync(0xffffffffu, before, warp);
}
