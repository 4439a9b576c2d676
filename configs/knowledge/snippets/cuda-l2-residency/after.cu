cudaError_t keep_in_l2(cudaStream_t stream, void* data, size_t bytes, size_t reserved) {
  cudaError_t e = cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, reserved);
  if (e != cudaSuccess) return e;
  cudaStreamAttrValue a{};
  a.accessPolicyWindow.base_ptr = data;
  a.accessPolicyWindow.num_bytes = bytes;
  a.accessPolicyWindow.hitRatio = std::min(1.0f, (float)reserved / bytes);
  a.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
  a.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
  return cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &a);
}
