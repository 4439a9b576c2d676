extern "C" void solve(const float* cache, const int* block_table, const int* lengths, float* out,
                      int sequences, int blocks, int page_size, int pages, int width) {
  for (int q = 0; q < sequences; ++q)
    for (int t = 0; t < length[q]; ++t)
      for (int c = 0; c < width; ++c)
        out[(q * blocks * page_size + t) * width + c] = cache[block_table[q * blocks + t / page_size]][c][t % page_size];
}
