__global__ void add(const float* a, const float* b, float* y, int n) {
  const long stride = long(gridDim.x) * blockDim.x;
  for (long i = long(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) y[i] = a[i] + b[i];
}

extern "C" void solve(const float* a, const float* b, float* y, int n) {
  const int needed = (n - 1) / 256 + 1;
  const int launched = needed < 8192 ? needed : 8192;
  add<<<launched, 256>>>(a, b, y, n);
}
