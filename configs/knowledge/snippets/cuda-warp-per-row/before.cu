// bench: f(x float[65536x256], y out float[65536], rows = 65536, cols = 256) within 1e-5
__global__ void norms(const float* x, float* y, int rows, int cols) {
  __shared__ float part[256];
  const float* p = x + (size_t)blockIdx.x * cols;
  float s = 0;
  for (int i = threadIdx.x; i < cols; i += 256) s += fabsf(p[i]);
  part[threadIdx.x] = s;
  for (int d = 128; d > 0; d /= 2) {
    __syncthreads();
    if (threadIdx.x < d) part[threadIdx.x] += part[threadIdx.x + d];
  }
  if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}
void f(const float* x, float* y, int rows, int cols) { norms<<<rows, 256>>>(x, y, rows, cols); }
