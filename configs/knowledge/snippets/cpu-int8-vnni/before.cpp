// bench: f(x uint8[16384 < 256], w int8[16384 < 127], y out int[1], n = 16384) within 0
void f(const unsigned char* x, const signed char* w, int* y, int n) {
  int s = 0;
  for (int i = 0; i < n; ++i) s += x[i] * w[i];
  y[0] = s;
}
