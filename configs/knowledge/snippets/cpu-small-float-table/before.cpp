// bench: f(code uint8[32768 < 16], table float[16], y out float[32768], n = 32768) within 0
void f(const unsigned char* code, const float* table, float* y, int n) {
  for (int i = 0; i < n; ++i) y[i] = table[code[i]];
}
