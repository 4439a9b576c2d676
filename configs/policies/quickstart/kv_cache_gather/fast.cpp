#include <algorithm>
#include <cstring>

// A page is a width x page_size matrix to be transposed. Blocks of 8 x 8 read and write whole lines
// instead of walking the page with a stride for every position.
static void turn(const float* page, float* out, long width, long page_size, long count) {
  for (long s = 0; s < count; s += 8) {
    for (long c = 0; c < width; c += 8) {
      if (s + 8 <= count && c + 8 <= width) {
        float block[8][8];
        for (int i = 0; i < 8; ++i)
          for (int j = 0; j < 8; ++j) block[i][j] = page[(c + i) * page_size + s + j];
        for (int j = 0; j < 8; ++j)
          for (int i = 0; i < 8; ++i) out[(s + j) * width + c + i] = block[i][j];
      } else {
        for (long j = s; j < std::min(s + 8, count); ++j)
          for (long i = c; i < std::min(c + 8, width); ++i)
            out[j * width + i] = page[i * page_size + j];
      }
    }
  }
}

extern "C" void solve(const float* cache, const int* block_table, const int* lengths, float* out,
                      int sequences, int blocks, int page_size, int /*pages*/, int width) {
  const long positions = long(blocks) * page_size;
  for (long q = 0; q < sequences; ++q) {
    float* sequence = out + q * positions * width;
    const long length = lengths[q];
    for (long first = 0; first < length; first += page_size) {
      const long page = block_table[q * blocks + first / page_size];
      turn(cache + page * width * page_size, sequence + first * width, width, page_size,
           std::min<long>(page_size, length - first));
    }
    std::memset(sequence + length * width, 0, sizeof(float) * (positions - length) * width);
  }
}
