#include "actors/search/search_niche.hpp"

#include <gtest/gtest.h>

namespace kernelmill::search_niche_test {

using search::niche_of;

TEST(search_niche, a_source_without_a_technique_is_plain) {
  EXPECT_EQ(niche_of("for (int i = 0; i < n; ++i) y[i] = x[i];"), "plain");
  EXPECT_EQ(niche_of(""), "plain");
}

TEST(search_niche, techniques_come_in_one_order) {
  EXPECT_EQ(niche_of("#pragma omp parallel for\n__m256 a = _mm256_loadu_ps(x);"), "simd+threads");
  EXPECT_EQ(niche_of("auto a = _mm256_loadu_ps(x);\n#pragma omp parallel for\n"), "simd+threads");
}

TEST(search_niche, kernels_of_gpus_have_niches_of_their_own) {
  EXPECT_EQ(niche_of("__shared__ float t[32]; float4 v = *p; s += __shfl_down_sync(~0u, s, 1);"),
            "shared_memory+vector_loads+warp");
  EXPECT_EQ(niche_of("acc = tl.dot(a.to(tl.float16), b)"), "half+tensor_cores");
}

} // namespace kernelmill::search_niche_test
