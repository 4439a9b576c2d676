// bench: f(x float[1048576], y out float[1], n = 1048576) within 1e-4
void f(const float* x, float* y, int n) {
  std::vector<float> parts(omp_get_max_threads() * 16); // one line for each thread
#pragma omp parallel
  {
    float s = 0; // in a register, written once
#pragma omp for
    for (int i = 0; i < n; ++i) s += std::fabs(x[i]);
    parts[omp_get_thread_num() * 16] = s;
  }
  y[0] = 0;
  for (size_t t = 0; t < parts.size(); t += 16) y[0] += parts[t];
}
