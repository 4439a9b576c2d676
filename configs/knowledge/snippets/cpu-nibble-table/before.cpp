// bench: f(x uint8[32768 < 256], table int8[16 < 120], low out int8[32768], high out int8[32768], n = 32768) within 0
void f(const unsigned char* x, const signed char* table, signed char* low, signed char* high,
       int n) {
  for (int i = 0; i < n; ++i) {
    low[i] = table[x[i] & 15];
    high[i] = table[x[i] >> 4];
  }
}
