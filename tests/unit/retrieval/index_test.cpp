#include "messages/base/json_value.hpp"
#include "retrieval/search/index.hpp"

#include <gmock/gmock.h>

#include "retrieval/search/entry_rows.hpp"
#include "retrieval/search/hashed_lexical_embedder.hpp"
#include "retrieval/search/kernel_feed.hpp"
#include "tests/unit/retrieval/test_support.hpp"

namespace kernelmill {

using test::about;
using test::card_text;
using test::failure;
using test::temporary_folder;
using test::verified;
using ::testing::HasSubstr;
using testing::Not;

namespace index_test {

class failing_embedder final : public embedder {
public:
  bool down = false;
  std::string identity() const override { return "failing"; }
  size_t dimension() const override { return 16; }
  bool blocking() const override { return false; }
  expected<std::vector<float>> embed(const std::vector<std::string>& texts) override {
    if (down) return infrastructure_error("embedder_failed", "failed to embed texts: down");
    return hashed_lexical_embedder{16}.embed(texts);
  }
};

struct Index : ::testing::Test {
  temporary_folder folder;
  std::string cards = folder / "cards";
  std::string where = folder / "index";

  Index() {
    folder.write("cards/sums.md",
                 card_text("sums", "Sum the rows of a matrix with several chains."));
    folder.write("cards/turns.md", card_text("turns", "Transpose a matrix in tiles.", "transpose"));
  }

  loaded_index memory(const std::vector<kernel_example>& kernels = {}) {
    auto x = loaded_index::in_memory(cards, kernels, std::make_shared<hashed_lexical_embedder>());
    if (!x) throw std::runtime_error(failure(x));
    return std::move(*x);
  }

  static std::vector<std::string> ids(const expected<retrieval_answer>& x) {
    std::vector<std::string> result;
    if (!x) throw std::runtime_error(failure(x));
    for (const auto& hit : x->results) result.push_back(hit.entry.id);
    return result;
  }

  /// Rewrites one value of the manifest.
  void forge(const std::string& key, const nlohmann::ordered_json& value) {
    std::ifstream in{where + "/manifest.json"};
    auto manifest = nlohmann::ordered_json::parse(in);
    manifest[key] = value;
    folder.write("index/manifest.json", manifest.dump());
  }
};

const std::string sum_query = "sum the rows of a float matrix, rows and cols";

TEST_F(Index, KernelsOfTheAskingTaskAreNeverReturned) {
  auto x = memory({verified("native/row_sum", test::row_sum_kernel, "t1"),
                   verified("native/row_max", test::row_max_kernel, "t2")});
  auto got = x.query(about(sum_query, 8, "native/row_sum"));
  ASSERT_TRUE(got);
  EXPECT_THAT(ids(got), ::testing::UnorderedElementsAre("kernel:t2", "card:sums", "card:turns"));
  EXPECT_EQ(got->withheld, 1U);
  EXPECT_THAT(ids(x.query(about(sum_query, 8, "native/other"))), ::testing::Contains("kernel:t1"));
}

TEST_F(Index, ANearDuplicateUnderAnotherTaskIsWithheld) {
  auto x = memory({verified("native/row_sum", test::row_sum_kernel, "t1"),
                   verified("debug/row_sum_repair", test::row_sum_renamed, "t2"),
                   verified("native/transpose", test::transpose_kernel, "t3")});
  auto got = x.query(about(sum_query, 8, "native/row_sum"));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->withheld, 2U);
  EXPECT_THAT(ids(got), ::testing::UnorderedElementsAre("kernel:t3", "card:sums", "card:turns"));
}

TEST_F(Index, ACardThatQuotesASolutionIsWithheld) {
  folder.write("cards/leak.md", card_text("leak", "Sum rows like this:\n" + test::row_sum_renamed));
  auto x = memory({verified("native/row_sum", test::row_sum_kernel, "t1")});
  auto got = x.query(about(sum_query, 8, "native/row_sum"));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->withheld, 2U);
  EXPECT_THAT(ids(got), ::testing::Not(::testing::Contains("card:leak")));
  EXPECT_THAT(ids(x.query(about(sum_query, 8, "native/softmax"))),
              ::testing::Contains("card:leak"));
}

TEST_F(Index, ABaselineThatTheGuardKnowsWithholdsItsLikes) {
  auto x = memory({verified("native/elsewhere", test::row_sum_renamed, "t1")});
  EXPECT_THAT(ids(x.query(about(sum_query, 8, "native/row_sum"))),
              ::testing::Contains("kernel:t1"));
  x.guard().add_solution("native/row_sum", test::row_sum_kernel);
  EXPECT_THAT(ids(x.query(about(sum_query, 8, "native/row_sum"))),
              ::testing::Not(::testing::Contains("kernel:t1")));
}

TEST_F(Index, WithheldCountsOnlyWhatWouldHaveBeenReturned) {
  auto x = memory({verified("native/row_sum", test::row_sum_kernel, "t1")});
  auto got = x.query(about("transpose a matrix in tiles", 1, "native/row_sum", "transpose"));
  EXPECT_EQ(ids(got), std::vector<std::string>{"card:turns"});
  EXPECT_EQ(got->withheld, 0U);
}

TEST_F(Index, KernelsCanBeAddedWhileItIsInUse) {
  auto x = memory();
  EXPECT_EQ(x.size(), 2U);
  EXPECT_EQ(x.add_kernel(verified("native/row_max", test::row_max_kernel, "t9", 2.25)), true);
  EXPECT_EQ(x.add_kernel(verified("native/row_max", test::row_max_kernel, "t9")), false);
  EXPECT_EQ(x.size(), 3U);
  EXPECT_EQ(x.kernels(), 1U);
  auto got = x.query(about("row_max fmaxf best INFINITY", 1, "native/row_sum", "reduction", "cpu"));
  ASSERT_EQ(ids(got), std::vector<std::string>{"kernel:t9"});
  const auto& entry = got->results[0].entry;
  EXPECT_EQ(entry.kind, "kernel");
  EXPECT_EQ(entry.source, "t9");
  EXPECT_EQ(entry.task, "native/row_max");
  EXPECT_EQ(entry.text.view(), test::row_max_kernel);
  EXPECT_THAT(entry.title, HasSubstr("2.25"));
}

TEST_F(Index, ResultsDoNotRepeatOneKernel) {
  auto x = memory({verified("native/a", test::row_sum_kernel, "t1"),
                   verified("native/a", test::row_sum_renamed, "t2"),
                   verified("native/b", test::row_sum_kernel, "t3")});
  auto got = x.query(about(sum_query, 8, "native/softmax"));
  EXPECT_EQ(ids(got).size(), 3U) << "two cards and one of three like kernels";
  EXPECT_EQ(got->withheld, 0U);
}

TEST_F(Index, TheBestAreFoundAmongManyWithheldOnes) {
  std::vector<kernel_example> many;
  for (int i = 0; i < 400; ++i)
    many.push_back(
        verified("native/row_sum", sum_query + std::to_string(i), "t" + std::to_string(i)));
  auto x = memory(many);
  auto got = x.query(about(sum_query, 2, "native/row_sum"));
  EXPECT_THAT(ids(got), ::testing::UnorderedElementsAre("card:sums", "card:turns"));
  EXPECT_EQ(got->withheld, 400U);
}

TEST_F(Index, EmptyQuestionsAndCountsGiveNothingOrAnything) {
  auto x = memory();
  EXPECT_TRUE(ids(x.query(about("anything", 0))).empty());
  EXPECT_EQ(ids(x.query(about("", 5))).size(), 2U);
  EXPECT_EQ(ids(x.query(about("a", 1000000))).size(), 2U);
}

TEST_F(Index, AFailingEmbedderIsAnErrorAndTheGuardLearnsAllTheSame) {
  auto embedding = std::make_shared<failing_embedder>();
  auto x = loaded_index::in_memory(cards, {verified("native/b", test::row_sum_renamed, "t1")},
                                   embedding);
  ASSERT_TRUE(x) << failure(x);
  embedding->down = true;
  EXPECT_THAT(failure(x->query(about("rows", 3))), HasSubstr("embedder_failed"));
  EXPECT_FALSE(x->add_kernel(verified("native/row_sum", test::row_sum_kernel, "t2")));
  embedding->down = false;
  auto got = x->query(about(sum_query, 3, "native/row_sum"));
  EXPECT_EQ(got->withheld, 1U) << "t1 resembles t2, which could not become an entry";
}

TEST_F(Index, TheGuardLearnsAKernelUnderAnIdThatIsThere) {
  auto x = memory();
  ASSERT_EQ(x.add_kernel(verified("native/row_max", test::row_max_kernel, "t1")), true);
  EXPECT_EQ(x.add_kernel(verified("native/row_sum", test::row_sum_kernel, "t1")), false);
  EXPECT_TRUE(x.guard().withholds("native/row_sum", "", shingles_of(test::row_sum_renamed)));
}

TEST_F(Index, ACardBehindAKernelIsDamage) {
  index_entry kernel, card;
  kernel.kind = "kernel";
  card.kind = "card";
  auto digest = write_entry_file(where + ".rows", {kernel, card});
  ASSERT_TRUE(digest) << failure(digest);
  EXPECT_THAT(failure(map_entry_file(where + ".rows", *digest)), HasSubstr("index_damaged"));
}

TEST_F(Index, WhatWasBuiltOpensAndAnswersAlike) {
  index_options options{cards, where, {verified("native/row_max", test::row_max_kernel, "t1")}, {}};
  auto manifest = build_index(options);
  ASSERT_TRUE(manifest) << failure(manifest);
  EXPECT_EQ(manifest->embedder, "hashed-lexical/2 dim=1024");
  EXPECT_EQ(manifest->cards, 2U);
  EXPECT_EQ(manifest->kernels, 1U);
  auto opened = open_index(where, nullptr, cards);
  ASSERT_TRUE(opened) << failure(opened);
  EXPECT_EQ(opened->manifest().corpus_digest, manifest->corpus_digest);
  auto fresh = memory(options.kernels);
  auto a = opened->query(about(sum_query, 3, "native/row_sum")),
       b = fresh.query(about(sum_query, 3, "native/row_sum"));
  EXPECT_EQ(ids(a), ids(b));
  ASSERT_EQ(a->results.size(), b->results.size());
  for (size_t i = 0; i < a->results.size(); ++i)
    EXPECT_EQ(a->results[i].score, b->results[i].score);
  EXPECT_EQ(opened->query(about(sum_query, 3, "native/row_max"))->withheld, 1U);
}

TEST_F(Index, BuildingTwiceGivesTheSameBytes) {
  auto a = build_index({cards, where, {}, {}}), b = build_index({cards, where, {}, {}});
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->vectors_digest, b->vectors_digest);
  EXPECT_EQ(a->entries_digest, b->entries_digest);
  EXPECT_EQ(a->words_digest, b->words_digest);
}

TEST_F(Index, AMissingIndexSaysHowToMakeOne) {
  auto text = failure(open_index(folder / "nowhere"));
  EXPECT_THAT(text, HasSubstr("index_missing"));
  EXPECT_THAT(text, HasSubstr("kernelmill index build"));
}

TEST_F(Index, AnotherEmbedderOrOtherCardsAreAMismatch) {
  ASSERT_TRUE(build_index({cards, where, {}, {}}));
  auto other = std::make_shared<hashed_lexical_embedder>(512);
  auto text = failure(open_index(where, other));
  EXPECT_THAT(text, HasSubstr("index_mismatch"));
  EXPECT_THAT(text,
              HasSubstr("\"hashed-lexical/2 dim=1024\", not with \"hashed-lexical/2 dim=512\""));
  EXPECT_THAT(text, HasSubstr("retrieval.embedder.dimension"));
  EXPECT_THAT(text, HasSubstr("kernelmill index build " + where + " --dimension 512`"));
  folder.write("cards/turns.md", card_text("turns", "Changed.", "transpose"));
  EXPECT_THAT(failure(open_index(where, nullptr, cards)), HasSubstr("have changed since"));
  EXPECT_EQ(failure(open_index(where)), "");
  ASSERT_TRUE(build_index({cards, where, {}, std::make_shared<failing_embedder>()}));
  EXPECT_THAT(failure(open_index(where)), HasSubstr("\"failing\", which is not built in"));
}

TEST_F(Index, DamagedFilesAreRefused) {
  ASSERT_TRUE(build_index({cards, where, {}, {}}));
  forge("schema_version", 4);
  EXPECT_THAT(failure(open_index(where)), HasSubstr("newer_schema"));
  forge("schema_version", 2);
  EXPECT_THAT(failure(open_index(where)), HasSubstr("an older kernelmill wrote it"));
  forge("schema_version", "one");
  EXPECT_THAT(failure(open_index(where)), HasSubstr("index_damaged"));
  folder.write("index/manifest.json", "{");
  EXPECT_THAT(failure(open_index(where)), HasSubstr("index_damaged"));
  for (const char* file : {"entries.rows", "vectors.rows", "words.rows"}) {
    ASSERT_TRUE(build_index({cards, where, {}, {}}));
    folder.write(std::string{"index/"} + file, "kmrows01 something else");
    EXPECT_THAT(failure(open_index(where)), HasSubstr(file));
  }
  ASSERT_TRUE(build_index({cards, where, {}, {}}));
  forge("dimension", 512);
  EXPECT_THAT(failure(open_index(where)), HasSubstr("index_damaged"));
}

TEST_F(Index, AnIndexThatIsHalfReplacedIsRefusedWithTheCommand) {
  ASSERT_TRUE(build_index({cards, where, {}, {}}));
  std::filesystem::copy(where, folder / "older", std::filesystem::copy_options::recursive);
  ASSERT_TRUE(
      build_index({cards, where, {verified("native/row_max", test::row_max_kernel, "t1")}, {}}));
  for (const char* file : {"entries.rows", "vectors.rows", "words.rows"}) {
    auto half = folder / std::string{"half-"} + file;
    std::filesystem::copy(where, half, std::filesystem::copy_options::recursive);
    std::filesystem::copy_file(folder / "older/" + file, half + "/" + file,
                               std::filesystem::copy_options::overwrite_existing);
    EXPECT_THAT(failure(open_index(half)),
                ::testing::AllOf(HasSubstr("index_damaged"), HasSubstr(file),
                                 HasSubstr("`kernelmill index build`")));
  }
  // An index that is open goes on when its folder is built anew.
  auto open = open_index(where);
  ASSERT_TRUE(open) << failure(open);
  ASSERT_TRUE(build_index({cards, where, {}, {}}));
  EXPECT_THAT(ids(open->query(about("row_max fmaxf best INFINITY", 1))),
              ::testing::ElementsAre("kernel:t1"));
}

TEST_F(Index, EntriesOfAnyBytesComeBackAsTheyWere) {
  index_entry x;
  x.id = "kernel:1";
  x.kind = "kernel";
  x.title = "a\nb";
  x.text = std::string{"null \0, no UTF-8 \xff\xfe", 20};
  x.families = {"", "reduction", std::string(5000, 'x')};
  x.speedup = 1.25;
  x.language = "triton";
  x.written_in = "triton";
  x.operators = std::string{"conv2d relu"};
  auto file = folder / "entries";
  auto digest = write_entry_file(file, {x, {}, x});
  ASSERT_TRUE(digest) << failure(digest);
  auto got = map_entry_file(file, *digest);
  ASSERT_TRUE(got) << failure(got);
  ASSERT_EQ(got->size(), 3U);
  std::filesystem::remove(file); // what is mapped stays
  for (size_t i : {0, 2}) {
    const auto& y = (*got)[i];
    EXPECT_EQ(y.id, x.id);
    EXPECT_EQ(y.title, x.title);
    EXPECT_EQ(y.text, x.text.view());
    EXPECT_EQ(y.families, x.families);
    EXPECT_EQ(y.speedup, x.speedup);
    EXPECT_EQ(y.language, x.language);
    EXPECT_EQ(y.written_in, x.written_in);
    EXPECT_EQ(y.operators, x.operators.view());
  }
  EXPECT_TRUE((*got)[1].text.empty());
}

TEST_F(Index, AFolderThatCannotBeWrittenIsAnError) {
  folder.write("file", "in the way");
  EXPECT_THAT(failure(build_index({cards, folder / "file/index", {}, {}})),
              HasSubstr("index_not_written"));
  EXPECT_THAT(failure(build_index({folder / "no-cards", where, {}, {}})),
              HasSubstr("knowledge_missing"));
}

TEST(KernelFeed, GivesEachKernelOnceAndInOrder) {
  kernel_feed feed;
  EXPECT_TRUE(feed.take().empty());
  feed.push(verified("a", "1", "t1"));
  feed.push(verified("b", "2", "t2"));
  auto got = feed.take();
  ASSERT_EQ(got.size(), 2U);
  EXPECT_EQ(got[0].id, "t1");
  EXPECT_EQ(got[1].id, "t2");
  EXPECT_TRUE(feed.take().empty());
}

TEST_F(Index, AKernelOfAHeldOutTaskIsNeverShown) {
  auto held_out = verified("t/held", test::row_sum_kernel, "held");
  held_out.split = "dev";
  auto forbidden = verified("t/bound", test::row_max_kernel, "bound");
  forbidden.hidden = true;
  auto shown = verified("t/free", test::transpose_kernel, "free");
  shown.split = "train";
  auto index = memory({held_out, forbidden, shown});
  EXPECT_EQ(index.kernels(), 1U);
  for (auto* x : {&held_out, &forbidden}) {
    x->id += "-later";
    auto added = index.add_kernel(*x);
    ASSERT_TRUE(added) << failure(added);
    EXPECT_FALSE(*added);
  }
  EXPECT_THAT(ids(index.query(about(sum_query, 9))),
              ::testing::UnorderedElementsAre("kernel:free", "card:sums", "card:turns"));
  EXPECT_TRUE(index.guard().withholds("t/held", "", shingles_of(test::row_sum_renamed)))
      << "the guard knows it all the same";
}

TEST_F(Index, AnOlderIndexHidesWhatIsHeldOutOnceItIsSaid) {
  ASSERT_TRUE(
      build_index({cards, where, {verified("t/held", test::row_sum_kernel, "held")}, nullptr}));
  auto index = open_index(where);
  ASSERT_TRUE(index) << failure(index);
  EXPECT_THAT(ids(index->query(about(sum_query, 9))), ::testing::Contains("kernel:held"));
  index->name_splits([](const index_entry& one) { return one.task == "t/held" ? "dev" : "train"; });
  EXPECT_THAT(ids(index->query(about(sum_query, 9))), Not(::testing::Contains("kernel:held")));
}

TEST_F(Index, SplitAndSourceOfAKernelAreOnDisk) {
  auto x = verified("t/free", test::row_sum_kernel, "free");
  x.split = "train";
  x.rights_source = "asks";
  ASSERT_TRUE(build_index({cards, where, {x}, nullptr}));
  auto index = open_index(where);
  ASSERT_TRUE(index) << failure(index);
  for (size_t i = 0; i < index->size(); ++i) {
    bool is_kernel = index->entry(i).kind == "kernel";
    EXPECT_EQ(index->entry(i).split, is_kernel ? "train" : "");
    EXPECT_EQ(index->entry(i).rights_source, is_kernel ? "asks" : "");
  }
}

} // namespace index_test
} // namespace kernelmill
