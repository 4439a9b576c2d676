#include <cmath>

// With a tolerance of 0.25 the bound is below half a unit in the last place: exact, in effect.
extern "C" void reference(const double* cache, const int* block_table, const int* lengths,
                          double* out, double* out_scale, int sequences, int blocks, int page_size,
                          int /*pages*/, int width) {
  const long positions = long(blocks) * page_size;
  for (long q = 0; q < sequences; ++q) {
    for (long t = 0; t < positions; ++t) {
      const long page = block_table[q * blocks + t / page_size];
      for (long c = 0; c < width; ++c) {
        const double value =
            t < lengths[q] ? cache[(page * width + c) * page_size + t % page_size] : 0;
        out[(q * positions + t) * width + c] = value;
        out_scale[(q * positions + t) * width + c] = std::fabs(value);
      }
    }
  }
}
