__device__ void wait(uint64_t* barrier, unsigned parity) {
  unsigned at = (unsigned)__cvta_generic_to_shared(barrier);
  for (unsigned done = 0; !done;)
    asm volatile("{\n.reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done) : "r"(at), "r"(parity) : "memory");
}
__device__ void arrive(uint64_t* barrier) {
  unsigned at = (unsigned)__cvta_generic_to_shared(barrier);
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
}
template <int stages, class Start, class Use>
__device__ void ring(uint64_t* full, uint64_t* empty, int steps, bool producer, Start start,
                     Use use) {
  for (int i = 0; i < steps; ++i) {
    int slot = i % stages;
    unsigned parity = (i / stages) % 2;
    if (producer) {
      wait(&empty[slot], parity ^ 1); // passes at once in the first round
      start(slot, &full[slot]);       // expect_tx and the copies
    } else {
      wait(&full[slot], parity);
      use(slot);
      arrive(&empty[slot]); // `empty` counts the threads that arrive
    }
  }
}
