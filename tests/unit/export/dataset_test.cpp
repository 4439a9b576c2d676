#include "storage/export/dataset.hpp"

#include <filesystem>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <zstd.h>

#include "material.hpp"
#include "messages/base/digest.hpp"
#include "storage/export/split.hpp"
#include "tests/unit/storage/fixtures.hpp"

namespace kernelmill::exports {
namespace {

using kernelmill::testing::temporary_folder;
using kernelmill::testing::turn_options;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::text_of_file;
namespace fs = std::filesystem;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// A run with one group of a task of each split.
class written_dataset : public ::testing::Test {
protected:
  written_dataset()
      : lineage_(*store::open({.directory = folder_ / "lineage", .durable = false})),
        artifacts_(folder_ / "artifacts") {
    add_group(0, {.task = "native/first"});
    add_group(1, {.task = "native/second"});
    from_.run = "demo";
    from_.lineage = &lineage_;
    from_.artifacts = &artifacts_;
    from_.splits = {{"native/first", "train"}, {"native/second", "dev"}};
    from_.facts = {{"state", "finished"}};
    what_.directory = folder_ / "out";
    what_.made_by = {{"program", "test"}};
  }

  /// Two members that are compared, and one whose last turn was lost.
  void add_group(uint32_t number, turn_options with) {
    using namespace kernelmill::testing;
    auto good = with, bad = with, gone = with;
    good.reward = 1.5;
    good.terminal = true;
    bad.outcome = wire::Outcome::REJECTED;
    bad.reward = 0;
    bad.text = "<KERNEL>wrong</KERNEL>";
    gone.outcome = wire::Outcome::INFRASTRUCTURE;
    ASSERT_TRUE(
        lineage_.commit({make_turn(number, 0, 0, bad), make_turn(number, 0, 1, good),
                         make_episode(number, 0, {0, 1.5}, with), make_turn(number, 1, 0, good),
                         make_episode(number, 1, {1.5}, with), make_turn(number, 2, 0, gone),
                         make_episode(number, 2, {0}, gone, wire::EpisodeKind::UNUSABLE),
                         make_group(number, {-0.5, 0.5, nan}, with)}));
  }

  report write() {
    auto done = write_dataset({from_}, what_);
    if (!done) throw std::runtime_error(render(done.error()));
    return *done;
  }

  std::string read(const std::string& name) { return text_of_file(what_.directory + "/" + name); }
  nlohmann::json provenance_file() { return nlohmann::json::parse(read("PROVENANCE.json")); }

  temporary_folder folder_;
  store lineage_;
  artifact_store artifacts_;
  source from_;
  request what_;
};

TEST_F(written_dataset, has_a_file_a_split_a_card_and_its_provenance) {
  auto done = write();
  EXPECT_EQ(done.rows, 4u);
  ASSERT_EQ(done.files.size(), 2u);
  EXPECT_EQ(done.files[0].path, "data/train.jsonl");
  EXPECT_EQ(done.files[0].sha256, sha256_hex(read("data/train.jsonl")));
  auto row =
      nlohmann::json::parse(read("data/dev.jsonl").substr(0, read("data/dev.jsonl").find('\n')));
  EXPECT_EQ(row["task"], "native/second");
  EXPECT_THAT(read("README.md"), HasSubstr("  - split: dev\n    path: data/dev.jsonl\n"));
  auto x = provenance_file();
  EXPECT_EQ(x["form"], "sft");
  EXPECT_EQ(x["rows"], 4);
  EXPECT_EQ(x["tasks"][1]["split_by"], "task");
  EXPECT_EQ(x["files"][0]["sha256"], done.files[0].sha256);
  EXPECT_EQ(x["left_out"]["episodes_of_other_governance"], 2);
  EXPECT_EQ(x["models"], nlohmann::json({"scripted"}));
}

TEST_F(written_dataset, is_the_same_bytes_each_time) {
  write();
  auto first = read("data/train.jsonl") + read("README.md") + read("PROVENANCE.json");
  what_.force = true;
  write();
  EXPECT_EQ(first, read("data/train.jsonl") + read("README.md") + read("PROVENANCE.json"));
}

TEST_F(written_dataset, overwrites_nothing_without_force) {
  write();
  auto again = write_dataset({from_}, what_);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().category, "directory_not_empty");
  EXPECT_THAT(again.error().hint, HasSubstr("--force"));
}

TEST_F(written_dataset, with_force_leaves_no_file_of_an_earlier_export_and_touches_no_other) {
  write();
  std::ofstream{what_.directory + "/notes.txt"} << "mine";
  what_.force = what_.zstd = true;
  what_.wanted.splits = {"train"};
  write();
  EXPECT_FALSE(fs::exists(what_.directory + "/data/train.jsonl"));
  EXPECT_FALSE(fs::exists(what_.directory + "/data/dev.jsonl"));
  EXPECT_TRUE(fs::exists(what_.directory + "/data/train.jsonl.zst"));
  EXPECT_EQ(read("notes.txt"), "mine");
}

TEST_F(written_dataset, packs_the_same_lines) {
  write();
  auto plain = read("data/train.jsonl");
  what_.directory = folder_ / "packed";
  what_.zstd = true;
  auto done = write();
  auto packed = read("data/train.jsonl.zst");
  EXPECT_EQ(done.files[0].sha256, sha256_hex(packed));
  std::string unpacked(plain.size() + 100, '\0');
  auto size = ZSTD_decompress(unpacked.data(), unpacked.size(), packed.data(), packed.size());
  ASSERT_FALSE(ZSTD_isError(size)) << ZSTD_getErrorName(size);
  EXPECT_EQ(unpacked.substr(0, size), plain);
}

TEST_F(written_dataset, that_fails_has_no_file_under_its_name) {
  auto lost = turn_options{.task = "native/third"};
  auto record = build<wire::Record>([&](wire::Record::Builder x) {
    auto made = kernelmill::testing::make_turn(2, 0, 0, lost);
    auto view = made.open();
    x.setTurn(view->getTurn());
    auto ref = x.getTurn().getCandidate().initArtifact();
    ref.setSha256(std::string(64, 'a'));
  });
  ASSERT_TRUE(lineage_.commit({record, kernelmill::testing::make_episode(2, 0, {1}, lost)}));
  auto done = write_dataset({from_}, what_);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().category, "not_found");
  EXPECT_FALSE(fs::exists(what_.directory + "/PROVENANCE.json"));
  EXPECT_TRUE(fs::is_empty(what_.directory + "/data")) << "no temporary file either";
}

TEST_F(written_dataset, streams_all_splits_when_there_is_no_folder) {
  std::string text;
  what_.directory.clear();
  what_.stream = [&](std::string_view bytes) -> expected<void> {
    text += bytes;
    return {};
  };
  auto done = write();
  EXPECT_EQ(done.rows, 4u);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);
  EXPECT_TRUE(done.files.at(0).path.empty());
}

TEST_F(written_dataset, ends_when_its_reader_has_gone) {
  what_.directory.clear();
  what_.stream = [](std::string_view) { return infrastructure_error("io_error", "gone"); };
  auto done = write_dataset({from_}, what_);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().category, "io_error");
}

TEST_F(written_dataset, has_returns_only_where_no_reward_is_missing) {
  what_.as = form::rl;
  write();
  auto x = nlohmann::json::parse(read("data/train.jsonl"));
  EXPECT_EQ(x["episodes"][0]["turns"][0]["return"], 0.0);
  EXPECT_EQ(x["episodes"][0]["advantage"], -0.5);
  EXPECT_TRUE(x["episodes"][2]["turns"][0]["return"].is_null()) << "the record says 0";
  EXPECT_TRUE(x["episodes"][2]["advantage"].is_null());
}

TEST_F(written_dataset, of_a_task_without_a_split_goes_by_its_id) {
  from_.splits.clear();
  write();
  EXPECT_EQ(provenance_file()["tasks"][0]["split_by"], "hash");
  EXPECT_EQ(provenance_file()["tasks"][0]["split"], split_of("native/first", ""));
}

} // namespace
} // namespace kernelmill::exports
