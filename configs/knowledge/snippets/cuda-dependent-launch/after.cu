__global__ void second(const float* weights, const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float w = i < n ? weights[i] : 0; // not written by the kernel before
  cudaGridDependencySynchronize();
  if (i < n) y[i] = w * x[i];
}
cudaError_t launch(const float* w, const float* x, float* y, int n, cudaStream_t stream) {
  cudaLaunchAttribute a{};
  a.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  a.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t c{};
  c.gridDim = (n + 255) / 256;
  c.blockDim = 256;
  c.stream = stream;
  c.attrs = &a;
  c.numAttrs = 1;
  return cudaLaunchKernelEx(&c, second, w, x, y, n);
}
