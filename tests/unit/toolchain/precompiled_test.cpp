#include "gpu/toolchain/precompiled.hpp"

#include <gtest/gtest.h>

namespace kernelmill {
namespace precompiled_test {

TEST(precompiled_headers, are_wanted_for_headers_that_are_dear_to_parse) {
  EXPECT_TRUE(wants_precompiled_headers("#include <vector>\n"));
  EXPECT_TRUE(wants_precompiled_headers("  #  include   <immintrin.h>\r\nint x;"));
  EXPECT_TRUE(wants_precompiled_headers("#include <cstdint>\n#include <cmath>"));
}

TEST(precompiled_headers, are_not_wanted_for_headers_that_cost_nothing) {
  EXPECT_FALSE(wants_precompiled_headers(""));
  EXPECT_FALSE(wants_precompiled_headers("#include <cstddef>\n#include <stdint.h>\n"));
  EXPECT_FALSE(wants_precompiled_headers("#include \"vector\"\n"));
  EXPECT_FALSE(wants_precompiled_headers("// include <vector>\n"));
}

TEST(precompiled_headers, are_not_wanted_when_the_source_could_change_what_a_header_means) {
  EXPECT_FALSE(wants_precompiled_headers("#define NDEBUG\n#include <vector>\n"));
  EXPECT_FALSE(wants_precompiled_headers("#pragma GCC optimize(\"O1\")\n#include <cmath>\n"));
  EXPECT_FALSE(wants_precompiled_headers("#undef __AVX2__\n#include <cmath>\n"));
  EXPECT_TRUE(wants_precompiled_headers("#include <cmath>\n#define N 4\n#pragma omp simd\n"));
}

TEST(precompiled_headers, text_wants_itself) {
  EXPECT_TRUE(wants_precompiled_headers(precompiled_header_text));
}

} // namespace precompiled_test
} // namespace kernelmill
