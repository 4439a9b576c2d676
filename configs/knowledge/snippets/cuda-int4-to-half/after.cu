// Eight unsigned nibbles with zero point 8 to halves -8..7; the order of pairs is 0 4, 1 5, 2 6, 3 7.
__device__ void unpack(unsigned q, __half2 (&h)[4]) {
  const unsigned low = 0x000f000f, high = 0x00f000f0, magic = 0x64006400; // magic: two times 1024
  auto as_half2 = [](unsigned bits) { return *reinterpret_cast<__half2*>(&bits); };
  __half2 minus = __float2half2_rn(-1032.0f), sixteenth = __float2half2_rn(0.0625f);
  __half2 minus_high = __float2half2_rn(-72.0f); // -(1024 / 16 + 8)
  h[0] = __hadd2(as_half2((q & low) | magic), minus);
  h[1] = __hfma2(as_half2((q & high) | magic), sixteenth, minus_high);
  q >>= 8;
  h[2] = __hadd2(as_half2((q & low) | magic), minus);
  h[3] = __hfma2(as_half2((q & high) | magic), sixteenth, minus_high);
}
