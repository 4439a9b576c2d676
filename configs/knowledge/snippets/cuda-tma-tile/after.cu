#include <cuda.h>
__device__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__global__ void first_tile(const __grid_constant__ CUtensorMap map, float* y) {
  __shared__ __align__(128) float tile[32 * 32];
  __shared__ __align__(8) uint64_t full;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&full)));
    asm volatile("fence.mbarrier_init.release.cluster;");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                     shared_address(&full)), "r"((unsigned)sizeof tile) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile"
                 ".mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
                     shared_address(tile)), "l"(&map), "r"(0), "r"(0), "r"(shared_address(&full))
                 : "memory");
  }
  __syncthreads(); // the barrier is ready for all
  for (unsigned done = 0; !done;)
    asm volatile("{\n.reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done) : "r"(shared_address(&full)) : "memory");
  y[threadIdx.x] = tile[threadIdx.x];
}
