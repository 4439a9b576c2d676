#include "retrieval/search/bm25.hpp"

#include <cmath>
#include <map>
#include <random>
#include <set>
#include <thread>

#include <gmock/gmock.h>

#include "tests/unit/retrieval/test_support.hpp"

namespace kernelmill {
namespace bm25_test {

using test::failure;
using test::temporary_folder;
using ::testing::HasSubstr;

term_list terms_of(std::string_view text) {
  term_list result;
  add_words(result, text);
  return result;
}

std::vector<size_t> rows_of(const std::vector<neighbour>& xs) {
  std::vector<size_t> result;
  for (const auto& x : xs) result.push_back(x.row);
  return result;
}

/// Random rows over a vocabulary whose first terms are the most common.
std::vector<term_list> random_documents(size_t count, unsigned seed) {
  std::mt19937 engine{seed};
  std::geometric_distribution<uint64_t> term{0.01};
  std::vector<term_list> result(count);
  for (auto& x : result) {
    x.resize(engine() % 120);
    for (auto& one : x) one = 7919 * (1 + term(engine));
  }
  return result;
}

/// What the formula says of every row, written down a second time.
std::vector<neighbour> by_the_formula(const std::vector<term_list>& documents,
                                      const term_list& query, size_t count) {
  double all = static_cast<double>(documents.size()), length = 0;
  for (const auto& x : documents) length += static_cast<double>(x.size());
  auto times = [](const term_list& x, uint64_t term) {
    return static_cast<double>(std::count(x.begin(), x.end(), term));
  };
  std::vector<std::pair<size_t, uint64_t>> by_rarity;
  for (auto term : std::set<uint64_t>(query.begin(), query.end())) {
    size_t rows = 0;
    for (const auto& x : documents) rows += times(x, term) > 0;
    if (rows > 0) by_rarity.emplace_back(rows, term);
  }
  std::sort(by_rarity.begin(), by_rarity.end());
  std::map<size_t, double> scores;
  for (size_t i = 0, read = 0; i < std::min(by_rarity.size(), most_searched_terms); ++i) {
    auto [rows, term] = by_rarity[i];
    read += rows;
    if (i > 0 && read > most_read_rows) break;
    auto having = static_cast<double>(rows);
    auto rarity = std::log(1 + (all - having + 0.5) / (having + 0.5));
    for (size_t row = 0; row < documents.size(); ++row) {
      auto n = times(documents[row], term);
      if (n == 0) continue;
      auto relative = static_cast<double>(documents[row].size()) / (length / all);
      scores[row] += rarity * n * 2.2 / (n + 1.2 * (1 - 0.75 + 0.75 * relative));
    }
  }
  std::vector<neighbour> result;
  for (auto [row, score] : scores) result.push_back({row, static_cast<float>(score)});
  std::stable_sort(result.begin(), result.end(),
                   [](const neighbour& a, const neighbour& b) { return a.score > b.score; });
  if (result.size() > count) result.resize(count);
  return result;
}

void expect_alike(const std::vector<neighbour>& got, const std::vector<neighbour>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i].score, want[i].score, 1e-4 * (1 + want[i].score)) << i;
    // Rows whose scores differ by rounding alone may change places.
    bool tied = (i > 0 && std::abs(want[i].score - want[i - 1].score) < 1e-4F) ||
                (i + 1 < want.size() && std::abs(want[i].score - want[i + 1].score) < 1e-4F) ||
                i + 1 == want.size();
    EXPECT_TRUE(tied || got[i].row == want[i].row) << i;
  }
}

void expect_equal(const std::vector<neighbour>& got, const std::vector<neighbour>& want) {
  EXPECT_EQ(rows_of(got), rows_of(want));
  for (size_t i = 0; i < std::min(got.size(), want.size()); ++i)
    EXPECT_EQ(got[i].score, want[i].score) << i;
}

bm25_index index_of(const std::vector<term_list>& documents) {
  bm25_index result;
  for (const auto& x : documents) result.add(x);
  return result;
}

TEST(Words, IdentifiersCountWholeAndInParts) {
  EXPECT_THAT(terms_of("rowSum the 42 x"),
              ::testing::UnorderedElementsAreArray(terms_of("rowsum row sum")));
  EXPECT_NE(operator_term("sum"), terms_of("sum").front()) << "an operator is more than a word";
  EXPECT_TRUE(terms_of("\xff\xfe () 7up").empty());
}

TEST(BM25, RareTermsDecideAndRepetitionFades) {
  auto index = index_of({terms_of("sum sum sum sum of rows"),
                         terms_of("sum of argmin"),
                         terms_of("sum of columns"),
                         terms_of("sum of softmax"),
                         {}});
  EXPECT_EQ(rows_of(index.search(terms_of("sum argmin"), 9)).front(), 1U);
  EXPECT_EQ(index.search(terms_of("sum argmin"), 9).size(), 4U) << "a row without a term is none";
  EXPECT_TRUE(index.search(terms_of("histogram"), 9).empty());
  EXPECT_TRUE(index.search({}, 9).empty());
  EXPECT_TRUE(index.search(terms_of("sum"), 0).empty());
  EXPECT_EQ(index.rows_with(terms_of("sum").front()), 4U);
  EXPECT_EQ(index.rows_with(terms_of("histogram").front()), 0U);
  EXPECT_TRUE(bm25_index{}.search(terms_of("sum"), 3).empty());
  expect_equal(index.search(terms_of("sum argmin argmin argmin"), 9),
               index.search(terms_of("sum argmin"), 9));
}

TEST(BM25, EqualScoresComeByRow) {
  auto index = index_of(std::vector<term_list>(20, terms_of("sum")));
  EXPECT_EQ(rows_of(index.search(terms_of("sum"), 3)), (std::vector<size_t>{0, 1, 2}));
}

TEST(BM25, AFilterLeavesRowsOut) {
  auto index = index_of(std::vector<term_list>(20, terms_of("sum")));
  auto got = index.search(terms_of("sum"), 3, [](size_t row) { return row % 7 == 6; });
  EXPECT_EQ(rows_of(got), (std::vector<size_t>{6, 13}));
}

TEST(BM25, GivesWhatTheFormulaSays) {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    auto documents = random_documents(150, seed);
    auto index = index_of(documents);
    for (const auto& query : random_documents(20, seed + 100))
      for (size_t count : {1, 10, 1000})
        expect_alike(index.search(query, count), by_the_formula(documents, query, count));
  }
}

TEST(BM25, OfCommonTermsTheRarestAreRead) {
  std::vector<term_list> documents(40000);
  for (size_t i = 0; i < documents.size(); ++i) {
    documents[i] = {1, 2};
    if (i % 2 == 0) documents[i].push_back(3);
    if (i == 77) documents[i].push_back(4);
  }
  auto index = index_of(documents);
  expect_alike(index.search({1, 2, 3, 4}, 5), by_the_formula(documents, {1, 2, 3, 4}, 5));
  EXPECT_EQ(index.search({1}, 3).size(), 3U) << "one term is always read";
}

TEST(BM25, AFileAnswersLikeMemoryAndRowsCanBeAddedToIt) {
  temporary_folder folder;
  auto documents = random_documents(400, 9);
  std::vector<term_list> half(documents.begin(), documents.begin() + 250);
  auto digest = index_of(half).save(folder / "words");
  ASSERT_TRUE(digest) << failure(digest);
  auto stored = bm25_index::load(folder / "words", *digest);
  ASSERT_TRUE(stored) << failure(stored);
  EXPECT_EQ(stored->size(), 250U);
  auto memory = index_of(half);
  auto queries = random_documents(30, 10);
  for (const auto& query : queries)
    expect_equal(stored->search(query, 20), memory.search(query, 20));
  for (size_t i = 250; i < documents.size(); ++i) {
    stored->add(documents[i]);
    memory.add(documents[i]);
  }
  EXPECT_EQ(stored->rows_with(7919), memory.rows_with(7919));
  for (const auto& query : queries)
    expect_equal(stored->search(query, 20), memory.search(query, 20));
  // What was mapped and what was added become one file.
  auto again = stored->save(folder / "both");
  ASSERT_TRUE(again) << failure(again);
  EXPECT_EQ(*again, *memory.save(folder / "memory"));
  auto both = bm25_index::load(folder / "both", *again);
  ASSERT_TRUE(both) << failure(both);
  for (const auto& query : queries) expect_equal(both->search(query, 20), memory.search(query, 20));
}

TEST(BM25, AnEmptyIndexIsAFileToo) {
  temporary_folder folder;
  auto digest = bm25_index{}.save(folder / "words");
  ASSERT_TRUE(digest) << failure(digest);
  auto x = bm25_index::load(folder / "words", *digest);
  ASSERT_TRUE(x) << failure(x);
  EXPECT_EQ(x->size(), 0U);
  EXPECT_TRUE(x->search({1}, 3).empty());
}

TEST(BM25, DamagedFilesAreRefused) {
  temporary_folder folder;
  auto file = folder / "words";
  auto digest = index_of(random_documents(50, 3)).save(file);
  ASSERT_TRUE(digest);
  EXPECT_THAT(failure(bm25_index::load(file, "xxh3:other")), HasSubstr("index_damaged"));
  EXPECT_THAT(failure(bm25_index::load(folder / "none", *digest)), HasSubstr("index_damaged"));
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  EXPECT_THAT(failure(bm25_index::load(file, *digest)), HasSubstr("index_damaged"));
}

TEST(BM25, ThreadsMaySearchAtOnce) {
  auto index = index_of(random_documents(500, 4));
  auto queries = random_documents(50, 5);
  std::vector<std::vector<std::vector<neighbour>>> got(2);
  std::vector<std::thread> threads;
  for (auto& to : got)
    threads.emplace_back([&] {
      for (const auto& query : queries) to.push_back(index.search(query, 10));
    });
  for (auto& x : threads) x.join();
  for (size_t i = 0; i < queries.size(); ++i) {
    expect_equal(got[0][i], index.search(queries[i], 10));
    expect_equal(got[1][i], got[0][i]);
  }
}

} // namespace bm25_test
} // namespace kernelmill
