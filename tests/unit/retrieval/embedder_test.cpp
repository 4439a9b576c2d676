#include <cmath>

#include <gtest/gtest.h>

#include "retrieval/search/hashed_lexical_embedder.hpp"

namespace kernelmill {

namespace embedder_test {

std::vector<float> embed(const std::string& text, size_t dimension = default_lexical_dimension) {
  hashed_lexical_embedder x{dimension};
  return x.embed({text}).value();
}

double cosine(const std::string& a, const std::string& b) {
  auto x = embed(a), y = embed(b);
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += double{x[i]} * y[i];
  return sum;
}

double length(const std::vector<float>& x) {
  double sum = 0;
  for (auto v : x) sum += double{v} * v;
  return std::sqrt(sum);
}

TEST(LexicalEmbedder, VectorsHaveLengthOneOrAreZero) {
  EXPECT_NEAR(length(embed("softmax over rows")), 1, 1e-6);
  EXPECT_NEAR(length(embed(std::string(200000, 'a') + " softmax")), 0, 1e-6); // beyond the limit
  for (const char* nothing : {"", " \n\t", "the of and", "+ - * / ( )", "\xff\xfe\x80", "1 22 333"})
    EXPECT_EQ(length(embed(nothing)), 0) << nothing;
}

TEST(LexicalEmbedder, TheSameTextGivesTheSameVectorInAnyCompany) {
  hashed_lexical_embedder x;
  auto both = x.embed({"row_sum of floats", "transpose"}).value();
  auto alone = embed("row_sum of floats");
  EXPECT_TRUE(std::equal(alone.begin(), alone.end(), both.begin()));
  EXPECT_EQ(both.size(), 2 * default_lexical_dimension);
}

TEST(LexicalEmbedder, TheVectorOfAWordNeverChanges) {
  // An index on disk outlives the program that built it: what changes these numbers must change
  // the embedder's identity too.
  auto x = embed("softmax", 16);
  std::vector<float> want{0.0000000F, 0.1223005F,  0.0000000F,  0.2446009F,  0.1223005F, 0.0000000F,
                          0.0000000F, 0.0000000F,  0.0000000F,  -0.1223005F, 0.8635532F, 0.1223005F,
                          0.2446009F, -0.2446009F, -0.1223005F, 0.0000000F};
  ASSERT_EQ(x.size(), want.size());
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], want[i], 1e-6) << i;
  EXPECT_EQ(hashed_lexical_embedder{16}.identity(), "hashed-lexical/2 dim=16");
}

TEST(LexicalEmbedder, IdentifiersMatchByTheirParts) {
  EXPECT_GT(cosine("row_sum", "rowSum"), 0.3);
  EXPECT_GT(cosine("row_sum", "rowSum"), cosine("row_sum", "column_max"));
  EXPECT_GT(cosine("layer_norm_kernel", "kernel for a norm of each layer"), 0.2);
}

TEST(LexicalEmbedder, SpellingsBringRelatedWordsTogether) {
  EXPECT_GT(cosine("normalization", "normalize"), 0.15);
  EXPECT_GT(cosine("reduction", "reductions"), 0.2);
  EXPECT_LT(std::abs(cosine("reduction", "histogram")), 0.1);
}

TEST(LexicalEmbedder, CaseAndStopWordsDoNotCount) {
  EXPECT_NEAR(cosine("SOFTMAX of the ROWS", "softmax rows"), 1, 1e-6);
  EXPECT_NEAR(cosine("relu shape 16x64", "relu"), 1, 1e-6) << "every problem has a shape";
}

} // namespace embedder_test
} // namespace kernelmill
