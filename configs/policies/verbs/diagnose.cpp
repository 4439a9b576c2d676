// Whole runs: place and column count along, so that nothing is divided.
extern "C" void solve(const float* x, const float* table, float* y, int n, int period, int groups) {
  long e = 0;
  for (int column = 0; e < n; column = column + 1 < groups ? column + 1 : 0) {
    const long left = n - e, run = period < left ? period : left;
    for (long place = 0; place < run; ++place)
      y[e + place] = x[e + place] * table[place * groups + column];
    e += run;
  }
}
