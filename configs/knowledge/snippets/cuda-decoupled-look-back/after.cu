// High half: 0 nothing yet, 1 the sum of the tile alone, 2 the sum up to its end. Low half: the sum.
__device__ unsigned look_back(volatile unsigned long long* state, int tile, unsigned own) {
  state[tile] = (tile == 0 ? 2ull : 1ull) << 32 | own;
  unsigned before = 0;
  for (int t = tile - 1; t >= 0;) {
    unsigned long long s = state[t];
    if (s >> 32 == 0) continue; // that block runs, and will write
    before += (unsigned)s;
    if (s >> 32 == 2) break;
    --t;
  }
  if (tile > 0) state[tile] = 2ull << 32 | (before + own);
  return before;
}
