#include "retrieval/guard/near_duplicates.hpp"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "tests/unit/retrieval/test_support.hpp"

namespace kernelmill {

namespace near_duplicates_test {

/// Two sets with this many shingles of their own and so many that they share.
std::pair<shingle_set, shingle_set> sets(size_t own, size_t shared, std::mt19937_64& random) {
  shingle_set a, b;
  for (size_t i = 0; i < shared; ++i) {
    a.push_back(random());
    b.push_back(a.back());
  }
  for (size_t i = 0; i < own; ++i) {
    a.push_back(random());
    b.push_back(random());
  }
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return {a, b};
}

double agreement(const code_signature& a, const code_signature& b) {
  size_t same = 0;
  for (size_t i = 0; i < a.size(); ++i) same += a[i] == b[i];
  return static_cast<double>(same) / static_cast<double>(a.size());
}

TEST(NearDuplicates, SignaturesAgreeAsOftenAsSetsOverlap) {
  std::mt19937_64 random{7};
  for (auto [own, shared] : {std::pair<size_t, size_t>{200, 0}, {100, 200}, {20, 360}}) {
    double mean = 0, expected = 0;
    for (int n = 0; n < 50; ++n) {
      auto [a, b] = sets(own, shared, random);
      mean += agreement(signature_of(a), signature_of(b)) / 50;
      expected = compare(a, b).jaccard;
    }
    EXPECT_NEAR(mean, expected, 0.03) << shared;
  }
}

TEST(NearDuplicates, WhatTheExactComparisonFindsIsFound) {
  std::mt19937_64 random{11};
  near_duplicates all;
  std::vector<shingle_set> like;
  for (int n = 0; n < 400; ++n) {
    auto [a, b] = sets(60, 340, random); // 340 / 460 = 0.74
    ASSERT_TRUE(near_duplicate(a, b));
    all.add(a, std::to_string(n));
    like.push_back(b);
  }
  int found = 0;
  for (int n = 0; n < 400; ++n)
    found += all.find(like[static_cast<size_t>(n)]) == std::to_string(n);
  EXPECT_GE(found, 398);
  for (int n = 0; n < 400; ++n) EXPECT_FALSE(all.find(sets(400, 0, random).first));
}

TEST(NearDuplicates, ARenamedKernelIsFoundAndAnotherIsNot) {
  near_duplicates all;
  all.add(shingles_of_code(test::row_sum_kernel), "sum");
  EXPECT_EQ(all.find(shingles_of_code(test::row_sum_renamed)), "sum");
  EXPECT_FALSE(all.find(shingles_of_code(test::transpose_kernel)));
}

TEST(NearDuplicates, EqualCodesAreKeptOnceAndMemoryIsBounded) {
  std::mt19937_64 random{3};
  auto [a, b] = sets(300, 0, random);
  near_duplicates all{10'000};
  all.add(a, "a");
  all.add(a, "again");
  EXPECT_EQ(all.size(), 1U);
  EXPECT_EQ(all.dropped(), 0U);
  all.add(b, "b");
  EXPECT_EQ(all.size(), 1U);
  EXPECT_EQ(all.dropped(), 1U);
  EXPECT_EQ(all.find(a), "a");
  EXPECT_FALSE(all.find(b));
}

TEST(NearDuplicates, CommentsOfPythonDoNotCountAndStringsStay) {
  const std::string plain = "import torch\nclass ModelNew(torch.nn.Module):\n"
                            "    def forward(self, x):\n        y = torch.relu(x)\n"
                            "        return y.sum(dim=1) * 2.0 + self.bias[0]\n";
  const std::string commented = "import torch  # the library, and (of course) its kernels\n"
                                "# We begin with a class, then call forward(x, y, z)\n"
                                "class ModelNew(torch.nn.Module):\n"
                                "    def forward(self, x):  # one input, one output, no state\n"
                                "        y = torch.relu(x)  # relu(x) = max(x, 0)\n"
                                "        return y.sum(dim=1) * 2.0 + self.bias[0]\n";
  EXPECT_EQ(shingles_of_code(plain), shingles_of_code(commented));
  EXPECT_NE(shingles_of(plain), shingles_of(commented)) << "comments of C++ alone";
  auto marked = "import torch\ndef f(x):\n    return g('# no comment', x, h(x))\n";
  auto other = "import torch\ndef f(x):\n    return g('\n";
  EXPECT_NE(shingles_of_code(marked), shingles_of_code(other));
}

} // namespace near_duplicates_test
} // namespace kernelmill
