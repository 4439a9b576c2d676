#include "actors/search/search_niche.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "messages/base/text.hpp"

namespace kernelmill::search {

namespace {

struct technique {
  const char* name;
  std::vector<std::string_view> signs; ///< any of them, in small letters
};

const std::array<technique, 9>& techniques() {
  static const std::array<technique, 9> result{{
      {"async_copy", {"cp.async", "memcpy_async", "cuda::pipeline", "tma_", "tensormap"}},
      {"half", {"__half", "half2", "bfloat16", "__nv_fp8", "float16", "_fp16"}},
      {"library", {"cublas", "cudnn", "torch.matmul", "torch.nn.functional", "at::"}},
      {"shared_memory", {"__shared__"}},
      {"simd", {"_mm256_", "_mm512_", "_mm_", "omp simd", "vector_size"}},
      {"tensor_cores", {"wmma", "mma.sync", "wgmma", "tl.dot"}},
      {"threads", {"omp parallel", "std::thread", "std::jthread"}},
      {"vector_loads", {"float4", "float2", "int4", "uint4", "double2", "ld.global.v"}},
      {"warp", {"__shfl", "__reduce_", "cooperative_groups", "tiled_partition"}},
  }};
  return result;
}

} // namespace

std::string niche_of(std::string_view source) {
  auto text = lowered(source);
  std::vector<const char*> used;
  for (const auto& x : techniques())
    if (std::any_of(x.signs.begin(), x.signs.end(),
                    [&](std::string_view sign) { return text.find(sign) != text.npos; }))
      used.push_back(x.name);
  return used.empty() ? "plain" : joined(used, "+");
}

} // namespace kernelmill::search
