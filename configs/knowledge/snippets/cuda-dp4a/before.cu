// bench: f(w int8[8192x8192], x int8[8192], y out int[8192], rows = 8192, cols = 8192) within 0
__global__ void products(const signed char* w, const signed char* x, int* y, int cols) {
  const signed char* a = w + (size_t)blockIdx.x * cols;
  int s = 0;
  for (int i = threadIdx.x; i < cols; i += 128) s += a[i] * x[i];
  __shared__ int parts[4];
  s = __reduce_add_sync(0xffffffffu, s);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = s;
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = parts[0] + parts[1] + parts[2] + parts[3];
}
void f(const signed char* w, const signed char* x, int* y, int rows, int cols) {
  products<<<rows, 128>>>(w, x, y, cols);
}
