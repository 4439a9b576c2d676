__global__ void __launch_bounds__(384, 1) specialised(float* y) {
  int group = threadIdx.x / 128;
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    // one elected thread starts the copies
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    y[blockIdx.x * 256 + threadIdx.x - 128] = group; // the products and the epilogue
  }
}
