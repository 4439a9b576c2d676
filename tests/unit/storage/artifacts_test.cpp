#include "storage/artifacts.hpp"

#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "fixtures.hpp"
#include "messages/base/digest.hpp"
#include "storage/files.hpp"

namespace kernelmill {
namespace artifacts_test {

using namespace fixtures;
namespace fs = std::filesystem;

size_t count_files(const std::string& directory) {
  size_t count = 0;
  for (const auto& x : fs::recursive_directory_iterator{directory}) count += x.is_regular_file();
  return count;
}

std::string file_of(const std::string& directory, const std::string& sha256) {
  return directory + "/" + sha256.substr(0, 2) + "/" + sha256.substr(2) + ".zst";
}

TEST(artifact_store, gives_back_any_bytes) {
  temporary_folder folder;
  artifact_store artifacts{folder / "artifacts"};
  for (const auto& bytes :
       {std::string{}, std::string{"kernel"}, std::string("a\0b", 3), std::string(1 << 20, 'k')}) {
    auto sha256 = sha256_hex(bytes);
    ASSERT_TRUE(artifacts.put(sha256, bytes));
    EXPECT_EQ(*artifacts.get(sha256), bytes);
  }
  EXPECT_LT(fs::file_size(file_of(folder / "artifacts", sha256_hex(std::string(1 << 20, 'k')))),
            1000u);
}

TEST(artifact_store, keeps_one_file_for_equal_contents) {
  temporary_folder folder;
  artifact_store one{folder / "artifacts"}, other{folder / "artifacts"};
  std::string bytes(10000, 'x');
  ASSERT_TRUE(one.put(sha256_hex(bytes), bytes));
  ASSERT_TRUE(one.put(sha256_hex(bytes), bytes));
  ASSERT_TRUE(other.put(sha256_hex(bytes), bytes));
  EXPECT_EQ(count_files(folder / "artifacts"), 1u);
}

TEST(artifact_store, refuses_a_wrong_or_malformed_hash) {
  temporary_folder folder;
  artifact_store artifacts{folder / "artifacts"};
  EXPECT_EQ(artifacts.put(std::string(64, 'a'), "text").error().category, "invalid_artifact");
  EXPECT_EQ(artifacts.put("", "text").error().category, "invalid_artifact");
  EXPECT_EQ(artifacts.put("../../etc/passwd", "text").error().category, "invalid_artifact");
  EXPECT_EQ(artifacts.get("../../etc/passwd").error().category, "not_found");
  EXPECT_EQ(artifacts.get(std::string(64, 'a')).error().category, "not_found");
}

TEST(artifact_store, sees_every_kind_of_damage) {
  temporary_folder folder;
  artifact_store artifacts{folder / "artifacts"};
  std::string bytes(5000, 'x');
  auto sha256 = sha256_hex(bytes);
  ASSERT_TRUE(artifacts.put(sha256, bytes));
  auto path = file_of(folder / "artifacts", sha256);
  auto whole = *read_file(path);
  std::ofstream{path} << "not zstd";
  EXPECT_EQ(artifacts.get(sha256).error().category, "store_damaged");
  std::ofstream{path} << whole.substr(0, whole.size() - 3);
  EXPECT_EQ(artifacts.get(sha256).error().category, "store_damaged");
  std::ofstream{path} << std::string{};
  EXPECT_EQ(artifacts.get(sha256).error().category, "store_damaged");
  // A whole frame of something else.
  ASSERT_TRUE(artifacts.put(sha256_hex("other"), "other"));
  fs::copy_file(file_of(folder / "artifacts", sha256_hex("other")), path,
                fs::copy_options::overwrite_existing);
  EXPECT_EQ(artifacts.get(sha256).error().category, "store_damaged");
}

TEST(artifact_store, takes_writers_from_many_threads) {
  temporary_folder folder;
  std::vector<std::string> texts;
  for (int i = 0; i < 20; ++i) texts.push_back(std::string(5000 + i, 'a'));
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i)
    writers.emplace_back([&] {
      artifact_store mine{folder / "artifacts"};
      for (const auto& text : texts) EXPECT_TRUE(mine.put(sha256_hex(text), text));
    });
  for (auto& writer : writers) writer.join();
  EXPECT_EQ(count_files(folder / "artifacts"), texts.size());
  artifact_store artifacts{folder / "artifacts"};
  for (const auto& text : texts) EXPECT_EQ(*artifacts.get(sha256_hex(text)), text);
}

TEST(artifact_store, writes_a_batch_and_reads_contents) {
  temporary_folder folder;
  artifact_store artifacts{folder / "artifacts"};
  std::string a(5000, 'a'), b(6000, 'b');
  auto sha_a = sha256_hex(a), sha_b = sha256_hex(b);
  std::vector<artifact> batch{{sha_a, a}, {sha_b, b}, {sha_a, a}};
  ASSERT_TRUE(artifacts.put_all(batch));
  auto content = build<wire::Content>([&](wire::Content::Builder x) {
    auto where = x.initArtifact();
    where.setSha256(sha_b);
    where.setSize(b.size());
  });
  EXPECT_EQ(*artifacts.text(*content.open()), b);
  auto inlined = build<wire::Content>([](wire::Content::Builder x) { x.setInline("short"); });
  EXPECT_EQ(*artifacts.text(*inlined.open()), "short");
}

TEST(artifact_store, keeps_the_latest_texts_in_memory_when_it_is_told_to) {
  temporary_folder folder;
  artifact_store artifacts{folder / "artifacts"};
  artifacts.keep_recent(1000);
  auto text = [](int i) { return std::string(100, static_cast<char>('a' + i)); };
  for (int i = 0; i < 12; ++i) ASSERT_TRUE(artifacts.put(sha256_hex(text(i)), text(i)));
  std::string large(200, 'z');
  ASSERT_TRUE(artifacts.put(sha256_hex(large), large)); // would push out two
  fs::remove_all(folder / "artifacts");
  artifact_store copy = artifacts;
  for (int i = 0; i < 12; ++i) {
    auto found = copy.get(sha256_hex(text(i)));
    EXPECT_EQ(found ? *found : found.error().category, i < 2 ? "not_found" : text(i)) << i;
  }
  EXPECT_FALSE(artifacts.get(sha256_hex(large)));
  EXPECT_FALSE(artifact_store{folder / "artifacts"}.get(sha256_hex(text(11))));
}

TEST(artifact_store, removes_what_killed_writers_left) {
  temporary_folder folder;
  artifact_store artifacts{folder / "artifacts"};
  ASSERT_TRUE(artifacts.put(sha256_hex("x"), "x"));
  auto path = file_of(folder / "artifacts", sha256_hex("x"));
  std::ofstream{path + ".4194305.0.tmp"} << "torn"; // beyond the largest process id
  std::ofstream{path + ".1.0.tmp"} << "in progress";
  artifacts.remove_leftovers();
  EXPECT_FALSE(fs::exists(path + ".4194305.0.tmp"));
  EXPECT_TRUE(fs::exists(path + ".1.0.tmp"));
  EXPECT_TRUE(fs::exists(path));
}

} // namespace artifacts_test
} // namespace kernelmill
