// bench: f(x half[16777216], y out half[16777216], n = 16777216) within 1e-3
typedef _Float16 half8 __attribute__((ext_vector_type(8)));
__global__ void relu_scaled(const half8* __restrict__ x, half8* __restrict__ y, int n8) {
  int i = blockIdx.x * blockDim.x * 2 + threadIdx.x, j = i + blockDim.x;
  half8 a{}, b{};
  if (i < n8) a = x[i]; // both loads are under way before the first use
  if (j < n8) b = x[j];
  for (int k = 0; k < 8; ++k) {
    a[k] = a[k] > (_Float16)0 ? a[k] * (_Float16)1.5f : (_Float16)0;
    b[k] = b[k] > (_Float16)0 ? b[k] * (_Float16)1.5f : (_Float16)0;
  }
  if (i < n8) y[i] = a;
  if (j < n8) y[j] = b;
}
void f(const __half* x, __half* y, int n) {
  int n8 = n / 8; // n is a multiple of 8
  relu_scaled<<<(n8 + 511) / 512, 256>>>((const half8*)x, (half8*)y, n8);
}
