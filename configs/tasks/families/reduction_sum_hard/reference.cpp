#include <algorithm>
#include <cmath>
#include <vector>

// The bound of native/row_sum, along the middle axis: the sum of |x| and sqrt(mid) times the
// largest partial sum. Rows are walked in order so that it stays cheap.
extern "C" void reference(const double* x, double* y, double* y_scale, int outer, int mid,
                          int inner) {
  std::vector<double> largest(inner);
  for (long o = 0; o < outer; ++o) {
    double* sum = y + o * inner;
    double* scale = y_scale + o * inner;
    for (int i = 0; i < inner; ++i) sum[i] = scale[i] = largest[i] = 0;
    for (long m = 0; m < mid; ++m) {
      const double* row = x + (o * mid + m) * inner;
      for (int i = 0; i < inner; ++i) {
        sum[i] += row[i];
        scale[i] += std::fabs(row[i]);
        largest[i] = std::max(largest[i], std::fabs(sum[i]));
      }
    }
    for (int i = 0; i < inner; ++i) scale[i] += std::sqrt(double(mid)) * largest[i];
  }
}
