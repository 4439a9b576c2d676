// `kernelmill fsck` on each kind of damage: what it says, what it repairs, and what it cannot.

#include <fstream>
#include <functional>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lmdb.h>

#include "fixtures.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/json_value.hpp"
#include "storage/files.hpp"
#include "storage/fsck/fsck.hpp"
#include "storage/journal/run_journal.hpp"

namespace kernelmill {
namespace fsck_test {

using namespace fixtures;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr uint32_t groups = 4, members = 2, turns_each = 3;
constexpr uint64_t all_turns = groups * members * turns_each;

std::string long_text(uint32_t group, uint32_t member, uint32_t turn) {
  return "answer " + std::to_string(group * 100 + member * 10 + turn) + std::string(5000, 'y');
}

Message<wire::Record> turn_with_artifact(uint32_t group, uint32_t member, uint32_t turn) {
  auto plain = make_turn(group, member, turn, {.feedback = std::string(900, 'f')});
  capnp::MallocMessageBuilder builder;
  builder.setRoot(*plain.open());
  auto text = long_text(group, member, turn);
  auto artifact =
      builder.getRoot<wire::Record>().getTurn().getCompletion().initText().initArtifact();
  artifact.setSha256(sha256_hex(text));
  artifact.setSize(text.size());
  return Message<wire::Record>{builder};
}

class fsck_test : public ::testing::Test {
protected:
  void SetUp() override {
    auto made = create_run({folder_ / "demo", "demo", ""}, nlohmann::ordered_json::object(), {});
    ASSERT_TRUE(made);
    run_ = *made;
    auto lineage = store::open({.directory = run_.store, .durable = false});
    ASSERT_TRUE(lineage);
    artifact_store artifacts{run_.artifacts};
    auto journal = run_journal::open(run_);
    ASSERT_TRUE(journal);
    auto commit = [&](const Message<wire::Record>& x) {
      ASSERT_TRUE(lineage->commit({x}));
      ASSERT_TRUE(journal->follow(*lineage, artifacts, *x.open()));
    };
    commit(make_run("demo", "running"));
    for (uint32_t group = 0; group < groups; ++group) {
      for (uint32_t member = 0; member < members; ++member) {
        for (uint32_t turn = 0; turn < turns_each; ++turn) {
          auto text = long_text(group, member, turn);
          ASSERT_TRUE(artifacts.put(sha256_hex(text), text));
          commit(turn_with_artifact(group, member, turn));
        }
        commit(make_episode(group, member, {0.1, 0.2, 0.3}));
      }
      commit(make_group(group, {0.5, -0.5}));
    }
    commit(make_run("demo", "finished"));
  }

  std::string data() const { return run_.store + "/data.mdb"; }

  fsck_report check(bool repair = false) {
    auto x = check_run(run_, repair);
    EXPECT_TRUE(x) << (x ? "" : render(x.error()));
    return x ? *x : fsck_report{};
  }

  static std::string told(const fsck_report& x) {
    std::string result;
    for (const auto& f : x.findings)
      result += std::string{to_string(f.state)} + " " + f.kind + ": " + f.what + "\n";
    return result;
  }

  static bool sound(const fsck_report& x) {
    return !x.has(finding_state::damage) && !x.has(finding_state::lost);
  }

  void expect_all_turns(uint64_t turns) {
    auto lineage = store::open({.directory = run_.store});
    ASSERT_TRUE(lineage) << render(lineage.error());
    uint64_t count = 0;
    auto ok = lineage->scan_run("demo", [&](wire::Record::Reader record) {
      if (!record.isTurn()) return true;
      ++count;
      auto found = lineage->find_turn(record.getTurn().getTurnId().cStr());
      EXPECT_TRUE(found && *found) << "the index lacks a turn";
      return true;
    });
    EXPECT_TRUE(ok) << render(ok.error());
    EXPECT_EQ(count, turns);
  }

  // Damage that leaves nothing lost: it is told, repaired, and gone.
  void expect_repaired(const char* kind) {
    auto before = check();
    EXPECT_FALSE(sound(before));
    EXPECT_FALSE(before.has(finding_state::lost)) << told(before);
    EXPECT_THAT(told(before), HasSubstr(std::string{"damage "} + kind));
    auto after = check(true);
    EXPECT_TRUE(sound(after)) << told(after);
    EXPECT_THAT(told(after), HasSubstr(std::string{"repaired "} + kind));
    auto again = check();
    EXPECT_TRUE(sound(again)) << told(again);
    EXPECT_FALSE(again.has(finding_state::repaired));
    expect_all_turns(all_turns);
  }

  void overwrite(const std::string& path, size_t at, const std::string& bytes) {
    std::fstream file{path, std::ios::in | std::ios::out | std::ios::binary};
    file.seekp(static_cast<std::streamoff>(at));
    file << bytes;
  }

  void with_lmdb(const char* database, const std::function<void(MDB_txn*, MDB_dbi)>& change) {
    MDB_env* env = nullptr;
    MDB_txn* txn = nullptr;
    MDB_dbi dbi = 0;
    ASSERT_EQ(mdb_env_create(&env), 0);
    mdb_env_set_maxdbs(env, 4);
    ASSERT_EQ(mdb_env_open(env, run_.store.c_str(), MDB_NOSYNC, 0666), 0);
    ASSERT_EQ(mdb_txn_begin(env, nullptr, 0, &txn), 0);
    ASSERT_EQ(mdb_dbi_open(txn, database, 0, &dbi), 0);
    change(txn, dbi);
    ASSERT_EQ(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
  }

  std::string artifact_file(const std::string& text) {
    auto sha256 = sha256_hex(text);
    return run_.artifacts + "/" + sha256.substr(0, 2) + "/" + sha256.substr(2) + ".zst";
  }

  temporary_folder folder_;
  run_directory run_;
};

TEST_F(fsck_test, finds_nothing_in_a_sound_run) {
  auto x = check();
  EXPECT_TRUE(x.findings.empty()) << told(x);
  EXPECT_EQ(x.turns, all_turns);
  EXPECT_EQ(x.artifacts, all_turns);
  auto repaired = check(true);
  EXPECT_TRUE(repaired.findings.empty() && repaired.quarantine.empty()) << told(repaired);
}

TEST_F(fsck_test, says_which_record_is_lost_and_keeps_the_others) {
  auto whole = *read_file(data());
  auto id = turn_id({"demo", "native/row_sum", 3, 1}, 1);
  // LMDB copies pages when it writes: the record may lie in several of them.
  for (auto at = whole.find(id); at != whole.npos; at = whole.find(id, at + 1))
    overwrite(data(), at, "!");
  auto before = check();
  EXPECT_THAT(told(before), HasSubstr("lost record: the record of g3.e1.t1 is damaged"));
  auto after = check(true);
  EXPECT_FALSE(after.has(finding_state::damage)) << told(after);
  EXPECT_THAT(told(after), HasSubstr("g3.e1.t1"));
  EXPECT_TRUE(fs::exists(after.quarantine + "/lineage/data.mdb"));
  expect_all_turns(all_turns - 1);
  auto again = check();
  EXPECT_THAT(told(again), HasSubstr("lost sequence: g3.e1.t1 is not there"));
  EXPECT_FALSE(again.has(finding_state::damage)) << told(again);
}

TEST_F(fsck_test, repairs_the_index) {
  with_lmdb("turn_log", [](MDB_txn* txn, MDB_dbi dbi) {
    MDB_cursor* at = nullptr;
    MDB_val key{}, value{};
    ASSERT_EQ(mdb_cursor_open(txn, dbi, &at), 0);
    ASSERT_EQ(mdb_cursor_get(at, &key, &value, MDB_FIRST), 0);
    ASSERT_EQ(mdb_cursor_del(at, 0), 0);
    mdb_cursor_close(at);
  });
  expect_repaired("index");
}

TEST_F(fsck_test, repairs_a_runs_name) {
  with_lmdb("meta", [](MDB_txn* txn, MDB_dbi dbi) {
    MDB_cursor* at = nullptr;
    MDB_val key{}, value{};
    ASSERT_EQ(mdb_cursor_open(txn, dbi, &at), 0);
    ASSERT_EQ(mdb_cursor_get(at, &key, &value, MDB_FIRST), 0);
    ASSERT_EQ(mdb_cursor_del(at, 0), 0);
    mdb_cursor_close(at);
  });
  expect_repaired("run_name");
}

TEST_F(fsck_test, sees_a_record_under_anothers_key) {
  with_lmdb("records", [](MDB_txn* txn, MDB_dbi dbi) {
    MDB_cursor* at = nullptr;
    MDB_val key{}, value{};
    ASSERT_EQ(mdb_cursor_open(txn, dbi, &at), 0);
    ASSERT_EQ(mdb_cursor_get(at, &key, &value, MDB_LAST), 0);
    std::string other{static_cast<char*>(key.mv_data), key.mv_size};
    std::string copy{static_cast<char*>(value.mv_data), value.mv_size};
    mdb_cursor_close(at);
    other.back() = 9;
    MDB_val new_key{other.size(), other.data()}, new_value{copy.size(), copy.data()};
    ASSERT_EQ(mdb_put(txn, dbi, &new_key, &new_value, 0), 0);
  });
  EXPECT_THAT(told(check()), HasSubstr("the run's record 9 is damaged"));
  EXPECT_FALSE(check(true).has(finding_state::damage));
  expect_all_turns(all_turns);
}

// No damage of a page ends the process, and every record outside of it comes back.
TEST_F(fsck_test, survives_noise_in_any_page) {
  auto whole = *read_file(data());
  std::mt19937 random{5};
  for (size_t page = 0; page * 4096 < whole.size(); ++page) {
    SCOPED_TRACE("page " + std::to_string(page));
    std::string noise(4096, '\0');
    if (page % 2 == 0)
      for (auto& c : noise) c = static_cast<char>(random());
    overwrite(data(), page * 4096, noise);
    auto x = check(true);
    EXPECT_FALSE(x.has(finding_state::damage)) << told(x);
    expect_all_turns(x.turns);
    EXPECT_GE(x.turns, all_turns - 4) << told(x);
    // As it was, for the next page.
    fs::remove_all(run_.path + "/quarantine");
    std::ofstream{data(), std::ios::trunc | std::ios::binary} << whole;
    ASSERT_TRUE(sound(check(true)));
  }
}

TEST_F(fsck_test, saves_what_is_left_of_a_store_that_was_cut_off) {
  auto size = fs::file_size(data());
  fs::resize_file(data(), size / 4096 * 7 / 8 * 4096);
  auto traces = *read_file(run_.traces_file());
  auto x = check(true);
  EXPECT_FALSE(x.has(finding_state::damage)) << told(x);
  EXPECT_TRUE(x.has(finding_state::lost));
  EXPECT_GT(x.turns, 0u);
  expect_all_turns(x.turns);
  // The last copy of what was lost.
  auto kept = read_file(x.quarantine + "/traces.jsonl");
  ASSERT_TRUE(kept) << told(x);
  EXPECT_EQ(*kept, traces);
}

TEST_F(fsck_test, says_so_when_nothing_can_be_read) {
  std::ofstream{data(), std::ios::trunc | std::ios::binary} << std::string(40'960, 'x');
  EXPECT_THAT(told(check()), HasSubstr("lost record: no record can be read at all"));
  auto traces = *read_file(run_.traces_file());
  EXPECT_THAT(told(check(true)), HasSubstr("lost store_gone: the store has no opening"));
  EXPECT_EQ(*read_file(run_.traces_file()), traces);
}

TEST_F(fsck_test, takes_a_store_of_0_bytes_for_one_that_is_gone) {
  std::ofstream{data(), std::ios::trunc | std::ios::binary};
  auto x = check(true);
  EXPECT_FALSE(x.has(finding_state::damage)) << told(x);
  EXPECT_THAT(told(x), HasSubstr("lost store_gone"));
  EXPECT_THAT(told(x), HasSubstr("kernelmill resume " + run_.path + " --from-traces"));
}

TEST_F(fsck_test, tells_a_store_that_is_gone_from_a_run_that_has_not_begun) {
  std::filesystem::remove(run_.store + "/data.mdb");
  auto gone = check_run(run_, false);
  ASSERT_TRUE(gone) << gone.error().message;
  EXPECT_TRUE(gone->has(finding_state::lost));
  std::filesystem::remove(run_.traces_file());
  std::filesystem::remove(run_.metrics_file());
  auto none = check_run(run_, false);
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_FALSE(none->has(finding_state::lost));
  EXPECT_EQ(none->turns, 0u);
  ASSERT_EQ(none->findings.size(), 1u);
  EXPECT_EQ(none->findings[0].kind, "not_begun");
}

TEST_F(fsck_test, brings_artifacts_back_from_traces) {
  fs::remove(artifact_file(long_text(1, 1, 1)));
  std::ofstream{artifact_file(long_text(2, 0, 0)), std::ios::trunc} << "noise";
  auto before = check();
  EXPECT_THAT(told(before), HasSubstr("lost artifact_missing: the completion of g1.e1.t1"));
  EXPECT_THAT(told(before), HasSubstr("damage artifact_damaged"));
  auto after = check(true);
  EXPECT_TRUE(sound(after)) << told(after);
  EXPECT_EQ(*artifact_store{run_.artifacts}.get(sha256_hex(long_text(2, 0, 0))),
            long_text(2, 0, 0));
  EXPECT_TRUE(sound(check()));
}

TEST_F(fsck_test, knows_the_texts_of_tool_calls_and_candidates) {
  artifact_store artifacts{run_.artifacts};
  const std::string arguments(5000, 'a'), observation(5000, 'o'), source(5000, 's'),
      patch(5000, 'p');
  {
    auto plain = make_tool_turn(groups, 0, 0, "c1", "c0", source);
    capnp::MallocMessageBuilder builder;
    builder.setRoot(*plain.open());
    auto turn = builder.getRoot<wire::Record>().getTurn();
    auto keep = [&](wire::Content::Builder x, const std::string& text) {
      ASSERT_TRUE(artifacts.put(sha256_hex(text), text));
      auto ref = x.initArtifact();
      ref.setSha256(sha256_hex(text));
      ref.setSize(text.size());
    };
    keep(turn.getCalls()[1].getArguments(), arguments);
    keep(turn.getCalls()[1].getObservation(), observation);
    keep(turn.getCandidates()[0].getSource(), source);
    keep(turn.getCandidates()[0].getPatch(), patch);
    Message<wire::Record> record{builder};
    auto lineage = store::open({.directory = run_.store, .durable = false});
    auto journal = run_journal::open(run_);
    ASSERT_TRUE(lineage && journal);
    ASSERT_TRUE(lineage->commit({record}));
    ASSERT_TRUE(journal->follow(*lineage, artifacts, *record.open()));
  }
  auto sane = check();
  EXPECT_TRUE(sane.findings.empty()) << told(sane) << "nothing is orphaned";
  for (const auto* text : {&arguments, &observation, &source, &patch})
    fs::remove(artifact_file(*text));
  auto before = check();
  for (const char* what : {"the arguments of a call", "the observation of a call",
                           "the source of a candidate", "the patch of a candidate"})
    EXPECT_THAT(told(before), HasSubstr(std::string{"lost artifact_missing: "} + what));
  auto after = check(true);
  EXPECT_TRUE(sound(after)) << told(after) << "traces.jsonl has them all";
  EXPECT_EQ(*artifact_store{run_.artifacts}.get(sha256_hex(source)), source);
}

TEST_F(fsck_test, keeps_the_journals_when_a_text_is_lost) {
  fs::remove(artifact_file(long_text(1, 1, 1)));
  auto lines = *read_file(run_.metrics_file());
  fs::remove(run_.traces_file());
  std::ofstream{run_.metrics_file(), std::ios::app} << "{\"kind\":";
  auto x = check(true);
  EXPECT_TRUE(x.has(finding_state::lost)) << told(x);
  EXPECT_EQ(*read_file(run_.metrics_file()), lines + "{\"kind\":");
}

TEST_F(fsck_test, notes_what_no_record_names) {
  artifact_store artifacts{run_.artifacts};
  ASSERT_TRUE(artifacts.put(sha256_hex("alone"), "alone"));
  std::ofstream{run_.artifacts + "/aa.zst.999999999.0.tmp"} << "x";
  auto x = check();
  EXPECT_TRUE(sound(x));
  EXPECT_THAT(told(x), HasSubstr("note artifact_orphaned: 1 artifacts"));
  EXPECT_THAT(told(check(true)), HasSubstr("repaired leftover"));
}

TEST_F(fsck_test, repairs_journals) {
  auto whole = *read_file(run_.traces_file());
  auto first = whole.substr(0, whole.find('\n') + 1);
  auto rest = whole.substr(first.size());
  auto changed = first;
  changed.replace(changed.find("\"reward\":0.3"), 12, "\"reward\":0.9");
  for (const auto& text : {rest, whole + first, changed + rest, whole + "{\"kind\":\"tu",
                           "noise\n" + whole, std::string{}}) {
    std::ofstream{run_.traces_file(), std::ios::trunc} << text;
    expect_repaired("journal");
    EXPECT_EQ(read_file(run_.traces_file())->size(), whole.size());
  }
}

TEST_F(fsck_test, tells_of_lines_that_the_store_lacks) {
  auto line = turn_metrics(make_turn(77, 0, 0).open()->getTurn());
  std::ofstream{run_.metrics_file(), std::ios::app} << json_line(line) << "\n";
  EXPECT_THAT(told(check()), HasSubstr("lost journal: metrics.jsonl: 1 lines are of records"));
  auto x = check(true);
  EXPECT_THAT(*read_file(x.quarantine + "/metrics.jsonl"), HasSubstr(json_line(line)));
  EXPECT_TRUE(sound(check()));
}

TEST_F(fsck_test, waits_for_no_writer) {
  auto lineage = store::open({.directory = run_.store});
  auto x = check_run(run_, true);
  ASSERT_FALSE(x);
  EXPECT_EQ(x.error().category, "store_locked");
}

} // namespace fsck_test
} // namespace kernelmill
