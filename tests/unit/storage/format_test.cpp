// What older programs wrote stays readable, and what they cannot read they are told of.

#include <cstring>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lmdb.h>
#include <zstd.h>

#include "actors/lineage/store_sink.hpp"
#include "fixtures.hpp"
#include "messages/base/digest.hpp"
#include "storage/artifacts.hpp"
#include "storage/files.hpp"
#include "storage/lineage/keys.hpp"
#include "storage/lineage/store.hpp"

namespace kernelmill {
namespace format_test {

using namespace fixtures;
using ::testing::ElementsAre;

// As episodes write turns: the candidate is a part of the completion.
Message<wire::Record> make_turn_with_span(const std::string& run, uint32_t number, uint32_t begin,
                                          uint32_t size) {
  return build<wire::Record>([&](wire::Record::Builder x) {
    auto made = make_turn(0, 0, number, {.run = run, .text = "<KERNEL>int y;</KERNEL>"});
    x.setTurn(made.open()->getTurn());
    auto span = x.getTurn().getCandidate().initOfCompletion();
    span.setBegin(begin);
    span.setSize(size);
  });
}

uint32_t version_of(const std::string& directory) {
  MDB_env* env = nullptr;
  MDB_txn* txn = nullptr;
  MDB_dbi dbi = 0;
  uint32_t version = 0;
  char name[] = "schema_version";
  MDB_val key{sizeof name - 1, name}, value{};
  EXPECT_EQ(mdb_env_create(&env), 0);
  mdb_env_set_maxdbs(env, 4);
  EXPECT_EQ(mdb_env_open(env, directory.c_str(), MDB_RDONLY, 0666), 0);
  EXPECT_EQ(mdb_txn_begin(env, nullptr, MDB_RDONLY, &txn), 0);
  EXPECT_EQ(mdb_dbi_open(txn, "meta", 0, &dbi), 0);
  EXPECT_EQ(mdb_get(txn, dbi, &key, &value), 0);
  if (value.mv_size == sizeof version) std::memcpy(&version, value.mv_data, sizeof version);
  mdb_txn_abort(txn);
  mdb_env_close(env);
  return version;
}

// A store that 0.1 wrote before version 2: the run "old" with one episode of two turns.
std::string unpack_version_1(const temporary_folder& folder) {
  auto packed = read_file(std::string{std::getenv("KERNELMILL_SOURCE_DIR")} +
                          "/tests/unit/storage/golden/store_v1.mdb.zst");
  EXPECT_TRUE(packed);
  std::string bytes(ZSTD_getFrameContentSize(packed->data(), packed->size()), '\0');
  EXPECT_EQ(ZSTD_decompress(bytes.data(), bytes.size(), packed->data(), packed->size()),
            bytes.size());
  auto directory = folder / "lineage";
  std::filesystem::create_directories(directory);
  std::ofstream{directory + "/data.mdb", std::ios::binary} << bytes;
  return directory;
}

std::vector<std::string> candidates_of(const store& from, const artifact_store& artifacts,
                                       const std::string& run) {
  std::vector<std::string> result;
  auto ok = from.scan_episode(run, 0, 0, [&](wire::Record::Reader x) {
    if (!x.isTurn()) return true;
    auto text = artifacts.candidate(x.getTurn());
    result.push_back(text ? *text : text.error().category);
    return true;
  });
  EXPECT_TRUE(ok);
  return result;
}

TEST(store_of_version_1, is_read_and_left_as_it_is) {
  temporary_folder folder;
  auto directory = unpack_version_1(folder);
  auto lineage = store::open({.directory = directory, .map_bytes = 1 << 20});
  ASSERT_TRUE(lineage) << render(lineage.error());
  std::vector<std::string> names;
  ASSERT_TRUE(lineage->scan_run("old", [&](wire::Record::Reader x) {
    names.push_back(name_of(x));
    return true;
  }));
  EXPECT_THAT(names, ElementsAre("running", "g0.e0.t0", "g0.e0.t1", "g0.e0", "g0", "finished"));
  EXPECT_THAT(candidates_of(*lineage, artifact_store{folder / "artifacts"}, "old"),
              ElementsAre("int x;", "int x;"));
  // Records that an older program reads do not lock it out.
  ASSERT_TRUE(lineage->commit({make_turn(0, 0, 2, {.run = "old"})}));
  lineage = tl::unexpected<error>{error{}};
  EXPECT_EQ(version_of(directory), 1u);
}

TEST(store_of_version_1, takes_records_of_version_2_and_says_so) {
  temporary_folder folder;
  auto directory = unpack_version_1(folder);
  auto lineage = store::open({.directory = directory, .map_bytes = 1 << 20});
  ASSERT_TRUE(lineage) << render(lineage.error());
  ASSERT_TRUE(lineage->commit({make_turn_with_span("old", 2, 8, 6)}));
  EXPECT_THAT(candidates_of(*lineage, artifact_store{folder / "artifacts"}, "old"),
              ElementsAre("int x;", "int x;", "int y;"));
  lineage = tl::unexpected<error>{error{}};
  EXPECT_EQ(version_of(directory), 2u);
  EXPECT_TRUE(store::open({.directory = directory, .map_bytes = 1 << 20}));
}

TEST(record, of_a_span_has_a_version_that_older_programs_refuse) {
  auto plain = make_turn(0, 0, 0), spanned = make_turn_with_span("demo", 0, 8, 6);
  EXPECT_EQ(schema_of(*plain.open()), 1);
  EXPECT_EQ(schema_of(*spanned.open()), 2);
  EXPECT_EQ(schema_of(*make_episode(0, 0, {1}).open()), 1);
  EXPECT_EQ(schema_of(*make_tool_turn(0, 0, 0, "c1", "c0", "x").open()), 3);
  EXPECT_EQ(schema_of(*make_turn(0, 0, 0, {.outcome = wire::Outcome::OPEN}).open()), 3);
  store_key key{};
  std::vector<uint64_t> value((value_header_bytes + spanned.size()) / 8);
  auto* first = reinterpret_cast<unsigned char*>(value.data());
  for (uint16_t schema : {1, 2, 3, 4}) {
    write_value(first, key, {spanned.data(), spanned.size()}, schema);
    auto read = read_value(key, {reinterpret_cast<const char*>(first), value.size() * 8});
    EXPECT_EQ(read ? "read" : read.error().category, schema > 3 ? "store_newer" : "read");
  }
}

TEST(store, says_that_it_has_turns_of_tools_from_the_first_on) {
  temporary_folder folder;
  auto directory = folder / "lineage";
  for (auto [number, version] : {std::pair{0u, 2u}, {1u, 3u}}) {
    auto lineage = store::open({.directory = directory, .map_bytes = 1 << 20});
    ASSERT_TRUE(lineage) << render(lineage.error());
    ASSERT_TRUE(lineage->commit({number == 0 ? make_turn_with_span("demo", 0, 8, 6)
                                             : make_tool_turn(0, 0, 1, "c1", "c0", "x")}));
    lineage = tl::unexpected<error>{error{}};
    EXPECT_EQ(version_of(directory), version);
  }
}

TEST(history, has_the_texts_of_calls_and_candidates_in_full) {
  temporary_folder folder;
  artifact_store artifacts{folder / "artifacts"};
  std::string source(5000, 's');
  ASSERT_TRUE(artifacts.put(sha256_hex(source), source));
  auto turn = build<wire::Record>([&](wire::Record::Builder x) {
    auto made = make_tool_turn(0, 0, 0, "c1", "c0", source);
    x.setTurn(made.open()->getTurn());
    auto ref = x.getTurn().getCandidates()[0].getSource().initArtifact();
    ref.setSha256(sha256_hex(source));
    ref.setSize(source.size());
  });
  auto history = history_of({turn}, [&](wire::Content::Reader x) { return artifacts.text(x); });
  ASSERT_TRUE(history) << render(history.error());
  EXPECT_EQ(history->open()->getTurns()[0].getCandidates()[0].getSource().getInline().size(),
            5000u);
}

TEST(candidate, outside_of_its_completion_is_damage) {
  artifact_store artifacts{"/nowhere"};
  for (auto [begin, size] : {std::pair{8u, 16u}, {24u, 0u}, {8u, UINT32_MAX}, {UINT32_MAX, 1u}}) {
    auto turn = make_turn_with_span("demo", 0, begin, size);
    auto text = artifacts.candidate(turn.open()->getTurn());
    ASSERT_FALSE(text) << begin;
    EXPECT_EQ(text.error().category, "store_damaged");
    auto history = history_of({turn}, [&](wire::Content::Reader x) { return artifacts.text(x); });
    EXPECT_EQ(history ? "read" : history.error().category, "store_damaged");
  }
  auto whole = make_turn_with_span("demo", 0, 0, 23);
  EXPECT_EQ(*artifacts.candidate(whole.open()->getTurn()), "<KERNEL>int y;</KERNEL>");
}

TEST(candidate, that_is_a_part_of_an_artifact_stands_in_full_in_a_history) {
  temporary_folder folder;
  artifact_store artifacts{folder / "artifacts"};
  std::string completion = std::string(5000, 't') + "<KERNEL>int y;</KERNEL>";
  ASSERT_TRUE(artifacts.put(sha256_hex(completion), completion));
  auto turn = build<wire::Record>([&](wire::Record::Builder x) {
    auto made = make_turn_with_span("demo", 0, 5008, 6);
    x.setTurn(made.open()->getTurn());
    auto text = x.getTurn().getCompletion().getText().initArtifact();
    text.setSha256(sha256_hex(completion));
    text.setSize(completion.size());
  });
  EXPECT_EQ(*artifacts.candidate(turn.open()->getTurn()), "int y;");
  auto history = history_of({turn}, [&](wire::Content::Reader x) { return artifacts.text(x); });
  ASSERT_TRUE(history) << render(history.error());
  auto view = history->open();
  EXPECT_STREQ(view->getTurns()[0].getCandidate().getInline().cStr(), "int y;");
  EXPECT_EQ(view->getTurns()[0].getCompletion().getText().getInline().size(), completion.size());
}

} // namespace format_test
} // namespace kernelmill
