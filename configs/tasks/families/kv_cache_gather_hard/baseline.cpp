extern "C" void solve(const float* cache, const int* block_table, const int* lengths, float* out,
                      int sequences, int blocks, int page_size, int /*pages*/, int width,
                      int window) {
  for (long q = 0; q < sequences; ++q) {
    for (long w = 0; w < window; ++w) {
      const long t = long(lengths[q]) - window + w;
      for (long c = 0; c < width; ++c) {
        float value = 0;
        if (t >= 0) {
          const long page = block_table[q * blocks + t / page_size];
          if (page >= 0) value = cache[(page * page_size + t % page_size) * width + c];
        }
        out[(q * window + w) * width + c] = value;
      }
    }
  }
}
