__global__ void add(const float* a, const float* b, double* y, double* y_scale, int n) {
  const long stride = long(gridDim.x) * blockDim.x;
  for (long i = long(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
    const double left = a[i], right = b[i];
    y[i] = left + right;
    y_scale[i] = fabs(left) + fabs(right);
  }
}

extern "C" void reference(const float* a, const float* b, double* y, double* y_scale, int n) {
  const int needed = (n - 1) / 256 + 1;
  const int launched = needed < 8192 ? needed : 8192;
  add<<<launched, 256>>>(a, b, y, y_scale, n);
}
