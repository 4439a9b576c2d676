// The scale is explained in reference.cpp. One thread serves one token in the host's order.
__global__ void route(const float* scores, int* index, double* weight, double* weight_scale,
                      int tokens, int experts, int k) {
  const long t = long(blockIdx.x) * blockDim.x + threadIdx.x;
  if (t >= tokens) return;
  const float* row = scores + t * experts;
  int* chosen = index + t * k;
  double* out = weight + t * k;
  double first = 0, sum = 0;
  float last = 0;
  int last_index = -1;
  for (int j = 0; j < k; ++j) {
    int best = -1;
    float top = 0;
    for (int e = 0; e < experts; ++e) {
      // Behind the expert chosen last, in the order (score descending, index ascending).
      const float score = row[e];
      const bool behind = j == 0 || score < last || (score == last && e > last_index);
      if (behind && (best < 0 || score > top)) {
        best = e;
        top = score;
      }
    }
    chosen[j] = last_index = best;
    last = top;
    if (j == 0) first = top;
    out[j] = exp(double(top) - first);
    sum += out[j];
  }
  for (int j = 0; j < k; ++j) {
    const double value = out[j] / sum;
    const double terms = 6 + sqrt(double(k)) + fabs(first) + fabs(double(row[chosen[j]]));
    out[j] = value;
    weight_scale[t * k + j] = value > 0 ? value * terms : 0;
  }
}

extern "C" void reference(const float* scores, int* index, double* weight, double* weight_scale,
                          int tokens, int experts, int k) {
  const int threads = 128;
  const unsigned blocks = unsigned((long(tokens) + threads - 1) / threads);
  route<<<blocks, threads>>>(scores, index, weight, weight_scale, tokens, experts, k);
}
