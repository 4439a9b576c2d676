__device__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
// One thread; `full` expects the bytes already. All are multiples of 16.
__device__ void start_load(void* to, const void* from, unsigned bytes, uint64_t* full) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
               " [%0], [%1], %2, [%3];" ::"r"(shared_address(to)), "l"(from), "r"(bytes),
               "r"(shared_address(full)) : "memory");
}
// One thread, after a barrier behind the block's writes to `from`.
__device__ void store(void* to, const void* from, unsigned bytes) {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
               "r"(shared_address(from)), "r"(bytes) : "memory");
  asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
}
