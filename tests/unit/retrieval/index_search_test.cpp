// What a query answers: two rankings in one, what is left out, and what stands before what.

#include <gmock/gmock.h>

#include "retrieval/search/entry_drafts.hpp"
#include "retrieval/search/hashed_lexical_embedder.hpp"
#include "retrieval/search/index.hpp"
#include "retrieval/search/index_files.hpp"
#include "tests/unit/retrieval/test_support.hpp"

namespace kernelmill {
namespace index_search_test {

using test::about;
using test::card_text;
using test::failure;
using test::temporary_folder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

/// A kernel whose text is words.
kernel_example kernel(const std::string& id, const std::string& text) {
  kernel_example x;
  x.id = id;
  x.task = "corpus/" + id;
  x.backend = "cuda";
  x.language = "cuda";
  x.split = "train";
  x.source = text;
  return x;
}

loaded_index index_of(const std::vector<kernel_example>& kernels, const std::string& cards = {}) {
  auto x = loaded_index::in_memory(cards, kernels, std::make_shared<hashed_lexical_embedder>());
  if (!x) throw std::runtime_error(failure(x));
  return std::move(*x);
}

std::vector<std::string> ids(const expected<retrieval_answer>& x) {
  if (!x) throw std::runtime_error(failure(x));
  std::vector<std::string> result;
  for (const auto& hit : x->results) result.push_back(hit.entry.id);
  return result;
}

/// Entries with operators and signatures as they are given, whatever a reader makes of code.
loaded_index index_with(const std::vector<index_entry>& entries, const temporary_folder& folder) {
  hashed_lexical_embedder embedding;
  vector_index vectors{embedding.dimension()};
  bm25_index words;
  for (const auto& entry : entries) {
    entry_draft draft{entry, {}, {}};
    auto row = embed_drafts(embedding, {draft});
    if (!row || !vectors.add(*row)) throw std::runtime_error("no row");
    words.add(terms_of(draft));
  }
  index_manifest manifest;
  manifest.embedder = embedding.identity();
  manifest.dimension = embedding.dimension();
  auto written = write_index_files(folder / "index", manifest, entries, vectors, words);
  if (!written) throw std::runtime_error(failure(written));
  auto x = open_index(folder / "index");
  if (!x) throw std::runtime_error(failure(x));
  return std::move(*x);
}

index_entry entry(const std::string& id, const std::string& text, const std::string& signature) {
  index_entry x;
  x.id = "kernel:" + id;
  x.kind = "kernel";
  x.text = text;
  x.signature = signature;
  return x;
}

TEST(IndexSearch, WordsFindWhatAVectorBlurs) {
  // Of many kernels about one subject, one has the rare word; to a vector it is one of hundreds.
  std::vector<kernel_example> many;
  for (int i = 0; i < 60; ++i) {
    std::string text = "reduce rows of a matrix in shared memory with warps block " +
                       std::string(1 + i % 7, 'q') + " tile " + std::to_string(i);
    for (int k = 0; k < 40; ++k) text += " lane" + std::to_string(i) + "x" + std::to_string(k);
    many.push_back(kernel(std::to_string(i), i == 41 ? text + " argminpool" : text));
  }
  auto index = index_of(many);
  auto query = about("reduce rows of a matrix in shared memory with warps, then argminpool", 1);
  EXPECT_THAT(ids(index.query(query)), ElementsAre("kernel:41"));
}

TEST(IndexSearch, BothRankingsCountAndTheirWeightDecides) {
  // "a" has the spellings of all that is asked for, "b" one word that no other has.
  auto index = index_of({kernel("a", "softmaxes(softmaxing) softmaxedly(rowwise)"),
                         kernel("b", "zebra(yak, xylophone) walrus(vulture, unicorn, tiger)"),
                         kernel("c", "softmaxe(columns)"), kernel("d", "histogram(integers) + 1")});
  auto query = about("softmax softmaxed softmaxer zebra", 4);
  auto both = ids(index.query(query));
  index.weigh({0.7, 0});
  auto near = ids(index.query(query));
  index.weigh({0.7, 100});
  auto by_words = ids(index.query(query));
  EXPECT_EQ(near.front(), "kernel:a");
  EXPECT_EQ(by_words.front(), "kernel:b");
  EXPECT_THAT(both, ::testing::UnorderedElementsAreArray(near));
  EXPECT_EQ(both.back(), "kernel:d");
}

TEST(IndexSearch, AReferenceSearchesByCode) {
  auto conv = kernel("conv", "int a;"), soft = kernel("soft", "int b;");
  conv.reference = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
                   "        return torch.nn.functional.conv2d(x, self.weight)\n";
  soft.reference = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
                   "        return torch.softmax(x, dim=-1)\n";
  auto index = index_of({conv, soft});
  auto query = about("Make it fast.", 1);
  query.reference = "import torch\nclass Other(torch.nn.Module):\n    def forward(self, y):\n"
                    "        return torch.softmax(y, dim=1)\n";
  EXPECT_THAT(ids(index.query(query)), ElementsAre("kernel:soft"));
  query.reference = conv.reference;
  EXPECT_THAT(ids(index.query(query)), ElementsAre("kernel:conv"));
  index.weigh({0, 0}); // words of the prompt alone
  query.text = soft.reference;
  EXPECT_THAT(ids(index.query(query)), ElementsAre("kernel:soft"));
}

struct WithCards : ::testing::Test {
  temporary_folder folder;
  WithCards() {
    folder.write("cards/sums.md", card_text("sums", "Sum the rows of a matrix with chains."));
    folder.write("cards/turns.md", card_text("turns", "Transpose a matrix in tiles.", "transpose"));
  }
};

TEST_F(WithCards, GoodKernelsStandBeforeCardsAndOthersBehind) {
  auto index =
      index_of({kernel("far", "base64 decoder of strings"),
                kernel("near", "float sum over the rows of a matrix"),
                kernel("nearer", "sum the rows of a matrix with several chains of additions")},
               folder / "cards");
  auto query = about("Sum the rows of a matrix with chains.", 9);
  auto got = ids(index.query(query));
  EXPECT_THAT(got,
              ElementsAre("kernel:nearer", "kernel:near", "card:sums", "card:turns", "kernel:far"));
  query.count = 3;
  EXPECT_THAT(ids(index.query(query)), ElementsAre("kernel:nearer", "kernel:near", "card:sums"));
  query.count = 2;
  EXPECT_THAT(ids(index.query(query)), ElementsAre("kernel:nearer", "kernel:near"));
}

TEST_F(WithCards, EitherMayBeMissing) {
  auto cards = index_of({}, folder / "cards");
  EXPECT_EQ(ids(cards.query(about("sum rows", 5))).size(), 2U);
  auto kernels = index_of({kernel("a", "sum of rows"), kernel("b", "unlike all that is asked")});
  EXPECT_EQ(kernels.manifest().cards, 0U);
  EXPECT_THAT(ids(kernels.query(about("sum rows", 5))), ElementsAre("kernel:a", "kernel:b"));
  auto none = build_index({"", folder / "empty", {}, {}});
  ASSERT_TRUE(none) << failure(none);
  auto empty = open_index(folder / "empty");
  ASSERT_TRUE(empty) << failure(empty);
  EXPECT_THAT(ids(empty->query(about("sum rows", 5))), IsEmpty());
  ASSERT_TRUE(empty->add_kernel(kernel("late", "sum of rows")));
  EXPECT_THAT(ids(empty->query(about("sum rows", 5))), ElementsAre("kernel:late"));
}

TEST_F(WithCards, ABackendAndALanguageLeaveOtherKernelsOut) {
  auto cuda = kernel("cuda", "sum(rows) of(matrix) + warps(1)"),
       triton = kernel("triton", "import triton\n# sum(rows)\nmatrix(rows) / programs(2)"),
       hip = kernel("hip", "for (sum; rows; matrix) wavefronts(3);");
  triton.language = "python";
  hip.backend = hip.language = "hip";
  auto index = index_of({cuda, triton, hip}, folder / "cards");
  auto kernels = [&](const std::string& backend, const std::string& language) {
    auto query = about("sum rows of a matrix", 9, {}, {}, backend);
    query.language = language;
    auto all = ids(index.query(query));
    bool has_card = std::find(all.begin(), all.end(), "card:turns") != all.end();
    EXPECT_EQ(has_card, backend.empty() || backend == "cpu") << "it names one backend";
    std::erase_if(all, [](const std::string& x) { return x.starts_with("card:"); });
    return all;
  };
  EXPECT_THAT(kernels("", ""), UnorderedElementsAre("kernel:cuda", "kernel:triton", "kernel:hip"));
  EXPECT_THAT(kernels("cuda", ""), UnorderedElementsAre("kernel:cuda", "kernel:triton"));
  EXPECT_THAT(kernels("hip", ""), ElementsAre("kernel:hip"));
  EXPECT_THAT(kernels("cpu", ""), IsEmpty()) << "no kernel is for a backend that none names";
  EXPECT_THAT(kernels("", "triton"), ElementsAre("kernel:triton"));
  EXPECT_THAT(kernels("cuda", "cuda"), ElementsAre("kernel:cuda"));
  EXPECT_THAT(kernels("", "cpp"), IsEmpty());
}

TEST(IndexSearch, WhatAKernelIsWrittenInIsReadOffItsText) {
  EXPECT_EQ(written_in("import torch\nimport triton.language as tl\n", "python"), "triton");
  EXPECT_EQ(written_in("from triton import jit\n", "python"), "triton");
  EXPECT_EQ(written_in("from torch.utils.cpp_extension import load_inline\n", "python"), "cuda");
  EXPECT_EQ(written_in("import torch\n", "python"), "python");
  EXPECT_EQ(written_in("// import triton\n", "cpp"), "cpp");
}

TEST(IndexSearch, APlainAnswerMayBeAskedForAsTorch) {
  auto plain = kernel("plain", "import torch\ntorch.compile(sum_rows)\n");
  plain.language = "python";
  auto index = index_of({plain, kernel("cuda", "sum rows")});
  auto query = about("sum rows", 9);
  query.language = "torch";
  EXPECT_THAT(ids(index.query(query)), ElementsAre("kernel:plain"));
}

TEST(IndexSearch, AKernelThatSharesARareOperatorStandsBeforeCards) {
  temporary_folder folder;
  index_entry card;
  card.id = "card:sums";
  card.kind = "card";
  card.text = std::string{"cumsum over the rows of a matrix"};
  std::vector<index_entry> entries{card};
  for (int i = 0; i < 5; ++i) {
    entries.push_back(entry(std::to_string(i), "walrus(" + std::string(1 + i, '(') + "yak)", ""));
    entries.back().operators = std::string{i == 3 ? "mul cumsum" : "mul sigmoid"};
  }
  auto index = index_with(entries, folder);
  auto query = about("", 2);
  query.reference = "import torch\ndef forward(x):\n    return torch.cumsum(x, dim=1) * x\n";
  EXPECT_THAT(ids(index.query(query)), ElementsAre("kernel:3", "card:sums"))
      << "all multiply, one sums up";
}

TEST(IndexSearch, OneKernelOfASignatureIsEnoughWhileThereAreOthers) {
  temporary_folder folder;
  auto index = index_with({entry("a", "sum(rows) + matrix(chains)", "sum(x0)"),
                           entry("b", "sum(rows) + matrix(chains, lanes[2]) / two(1)", "sum(x0)"),
                           entry("c", "sum(rows) < tree(matrix) - eight(chains)", "sum(abs(x0))"),
                           entry("d", "while (sum) { rows(matrix); unknown(reader); }", "")},
                          folder);
  auto query = about("sum rows matrix chains", 3);
  auto three = ids(index.query(query));
  EXPECT_THAT(three, UnorderedElementsAre(::testing::AnyOf("kernel:a", "kernel:b"), "kernel:c",
                                          "kernel:d"));
  query.count = 4;
  EXPECT_THAT(ids(index.query(query)),
              UnorderedElementsAre("kernel:a", "kernel:b", "kernel:c", "kernel:d"));
}

TEST(IndexSearch, AnsweringTwiceGivesTheSameAndTeachingOnceIsEnough) {
  std::vector<kernel_example> many;
  for (int i = 0; i < 50; ++i) {
    many.push_back(kernel(std::to_string(i), test::row_sum_kernel));
    if (i % 2 == 0) many.back().source = test::row_max_kernel;
  }
  many[7].task = "native/row_sum";
  auto index = index_of(many);
  auto query = about("rows cols float", 9, "native/row_sum");
  auto first = index.query(query), second = index.query(query);
  EXPECT_THAT(ids(first), ElementsAre("kernel:0")) << "all others repeat it, or solve the task";
  EXPECT_EQ(ids(first), ids(second));
  EXPECT_EQ(first->withheld, 25U);
  EXPECT_EQ(second->withheld, 25U);
  EXPECT_EQ(index.guard().solutions(), 1U);
}

// A tool's query has words of the policy's, and no reference: the guard needs the task's all the
// same.
TEST(IndexSearch, WordsAloneFindNoKernelOfTheTasksOwnComputation) {
  const std::string relu = "import torch\ndef forward(x):\n    return torch.relu(x)\n";
  auto x = kernel("17", "relu kernel of rows");
  x.reference = "import torch\nclass Odd(torch.nn.Module):\n    def forward(self, q):\n"
                "        return q.relu()\n";
  auto index = index_of({x});
  auto query = about("relu rows", 3, "kernelbench/level1/19_ReLU");
  EXPECT_THAT(ids(index.query(query)), ElementsAre("kernel:17"));
  query.exclude_reference = relu;
  EXPECT_THAT(ids(index.query(query)), IsEmpty());
  query.exclude_reference = "import torch\ndef forward(x):\n    return torch.tanh(x)\n";
  EXPECT_THAT(ids(index.query(query)), ElementsAre("kernel:17"));
}

// A run may have one of the two tasks alone: then nothing has related them.
TEST(IndexSearch, AnotherVerbsKernelOfTheSameDeclarationIsWithheld) {
  const std::string declaration = "extern \"C\" void solve(const float* x, float* y, int rows)";
  auto x = kernel("turn", "softmax rows");
  x.task = "native/online_softmax";
  x.operator_family = "normalization";
  x.reference = declaration;
  auto index = index_of({x});
  auto query = about("softmax rows", 3, "native/softmax", "normalization");
  query.reference = declaration;
  EXPECT_THAT(ids(index.query(query)), IsEmpty());
  query.family = "reduction"; // what is declared alike may ask for other things
  EXPECT_THAT(ids(index.query(query)), ElementsAre("kernel:turn"));
}

TEST(IndexSearch, ARowWithoutATaskIsKnownByItsId) {
  auto x = kernel("own/19_ReLU", "relu kernel of rows");
  x.task.clear();
  auto index = index_of({x});
  EXPECT_THAT(ids(index.query(about("relu", 3, "kernelbench/level1/19_ReLU"))), IsEmpty());
  EXPECT_THAT(ids(index.query(about("relu", 3, "kernelbench/level1/22_Tanh"))),
              ElementsAre("kernel:own/19_ReLU"));
}

} // namespace index_search_test
} // namespace kernelmill
