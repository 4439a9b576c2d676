extern "C" void solve(const float* cache, const int* block_table, const int* lengths, float* out,
                      int sequences, int blocks, int page_size, int /*pages*/, int width) {
  const long positions = long(blocks) * page_size;
  for (long q = 0; q < sequences; ++q) {
    for (long t = 0; t < positions; ++t) {
      const bool valid = t < lengths[q];
      const long page = block_table[q * blocks + t / page_size];
      for (long c = 0; c < width; ++c)
        out[(q * positions + t) * width + c] =
            valid ? cache[(page * width + c) * page_size + t % page_size] : 0.0f;
    }
  }
}
