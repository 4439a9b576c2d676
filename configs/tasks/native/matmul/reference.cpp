#include <cmath>

// k additions of terms of size |a||b|, whatever their order: sqrt(k) * sum |a||b|.
extern "C" void reference(const double* a, const double* b, double* c, double* c_scale, int m,
                          int n, int k) {
  const double root = std::sqrt(double(k));
  for (int i = 0; i < m; ++i) {
    double* sum = c + long(i) * n;
    double* absolute = c_scale + long(i) * n;
    for (int j = 0; j < n; ++j) sum[j] = absolute[j] = 0;
    for (int t = 0; t < k; ++t) {
      const double left = a[long(i) * k + t];
      const double* right = b + long(t) * n;
      for (int j = 0; j < n; ++j) {
        const double term = left * right[j];
        sum[j] += term;
        absolute[j] += std::fabs(term);
      }
    }
    for (int j = 0; j < n; ++j) absolute[j] *= root;
  }
}
