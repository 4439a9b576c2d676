// The search by bytes gives what a scan over the floats gives: the same rows in the same order, on
// data where rounding matters, with each of the loops that this machine can run.

#include "retrieval/search/vector_index.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <thread>

#include <gmock/gmock.h>

#include "retrieval/search/byte_rows.hpp"
#include "retrieval/search/embedder.hpp"
#include "tests/unit/retrieval/test_support.hpp"

namespace kernelmill {

namespace vector_index_test {

using test::failure;
using ::testing::HasSubstr;

std::vector<float> random_rows(size_t count, size_t dimension, unsigned seed) {
  std::mt19937 engine{seed};
  std::normal_distribution<float> normal;
  std::vector<float> rows(count * dimension);
  for (auto& x : rows) x = normal(engine);
  for (size_t i = 0; i < count; ++i) normalize(rows.data() + i * dimension, dimension);
  return rows;
}

/// Rows that lie close together in groups of a hundred.
std::vector<float> clustered_rows(size_t count, size_t dimension, unsigned seed) {
  auto centres = random_rows(std::max<size_t>(1, count / 100), dimension, seed);
  auto rows = random_rows(count, dimension, seed + 1);
  auto groups = centres.size() / dimension;
  for (size_t i = 0; i < rows.size(); ++i)
    rows[i] = centres[i / dimension % groups * dimension + i % dimension] + 0.3F * rows[i];
  for (size_t i = 0; i < count; ++i) normalize(rows.data() + i * dimension, dimension);
  return rows;
}

std::vector<neighbour> by_floats(const std::vector<float>& rows, const float* query,
                                 size_t dimension, size_t count) {
  std::vector<neighbour> result;
  for (size_t i = 0; i < rows.size() / dimension; ++i)
    result.push_back({i, inner_product(query, rows.data() + i * dimension, dimension)});
  std::sort(result.begin(), result.end(), [](const neighbour& a, const neighbour& b) {
    return a.score != b.score ? a.score > b.score : a.row < b.row;
  });
  result.resize(std::min(count, result.size()));
  return result;
}

vector_index index_of(const std::vector<float>& rows, size_t dimension) {
  vector_index x{dimension};
  if (auto added = x.add(rows); !added) throw std::runtime_error(failure(added));
  return x;
}

void expect_same(const std::vector<neighbour>& got, const std::vector<neighbour>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].row, want[i].row) << "place " << i;
    EXPECT_EQ(got[i].score, want[i].score) << "place " << i;
  }
}

void expect_exact(const std::vector<float>& rows, const std::vector<float>& queries,
                  size_t dimension, size_t count) {
  auto got = index_of(rows, dimension).search_all(queries, count);
  ASSERT_TRUE(got) << failure(got);
  ASSERT_EQ(got->size(), queries.size() / dimension);
  for (size_t i = 0; i < got->size(); ++i)
    expect_same((*got)[i], by_floats(rows, queries.data() + i * dimension, dimension, count));
}

TEST(ByteRows, EveryLoopGivesTheSameProducts) {
  std::mt19937 engine{7};
  for (size_t dimension : {1, 64, 127, 128, 129, 768, 1000}) {
    auto stride = byte_row_stride(dimension);
    const size_t count = 11;
    std::vector<uint8_t> rows(count * stride);
    std::vector<int8_t> query(stride);
    for (auto& x : rows) x = static_cast<uint8_t>(engine() % 255 + 1);
    for (auto& x : query) x = static_cast<int8_t>(static_cast<int>(engine() % 255) - 127);
    std::fill(rows.begin(), rows.begin() + static_cast<long>(stride), uint8_t{255});
    std::vector<int32_t> want(count);
    byte_scans().back().scan(rows.data(), count, stride, query.data(), want.data());
    for (const auto& x : byte_scans()) {
      std::vector<int32_t> got(count);
      x.scan(rows.data(), count, stride, query.data(), got.data());
      EXPECT_EQ(got, want) << x.name << ", dimension " << dimension;
    }
  }
}

TEST(ByteRows, TheBoundHoldsForEveryPair) {
  const size_t dimension = 100;
  auto rows = random_rows(60, dimension, 3);
  rows[5] = 40; // one number that takes the scale for itself
  std::vector<int8_t> x(byte_row_stride(dimension)), y = x;
  for (size_t i = 0; i < 60; ++i) {
    for (size_t j = 0; j < 60; ++j) {
      const auto *a = rows.data() + i * dimension, *b = rows.data() + j * dimension;
      auto p = round_row(a, dimension, x.data()), q = round_row(b, dimension, y.data());
      double exact = 0, rough = 0;
      for (size_t k = 0; k < dimension; ++k) {
        exact += double{a[k]} * b[k];
        rough += double{p.scale} * x[k] * (double{q.scale} * y[k]);
      }
      EXPECT_LE(std::fabs(exact - rough), double{p.error} * q.norm + double{p.norm} * q.error);
    }
  }
}

TEST(VectorIndex, RandomAndClusteredRowsAreRankedAsByFloats) {
  const size_t dimension = 128;
  for (size_t count : {1, 10, 200}) {
    expect_exact(random_rows(1500, dimension, 1), random_rows(5, dimension, 2), dimension, count);
    auto rows = clustered_rows(1500, dimension, 1);
    std::vector<float> queries(rows.begin(), rows.begin() + 5 * dimension);
    expect_exact(rows, queries, dimension, count);
  }
}

TEST(VectorIndex, RowsThatDifferByLessThanRoundingAreToldApart) {
  const size_t dimension = 64;
  auto one = random_rows(1, dimension, 5);
  std::vector<float> rows;
  std::mt19937 engine{6};
  std::normal_distribution<float> normal{0, 1e-5F};
  for (size_t i = 0; i < 2000; ++i)
    for (auto x : one) rows.push_back(x + normal(engine));
  expect_exact(rows, one, dimension, 10);
}

TEST(VectorIndex, EqualScoresAreOrderedByPosition) {
  const size_t dimension = 32;
  auto one = random_rows(1, dimension, 8);
  std::vector<float> rows;
  for (size_t i = 0; i < 500; ++i) rows.insert(rows.end(), one.begin(), one.end());
  auto got = index_of(rows, dimension).search(one, 5);
  ASSERT_TRUE(got) << failure(got);
  ASSERT_EQ(got->size(), 5U);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ((*got)[i].row, i);
}

TEST(VectorIndex, RowsOfAnyLengthAreRankedAsByFloats) {
  const size_t dimension = 33;
  auto rows = random_rows(700, dimension, 9);
  for (size_t i = 0; i < 700; ++i)
    for (size_t k = 0; k < dimension; ++k)
      rows[i * dimension + k] *= std::pow(10.F, static_cast<float>(i % 30) - 20);
  std::fill_n(rows.begin() + 40 * dimension, dimension, 0.F);
  expect_exact(rows, random_rows(5, dimension, 10), dimension, 25);
  expect_exact(rows, std::vector<float>(dimension, 0.F), dimension, 25);
}

TEST(VectorIndex, LiftedRowsAreRankedBySumAndSomeAreLeftOut) {
  const size_t dimension = 96, count = 1000;
  auto rows = random_rows(count, dimension, 19), queries = random_rows(4, dimension, 20);
  auto of = [](size_t row) {
    if (row % 5 == 0) return -std::numeric_limits<float>::infinity();
    return row % 7 == 0 ? 0.15F : row % 3 == 0 ? 0.05F : 0.F;
  };
  auto x = index_of(rows, dimension);
  for (size_t most : {10, 3000}) {
    auto got = x.search_all(queries, most, {of, 0.15F});
    ASSERT_TRUE(got) << failure(got);
    for (size_t i = 0; i < 4; ++i) {
      auto want = by_floats(rows, queries.data() + i * dimension, dimension, count);
      std::erase_if(want, [&](const neighbour& hit) { return hit.row % 5 == 0; });
      for (auto& hit : want) hit.score += of(hit.row);
      std::sort(want.begin(), want.end(), [](const neighbour& a, const neighbour& b) {
        return a.score != b.score ? a.score > b.score : a.row < b.row;
      });
      want.resize(std::min(most, want.size()));
      expect_same((*got)[i], want);
    }
  }
}

TEST(VectorIndex, AddingOneByOneIsAddingAtOnce) {
  const size_t dimension = 48;
  auto rows = random_rows(2500, dimension, 11), queries = random_rows(5, dimension, 12);
  vector_index x{dimension};
  for (size_t i = 0; i < 2500; ++i)
    ASSERT_TRUE(x.add({rows.begin() + static_cast<long>(i * dimension),
                       rows.begin() + static_cast<long>((i + 1) * dimension)}));
  EXPECT_EQ(x.size(), 2500U);
  auto got = x.search_all(queries, 20), want = index_of(rows, dimension).search_all(queries, 20);
  ASSERT_TRUE(got && want);
  for (size_t i = 0; i < 5; ++i) expect_same((*got)[i], (*want)[i]);
}

TEST(VectorIndex, WhatIsMappedAnswersAlikeAndGrows) {
  test::temporary_folder folder;
  const size_t dimension = 100;
  auto rows = random_rows(300, dimension, 13), more = random_rows(40, dimension, 14);
  auto built = index_of(rows, dimension);
  auto file = folder / "rows";
  auto digest = built.save(file);
  ASSERT_TRUE(digest) << failure(digest);
  auto mapped = vector_index::load(file, *digest);
  ASSERT_TRUE(mapped) << failure(mapped);
  EXPECT_EQ(mapped->size(), 300U);
  EXPECT_EQ(mapped->dimension(), dimension);
  ASSERT_TRUE(mapped->add(more));
  rows.insert(rows.end(), more.begin(), more.end());
  for (size_t i : {0, 150, 310, 339}) {
    std::vector<float> query(rows.begin() + static_cast<long>(i * dimension),
                             rows.begin() + static_cast<long>((i + 1) * dimension));
    auto got = mapped->search(query, 10);
    ASSERT_TRUE(got) << failure(got);
    expect_same(*got, by_floats(rows, query.data(), dimension, 10));
  }
  auto again = mapped->save(folder / "again");
  ASSERT_TRUE(again) << failure(again);
  EXPECT_EQ(*again, *index_of(rows, dimension).save(folder / "whole"));
}

TEST(VectorIndex, ManyRowsInClustersAreReadByListsAndFound) {
  test::temporary_folder folder;
  const size_t dimension = 32, count = 4000;
  auto rows = clustered_rows(count, dimension, 21);
  auto digest = index_of(rows, dimension).save(folder / "rows", 1000);
  ASSERT_TRUE(digest) << failure(digest);
  auto x = vector_index::load(folder / "rows", *digest);
  ASSERT_TRUE(x) << failure(x);
  auto [read, of] = x->lists();
  EXPECT_EQ(of, 63U);
  EXPECT_GE(read, 2U);
  EXPECT_LE(read, of / 4);
  std::vector<float> added(dimension, 0.F);
  added[3] = 1;
  ASSERT_TRUE(x->add(added));
  EXPECT_EQ(x->search(added, 1)->front().row, count) << "what is added is in no list";
  size_t right = 0;
  for (size_t i = 0; i < 100; ++i) {
    const auto* query = rows.data() + i * 37 * dimension;
    auto got = x->search({query, query + dimension}, 10);
    ASSERT_TRUE(got) << failure(got);
    for (const auto& hit : by_floats(rows, query, dimension, 10))
      right += std::any_of(got->begin(), got->end(),
                           [&](const neighbour& y) { return y.row == hit.row; });
  }
  EXPECT_GE(right, 900U) << "of 1000; 990 of those that it was measured with";
}

TEST(VectorIndex, ManyRowsThatLieEverywhereAreAllRead) {
  test::temporary_folder folder;
  const size_t dimension = 32;
  auto rows = random_rows(3000, dimension, 22), queries = random_rows(5, dimension, 23);
  auto digest = index_of(rows, dimension).save(folder / "rows", 1000);
  ASSERT_TRUE(digest) << failure(digest);
  auto x = vector_index::load(folder / "rows", *digest);
  ASSERT_TRUE(x) << failure(x);
  EXPECT_EQ(x->lists().first, 0U);
  for (size_t i = 0; i < 5; ++i) {
    const auto* query = queries.data() + i * dimension;
    expect_same(*x->search({query, query + dimension}, 10), by_floats(rows, query, dimension, 10));
  }
}

TEST(VectorIndex, AFileThatIsNotTheOneWrittenIsRefused) {
  test::temporary_folder folder;
  auto file = folder / "rows";
  auto digest = index_of(random_rows(50, 64, 15), 64).save(file);
  ASSERT_TRUE(digest) << failure(digest);
  std::string bytes{std::istreambuf_iterator<char>{std::ifstream{file, std::ios::binary}.rdbuf()},
                    {}};
  auto refused = [&](const std::string& content) {
    folder.write("rows", content);
    return failure(vector_index::load(file, *digest));
  };
  for (size_t at : {size_t{8}, size_t{16}, size_t{100}, bytes.size() / 2, bytes.size() - 1}) {
    auto damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_THAT(refused(damaged), HasSubstr("index_damaged")) << "byte " << at;
  }
  for (size_t size : {size_t{0}, size_t{10}, size_t{64}, bytes.size() - 1})
    EXPECT_THAT(refused(bytes.substr(0, size)), HasSubstr("kernelmill index build")) << size;
  EXPECT_THAT(refused(bytes + "x"), HasSubstr("index_damaged"));
  EXPECT_THAT(refused("something else"), HasSubstr("index_damaged"));
  EXPECT_EQ(refused(bytes), "");
}

TEST(VectorIndex, NumbersThatAreNotFiniteAndOtherDimensionsAreErrors) {
  auto x = index_of(random_rows(3, 16, 16), 16);
  std::vector<float> row(16, 1.F);
  for (float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 3e38F}) {
    row[4] = bad;
    EXPECT_THAT(failure(x.add(row)), HasSubstr("index_failed"));
    EXPECT_THAT(failure(x.search(row, 1)), HasSubstr("index_failed"));
  }
  EXPECT_EQ(x.size(), 3U);
  EXPECT_THAT(failure(x.search(std::vector<float>(15), 1)), HasSubstr("15 floats, the index 16"));
  EXPECT_THAT(failure(x.add(std::vector<float>(17))), HasSubstr("index_failed"));
  EXPECT_TRUE(vector_index{16}.search(std::vector<float>(16), 3)->empty());
}

TEST(VectorIndex, SeveralThreadsMaySearchAtOnce) {
  const size_t dimension = 64;
  auto rows = random_rows(2000, dimension, 17), queries = random_rows(30, dimension, 18);
  auto x = index_of(rows, dimension);
  std::vector<expected<std::vector<std::vector<neighbour>>>> got(3);
  std::vector<std::thread> threads;
  for (auto& to : got) threads.emplace_back([&] { to = x.search_all(queries, 10); });
  for (auto& thread : threads) thread.join();
  for (const auto& one : got)
    for (size_t i = 0; i < 30; ++i)
      expect_same((*one)[i], by_floats(rows, queries.data() + i * dimension, dimension, 10));
}

TEST(VectorIndex, ASearchOfSomeRowsReadsThoseAlone) {
  constexpr size_t dimension = 48, count = 3000;
  auto rows = random_rows(count, dimension, 21), queries = random_rows(4, dimension, 22);
  vector_index x{dimension};
  for (size_t begin : {size_t{0}, size_t{700}, size_t{1900}}) { // in blocks of several sizes
    size_t end = begin == 0 ? 700 : begin == 700 ? 1900 : count;
    ASSERT_TRUE(x.add({rows.data() + begin * dimension, rows.data() + end * dimension}));
  }
  for (size_t i = 0; i < 4; ++i) {
    std::vector<float> query(queries.data() + i * dimension, queries.data() + (i + 1) * dimension);
    auto all = by_floats(rows, query.data(), dimension, count);
    EXPECT_EQ(x.score(query, 1950),
              inner_product(query.data(), &rows[1950 * dimension], dimension));
    using range = std::pair<size_t, size_t>;
    for (auto [first, last] : {range{0, 1}, range{5, 133}, range{690, 1910}, range{2999, 9999},
                               range{700, 700}, range{3000, 4000}}) {
      std::vector<neighbour> want;
      for (const auto& hit : all)
        if (hit.row >= first && hit.row < last && want.size() < 10) want.push_back(hit);
      auto got = x.search(query, 10, {{}, 0, first, last});
      ASSERT_TRUE(got) << failure(got);
      expect_same(*got, want);
    }
  }
}

} // namespace vector_index_test
} // namespace kernelmill
