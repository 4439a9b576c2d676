#include <cstring>

// Eight lanes scan by shifts of 1, 2 and 4. Only one addition and one broadcast depend on the block
// before, where the plain loop waits for eight additions.
using vector = float __attribute__((vector_size(32)));
using lanes = int __attribute__((vector_size(32)));

extern "C" void solve(const float* x, float* y, int n) {
  const vector zero = {};
  vector carry = {};
  int i = 0;
  for (; i + 8 <= n; i += 8) {
    vector v;
    std::memcpy(&v, x + i, sizeof v);
    v += __builtin_shuffle(zero, v, lanes{0, 8, 9, 10, 11, 12, 13, 14});
    v += __builtin_shuffle(zero, v, lanes{0, 1, 8, 9, 10, 11, 12, 13});
    v += __builtin_shuffle(zero, v, lanes{0, 1, 2, 3, 8, 9, 10, 11});
    const vector total = __builtin_shuffle(v, lanes{7, 7, 7, 7, 7, 7, 7, 7});
    v += carry;
    carry += total;
    std::memcpy(y + i, &v, sizeof v);
  }
  float sum = carry[0];
  for (; i < n; ++i) y[i] = sum += x[i];
}
