#include "retrieval/search/live_kernels.hpp"

#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "messages/base/json_value.hpp"
#include "retrieval/search/hashed_lexical_embedder.hpp"
#include "tests/unit/retrieval/test_support.hpp"

namespace kernelmill {

using test::about;
using test::failure;
using test::verified;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

namespace live_kernels_test {

const std::string sums = "sum the rows of a float matrix, rows and cols";

struct LiveKernels : ::testing::Test {
  test::temporary_folder folder;
  std::string where = folder / "index";

  LiveKernels() {
    folder.write("cards/sums.md", test::card_text("sums", "Sum the rows of a matrix."));
    build({});
  }

  void build(std::vector<kernel_example> kernels) const {
    auto built = build_index({folder / "cards", where, std::move(kernels), nullptr});
    EXPECT_TRUE(built) << failure(built);
  }

  live_lines lines() const {
    auto result = read_live_kernels(where);
    if (!result) throw std::runtime_error(failure(result));
    return std::move(*result);
  }

  loaded_index open() const {
    auto index = open_index(where);
    if (!index) throw std::runtime_error(failure(index));
    auto taken = take_up_live_kernels(*index, lines());
    EXPECT_TRUE(taken) << failure(taken);
    return std::move(*index);
  }

  static std::vector<std::string> shown(const loaded_index& index, const std::string& task = {}) {
    std::vector<std::string> result;
    auto answer = index.query(about(sums, 30, task));
    if (!answer) throw std::runtime_error(failure(answer));
    for (const auto& x : answer->results) result.push_back(x.entry.id);
    return result;
  }

  bool append(const kernel_example& x, const std::string& run = "first") const {
    auto writer = live_kernel_writer::open(where, lines());
    EXPECT_TRUE(writer) << failure(writer);
    auto added = writer->append({x, run, 1793000000.5});
    EXPECT_TRUE(added) << failure(added);
    return added.value_or(false);
  }

  std::string text() const {
    std::ostringstream all;
    all << std::ifstream{where + "/live.jsonl"}.rdbuf();
    return all.str();
  }

  void spoil(const std::string& tail) const {
    std::ofstream{where + "/live.jsonl", std::ios::app} << tail;
  }

  retraction_result retract(const retraction& what) const {
    auto done = retract_kernels(where, what);
    EXPECT_TRUE(done) << failure(done);
    return done.value_or(retraction_result{});
  }
};

TEST_F(LiveKernels, EveryFieldComesBack) {
  auto x = verified("native/row_sum", test::row_sum_kernel, "t1", 2.5);
  x.language = "triton";
  x.reference = "y = x.sum(1)\n";
  x.device = "NVIDIA H200";
  x.date = "2026-11-30";
  x.origin = "run first";
  x.split = "train";
  x.rights_source = "own";
  EXPECT_TRUE(append(x));
  auto all = lines();
  ASSERT_EQ(all.kernels.size(), 1U);
  EXPECT_EQ(all.unreadable, 0U);
  const auto& y = all.kernels[0];
  EXPECT_EQ(y.run, "first");
  EXPECT_EQ(y.at, 1793000000.5);
  EXPECT_EQ(y.example.id, "t1");
  EXPECT_EQ(y.example.task, x.task);
  EXPECT_EQ(y.example.operator_family, x.operator_family);
  EXPECT_EQ(y.example.backend, x.backend);
  EXPECT_EQ(y.example.source, x.source);
  EXPECT_EQ(y.example.language, x.language);
  EXPECT_EQ(y.example.reference, x.reference);
  EXPECT_EQ(y.example.speedup, 2.5);
  EXPECT_EQ(y.example.device, x.device);
  EXPECT_EQ(y.example.date, x.date);
  EXPECT_EQ(y.example.origin, x.origin);
  EXPECT_EQ(y.example.split, x.split);
  EXPECT_EQ(y.example.rights_source, x.rights_source);
  EXPECT_FALSE(y.example.hidden);
}

TEST_F(LiveKernels, AnIndexWithoutTheFileHasNone) {
  EXPECT_TRUE(lines().kernels.empty());
  EXPECT_EQ(open().kernels(), 0U);
}

TEST_F(LiveKernels, ALineThatWasCutOffIsLeftOutAndEndsWithTheNext) {
  append(verified("t/a", test::row_sum_kernel, "t1"));
  spoil(R"({"kind": "kernel", "id": "t2", "sour)");
  EXPECT_EQ(lines().unreadable, 1U);
  EXPECT_EQ(lines().kernels.size(), 1U);
  append(verified("t/b", test::row_max_kernel, "t3"));
  auto all = lines();
  EXPECT_EQ(all.unreadable, 1U) << "no line is taken away";
  ASSERT_EQ(all.kernels.size(), 2U) << text();
  EXPECT_EQ(all.kernels[1].example.id, "t3");
}

TEST_F(LiveKernels, ALastLineThatLacksItsNewlineAloneIsWhole) {
  append(verified("t/a", test::row_sum_kernel, "t1"));
  auto whole = text();
  whole.pop_back();
  folder.write("index/live.jsonl", whole);
  EXPECT_EQ(lines().kernels.size(), 1U);
  append(verified("t/b", test::row_max_kernel, "t2"));
  EXPECT_EQ(lines().kernels.size(), 2U);
  EXPECT_EQ(lines().unreadable, 0U);
}

TEST_F(LiveKernels, LinesThatSayNothingAreCountedAndALineWithoutDecisionIsHidden) {
  spoil("7\n{}\n{\"kind\": \"later\"}\n{\"kind\": \"kernel\", \"id\": \"x\"}\n"
        "{\"kind\": \"retraction\", \"kernels\": 3}\n[\n");
  spoil(R"({"kind": "kernel", "id": "x", "source": "y", "speedup": "fast"})"
        "\n\n");
  auto all = lines();
  EXPECT_EQ(all.unreadable, 6U);
  ASSERT_EQ(all.kernels.size(), 1U);
  EXPECT_TRUE(all.kernels[0].example.hidden);
}

// Each child is a run of its own: a writer, and lines longer than a pipe or a page is.
TEST_F(LiveKernels, TwoProcessesAppendAtTheSameTime) {
  constexpr int each = 200;
  std::vector<pid_t> children;
  for (int child = 0; child < 2; ++child) {
    auto pid = ::fork();
    if (pid == 0) {
      auto writer = live_kernel_writer::open(where, {});
      bool good = writer.has_value();
      for (int i = 0; good && i < each; ++i) {
        auto id = std::to_string(child) + "-" + std::to_string(i);
        auto added = writer->append(
            {verified("t/" + id, std::string(9000, static_cast<char>('a' + child)) + id, id), "r",
             1});
        good = added && *added;
      }
      ::_exit(good ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (auto pid : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
  auto all = lines();
  EXPECT_EQ(all.unreadable, 0U);
  std::set<std::string> ids;
  for (const auto& x : all.kernels) {
    EXPECT_EQ(x.example.source.size(), 9000 + x.example.id.size());
    EXPECT_EQ(x.example.source.substr(9000), x.example.id);
    ids.insert(x.example.id);
  }
  EXPECT_EQ(ids.size(), 2U * each);
}

TEST_F(LiveKernels, TheFastestOfATaskADeviceAndALanguageIsTheExample) {
  auto on = [](std::string id, double speedup, std::string device, std::string language,
               const std::string& source) {
    auto x = verified("native/row_sum", source, std::move(id), speedup);
    x.device = std::move(device);
    x.language = std::move(language);
    return x;
  };
  append(on("slow", 1.5, "H200", "cuda", test::row_sum_kernel));
  append(on("fast", 2.5, "H200", "cuda", test::row_max_kernel));
  append(on("later", 2.0, "H200", "cuda", test::transpose_kernel));
  append(on("other-device", 1.1, "CPU", "cuda", test::row_sum_kernel));
  append(on("other-language", 1.2, "H200", "triton", test::transpose_kernel));
  auto index = open();
  EXPECT_EQ(index.kernels(), 3U);
  EXPECT_THAT(shown(index), ::testing::UnorderedElementsAre("kernel:fast", "kernel:other-device",
                                                            "kernel:other-language", "card:sums"));
  EXPECT_TRUE(index.guard().withholds("native/row_sum", "", shingles_of(test::row_sum_renamed)))
      << "the guard knows all";
  // What a run verifies as it goes on replaces it.
  EXPECT_EQ(index.add_kernel(on("slower", 2.4, "H200", "cuda", test::row_sum_kernel)), false);
  EXPECT_EQ(index.add_kernel(on("best", 3.0, "H200", "cuda", test::row_max_kernel)), true);
  EXPECT_EQ(index.kernels(), 3U);
  EXPECT_THAT(shown(index), Contains("kernel:best"));
  EXPECT_THAT(shown(index), Not(Contains("kernel:fast")));
}

TEST_F(LiveKernels, WhatIsThereIsAppendedAgainOnlyWhenItIsFaster) {
  auto x = verified("t/a", test::row_sum_kernel, "t1", 2.0);
  EXPECT_TRUE(append(x));
  EXPECT_FALSE(append(x)) << "a resumed run offers all that it verified";
  x.id = "t2";
  EXPECT_FALSE(append(x, "second"));
  x.speedup = 2.5;
  EXPECT_TRUE(append(x, "second"));
  x.device = "another";
  x.speedup = 0.5;
  EXPECT_TRUE(append(x, "second"));
  EXPECT_EQ(lines().kernels.size(), 3U);
}

TEST_F(LiveKernels, HiddenAndHeldOutOnesAreKnownToTheGuardAlone) {
  auto hidden = verified("t/hidden", test::row_sum_kernel, "t1");
  hidden.hidden = true;
  auto held_out = verified("t/held", test::row_max_kernel, "t2");
  held_out.split = "dev";
  append(hidden);
  append(held_out);
  auto index = open();
  EXPECT_EQ(index.kernels(), 0U);
  EXPECT_TRUE(index.guard().withholds("t/hidden", "", shingles_of(test::row_sum_renamed)));
  EXPECT_TRUE(index.guard().withholds("t/held", "", shingles_of(test::row_max_kernel)));
}

TEST_F(LiveKernels, WhatIsRetractedIsNoExampleAndTheNextBestIs) {
  build({verified("t/built", test::transpose_kernel, "built")});
  append(verified("t/live", test::row_sum_kernel, "best", 3));
  append(verified("t/live", test::row_max_kernel, "second", 2));
  EXPECT_THAT(shown(open()),
              ::testing::UnorderedElementsAre("kernel:built", "kernel:best", "card:sums"));
  auto before = text();
  auto done = retract({{"built", "best", "unknown"}, {}, "a later rule"});
  EXPECT_EQ(done.retracted, 2U);
  EXPECT_EQ(done.already, 0U);
  EXPECT_EQ(done.found, (std::set<std::string>{"built", "best"}));
  EXPECT_EQ(text().substr(0, before.size()), before) << "lines of others stay";
  EXPECT_THAT(text(), HasSubstr("a later rule"));
  auto index = open();
  EXPECT_THAT(shown(index), ::testing::UnorderedElementsAre("kernel:second", "card:sums"));
  EXPECT_EQ(index.kernels(), 1U);
  EXPECT_EQ(index.cards(), 1U);
  EXPECT_TRUE(index.guard().withholds("t/live", "", shingles_of(test::row_sum_renamed)));
  auto size = text().size();
  EXPECT_EQ(retract({{"best"}, {}, {}}).already, 1U);
  EXPECT_EQ(text().size(), size);
  EXPECT_FALSE(append(verified("t/live", test::row_sum_kernel, "best", 3)))
      << "a resumed run does not bring it back";
}

TEST_F(LiveKernels, ARunIsRetractedAsItIsNow) {
  auto built = verified("t/built", test::transpose_kernel, "built");
  built.origin = "run first";
  build({built});
  append(verified("t/a", test::row_sum_kernel, "t1"), "first");
  append(verified("t/b", test::row_max_kernel, "t2"), "second");
  EXPECT_EQ(retract({{}, "first", {}}).retracted, 2U);
  EXPECT_THAT(shown(open()), ::testing::UnorderedElementsAre("kernel:t2", "card:sums"));
  EXPECT_TRUE(retract({{}, "third", {}}).found.empty());
  // A new run under an old name has the old one's ids, and other kernels.
  append(verified("t/a", test::transpose_kernel, "t1"), "first");
  EXPECT_THAT(shown(open()), Contains("kernel:t1"));
}

TEST_F(LiveKernels, BuildingTheIndexAgainKeepsThem) {
  append(verified("t/a", test::row_sum_kernel, "t1"));
  retract({{"t1"}, {}, {}});
  append(verified("t/b", test::row_max_kernel, "t2"));
  auto before = text();
  build({verified("t/c", test::transpose_kernel, "t3")});
  EXPECT_EQ(text(), before);
  EXPECT_THAT(shown(open()),
              ::testing::UnorderedElementsAre("kernel:t2", "kernel:t3", "card:sums"));
}

TEST_F(LiveKernels, WhatCannotBeWrittenOrReadIsAnError) {
  EXPECT_THAT(failure(live_kernel_writer::open(folder / "nowhere", {})),
              HasSubstr("index_not_written"));
  EXPECT_THAT(failure(retract_kernels(folder / "nowhere", {{"t1"}, {}, {}})),
              HasSubstr("index_missing"));
  std::filesystem::create_directory(where + "/live.jsonl");
  EXPECT_THAT(failure(read_live_kernels(where)), HasSubstr("index_damaged"));
}

} // namespace live_kernels_test

} // namespace kernelmill
