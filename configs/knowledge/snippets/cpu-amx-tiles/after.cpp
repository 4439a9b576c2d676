struct alignas(64) tile_config {
  unsigned char palette = 1, start_row = 0, reserved[14] = {};
  unsigned short bytes_per_row[16] = {64, 64, 64};
  unsigned char rows[16] = {16, 16, 16};
};
// c[16][16] += a[16][32] * b, with b[16][16][2] interleaved from b[32][16]; strides in bytes.
void tile_product(const unsigned short* a, const unsigned short* b, float* c, int blocks) {
  tile_config config;
  _tile_loadconfig(&config);
  _tile_loadd(0, c, 64);
  for (int k = 0; k < blocks; ++k) {
    _tile_loadd(1, a + k * 512, 64);
    _tile_loadd(2, b + k * 512, 64);
    _tile_dpbf16ps(0, 1, 2);
  }
  _tile_stored(0, c, 64);
  _tile_release();
}
