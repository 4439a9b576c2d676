// Called by all threads with the block's partial sum; true in the block that must finish.
__device__ bool last_to_finish(float partial, float* parts, unsigned* tickets) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = partial;
    __threadfence(); // the value is seen before the ticket is
    last = atomicAdd(tickets, 1u) == gridDim.x - 1;
    if (last) *tickets = 0;
  }
  __syncthreads();
  return last; // then add __ldcg(&parts[i]) for i < gridDim.x
}
