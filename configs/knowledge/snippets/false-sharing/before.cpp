// bench: f(x float[1048576], y out float[1], n = 1048576) within 1e-4
void f(const float* x, float* y, int n) {
  std::vector<float> parts(omp_get_max_threads());
#pragma omp parallel
  {
    float* mine = &parts[omp_get_thread_num()];
#pragma omp for
    for (int i = 0; i < n; ++i) *mine += std::fabs(x[i]);
  }
  y[0] = 0;
  for (float part : parts) y[0] += part;
}
