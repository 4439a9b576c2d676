// bench: f(x float[4096x4096], y out float[4096x4096], rows = 4096, cols = 4096) within 0
// Neighbouring threads take neighbouring columns.
__global__ void scaled(const float* x, float* y, int rows, int cols) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
  if (r < rows && c < cols) y[(size_t)r * cols + c] = 2 * x[(size_t)r * cols + c];
}
void f(const float* x, float* y, int rows, int cols) {
  scaled<<<dim3((cols + 31) / 32, (rows + 7) / 8), dim3(32, 8)>>>(x, y, rows, cols);
}
