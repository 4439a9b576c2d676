__global__ void add_slices(const float* part, float* c, int slices, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float s = 0;
  for (int k = 0; k < slices; ++k) s += part[(size_t)k * count + i];
  c[i] = s;
}
// Enough slices to fill the SMs about once, each of at least 256 along k.
int slices_of(int tiles, int k, int sms) {
  int wanted = (sms + tiles - 1) / tiles;
  return std::max(1, std::min(wanted, k / 256));
}
