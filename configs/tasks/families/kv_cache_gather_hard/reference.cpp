#include <cmath>

// With a tolerance of 0.25 the bound is below half a unit in the last place: exact, in effect.
extern "C" void reference(const double* cache, const int* block_table, const int* lengths,
                          double* out, double* out_scale, int sequences, int blocks, int page_size,
                          int /*pages*/, int width, int window) {
  for (long q = 0; q < sequences; ++q) {
    for (long w = 0; w < window; ++w) {
      const long t = long(lengths[q]) - window + w;
      const long page = t < 0 ? -1 : block_table[q * blocks + t / page_size];
      for (long c = 0; c < width; ++c) {
        const double value = page < 0 ? 0 : cache[(page * page_size + t % page_size) * width + c];
        out[(q * window + w) * width + c] = value;
        out_scale[(q * window + w) * width + c] = std::fabs(value);
      }
    }
  }
}
