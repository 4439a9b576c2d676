namespace {

constexpr int kTile = 32;

// One block per table entry and 32 channels: a transposition through shared memory, since a page
// has the channel first and the output the position.
__global__ void gather(const float* cache, const int* block_table, const int* lengths, float* out,
                       int blocks, int page_size, int width) {
  __shared__ float tile[kTile][kTile + 1]; // one more against bank conflicts
  const long channel_tiles = (width - 1) / kTile + 1;
  const long entry = blockIdx.x / channel_tiles;
  const long first_c = blockIdx.x % channel_tiles * kTile;
  const long q = entry / blocks;
  const long first_t = entry % blocks * page_size;
  const long valid = lengths[q] - first_t; // slots of this page that count; may be outside it
  const float* page = cache + long(block_table[entry]) * width * page_size;
  float* rows = out + entry * page_size * width;
  for (long first_s = 0; first_s < page_size; first_s += kTile) {
    const long s = first_s + threadIdx.x;
    for (int r = threadIdx.y; r < kTile; r += blockDim.y) {
      const long c = first_c + r;
      tile[r][threadIdx.x] = c < width && s < page_size && s < valid ? page[c * page_size + s] : 0;
    }
    __syncthreads();
    const long c = first_c + threadIdx.x;
    for (int r = threadIdx.y; r < kTile; r += blockDim.y)
      if (c < width && first_s + r < page_size)
        rows[(first_s + r) * width + c] = tile[threadIdx.x][r];
    __syncthreads();
  }
}

} // namespace

extern "C" void solve(const float* cache, const int* block_table, const int* lengths, float* out,
                      int sequences, int blocks, int page_size, int /*pages*/, int width) {
  const long tiles = long(sequences) * blocks * ((width - 1) / kTile + 1);
  gather<<<unsigned(tiles), dim3(kTile, 8)>>>(cache, block_table, lengths, out, blocks, page_size,
                                              width);
}
