// Running maximum and sum in one pass, merged over the block; then one pass that writes.
struct state {
  float top = -INFINITY, sum = 0;
};

__device__ state merge(state a, state b) {
  const float top = fmaxf(a.top, b.top);
  if (top == -INFINITY) return a;
  return {top, a.sum * expf(a.top - top) + b.sum * expf(b.top - top)};
}

__device__ void add(state& s, float value) {
  if (value > s.top) {
    s.sum = s.sum * expf(s.top - value) + 1;
    s.top = value;
  } else if (value > -INFINITY) {
    s.sum += expf(value - s.top);
  }
}

__global__ void softmax(const float* x, float* y, int cols) {
  __shared__ float tops[32], sums[32];
  const float* in = x + long(blockIdx.x) * cols;
  float* out = y + long(blockIdx.x) * cols;
  const bool aligned = cols % 4 == 0;
  state s;
  if (aligned) {
    for (int j = threadIdx.x; j < cols / 4; j += blockDim.x) {
      const float4 v = reinterpret_cast<const float4*>(in)[j];
      add(s, v.x), add(s, v.y), add(s, v.z), add(s, v.w);
    }
  } else {
    for (int j = threadIdx.x; j < cols; j += blockDim.x) add(s, in[j]);
  }
  for (int step = 16; step > 0; step /= 2)
    s = merge(s, {__shfl_xor_sync(~0u, s.top, step), __shfl_xor_sync(~0u, s.sum, step)});
  if (threadIdx.x % 32 == 0) {
    tops[threadIdx.x / 32] = s.top;
    sums[threadIdx.x / 32] = s.sum;
  }
  __syncthreads();
  s = {tops[0], sums[0]};
  for (int w = 1; w < blockDim.x / 32; ++w) s = merge(s, {tops[w], sums[w]});
  const float factor = 1 / s.sum;
  if (aligned) {
    for (int j = threadIdx.x; j < cols / 4; j += blockDim.x) {
      const float4 v = reinterpret_cast<const float4*>(in)[j];
      reinterpret_cast<float4*>(out)[j] = {expf(v.x - s.top) * factor, expf(v.y - s.top) * factor,
                                           expf(v.z - s.top) * factor, expf(v.w - s.top) * factor};
    }
  } else {
    for (int j = threadIdx.x; j < cols; j += blockDim.x) out[j] = expf(in[j] - s.top) * factor;
  }
}

extern "C" void solve(const float* x, float* y, int rows, int cols) {
  softmax<<<rows, cols > 4096 ? 1024 : 128>>>(x, y, cols);
}
