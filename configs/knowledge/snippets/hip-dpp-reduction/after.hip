template <int control, int row_mask = 0xf>
__device__ float moved(float v) {
  int bits = __builtin_amdgcn_update_dpp(0, __float_as_int(v), control, row_mask, 0xf, false);
  return __int_as_float(bits); // 0 where no lane gives one
}
__device__ float wave_sum(float v) {
  v += moved<0x111>(v);      // row_shr:1
  v += moved<0x112>(v);      // row_shr:2
  v += moved<0x114>(v);      // row_shr:4
  v += moved<0x118>(v);      // row_shr:8; lane 15 of each row has its sum
  v += moved<0x142, 0xa>(v); // row_bcast:15 into rows 1 and 3
  v += moved<0x143, 0xc>(v); // row_bcast:31 into rows 2 and 3
  return __int_as_float(__builtin_amdgcn_readlane(__float_as_int(v), 63));
}
