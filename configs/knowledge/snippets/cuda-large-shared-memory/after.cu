__global__ void big(const float* x, float* y, int n) {
  extern __shared__ __align__(1024) unsigned char raw[];
  float* tile = reinterpret_cast<float*>(raw);
  for (int i = threadIdx.x; i < n; i += blockDim.x) tile[i] = x[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = tile[n - 1 - i];
}
cudaError_t launch(const float* x, float* y, int n) {
  size_t bytes = n * sizeof(float);
  auto e = cudaFuncSetAttribute(big, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
  if (e != cudaSuccess) return e;
  big<<<1, 1024, bytes>>>(x, y, n);
  return cudaGetLastError();
}
