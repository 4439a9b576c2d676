extern "C" void solve(const float* cache, const int* block_table, const int* lengths, float* out,
                      int sequences, int blocks, int page_size, int /*pages*/, int width) {
  const long positions = long(blocks) * page_size;
  for (long q = 0; q < sequences; ++q) {
    for (long t = 0; t < positions; ++t) {
      float* row = out + (q * positions + t) * width;
      if (t >= lengths[q]) {
        for (long c = 0; c < width; ++c) row[c] = 0;
        continue;
      }
      const float* page = cache + long(block_table[q * blocks + t / page_size]) * width * page_size;
      for (long c = 0; c < width; ++c) row[c] = page[c * page_size + t % page_size];
    }
  }
}
