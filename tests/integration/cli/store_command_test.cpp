#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "messages/base/json_value.hpp"
#include "messages/identity.hpp"
#include "storage/files.hpp"
#include "storage/lineage/store.hpp"
#include "storage/run_directory.hpp"
#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {

namespace store_command_test {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

const std::string sha = "3fa9c1d2" + std::string(56, '0');

Message<wire::Record> turn_record() {
  return build<wire::Record>([](wire::Record::Builder b) {
    auto t = b.initTurn();
    auto e = t.initEpisode();
    e.setRun("told");
    e.setTask("native/row_sum");
    t.setTurnId(turn_id({"told", "native/row_sum", 0, 1}, 0));
    e.setMember(1);
    t.setCandidateSha256(sha);
    t.initCandidate().setInline("int \x1b[31mx;\n");
    t.initFeedback().setInline("try again");
    t.initCompletion().initText().setInline("<KERNEL>\x07</KERNEL>");
    auto v = t.initVerdict();
    v.setOutcome(wire::Outcome::REJECTED);
    v.setCategory("wrong_result");
    v.setReward(0.25);
    t.setTerminal(true);
  });
}

Message<wire::Record> episode_record() {
  return build<wire::Record>([](wire::Record::Builder b) {
    auto r = b.initEpisode();
    auto e = r.initEpisode();
    e.setRun("told");
    e.setTask("native/row_sum");
    e.setMember(1);
    r.setTurns(1);
    r.setStopReason("max_turns");
    r.setOutcome(wire::Outcome::REJECTED);
    r.initReturns(1).set(0, 0.25);
  });
}

class store_command : public testing::Test {
protected:
  static void SetUpTestSuite() {
    auto run = create_run({scratch() + "/runs/told", "told", ""}, {}, {});
    ASSERT_TRUE(run) << run.error().message;
    auto s = store::open({run->store, false, uint64_t{1} << 24, false});
    ASSERT_TRUE(s) << s.error().message;
    ASSERT_TRUE(s->commit({turn_record(), episode_record()}));
  }
};

TEST_F(store_command, shows_a_run_by_name_and_by_path) {
  auto x = kernelmill({"show", "told", "--json"});
  ASSERT_EQ(x.code, 0) << x.err;
  auto document = x.document();
  EXPECT_EQ(document["tasks"][0]["rejected"], 1);
  EXPECT_EQ(document["episodes"][0]["id"], "g0.e1");
  EXPECT_EQ(kernelmill({"show", "runs/told", "--json"}).document()["episodes"],
            document["episodes"]);
  EXPECT_THAT(kernelmill({"show", "told"}).out, HasSubstr("wrong_result"));
}

TEST_F(store_command, shows_a_group_an_episode_and_a_turn) {
  EXPECT_EQ(kernelmill({"show", "told/g0", "--json"}).document()["episodes"].size(), 1u);
  EXPECT_EQ(kernelmill({"show", "told/g0.e1", "--json"}).document()["turns"].size(), 1u);
  auto turn = kernelmill({"show", "told/g0.e1.t0", "--json"}).document();
  EXPECT_EQ(turn["feedback"], "try again");
  EXPECT_EQ(turn["verdict"]["reward"], 0.25);
}

TEST_F(store_command, control_bytes_of_a_model_never_reach_the_terminal) {
  auto x = kernelmill({"show", "told/g0.e1"});
  EXPECT_EQ(x.code, 0) << x.err;
  EXPECT_THAT(x.out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(x.out, Not(HasSubstr("\x07")));
}

TEST_F(store_command, finds_a_candidate_by_the_first_digits_of_its_hash) {
  auto x = kernelmill({"show", "3fa9c1d2", "--json"});
  ASSERT_EQ(x.code, 0) << x.err;
  EXPECT_EQ(x.document()["candidate_sha256"], sha);
  EXPECT_EQ(x.document()["turns"][0], "told/g0.e1.t0");
}

TEST_F(store_command, what_is_not_there_is_3) {
  for (const auto* what :
       {"tld", "told/g7", "told/g0.e0", "told/g0.e1.t3", "abcdef12", "no/such/path"}) {
    auto x = kernelmill({"show", what});
    EXPECT_EQ(x.code, 3) << what << x.err;
    EXPECT_THAT(x.err, HasSubstr("next: ")) << what;
  }
}

TEST_F(store_command, ps_of_a_run_that_is_over_says_so) {
  auto x = kernelmill({"ps", "told"});
  EXPECT_EQ(x.code, 69) << x.err;
  EXPECT_THAT(x.err, HasSubstr("not in progress"));
  EXPECT_EQ(kernelmill({"ps", "--json"}).document()["episodes"].size(), 0u);
}

// A run of which a part was lost: what is left must not be written over.
class half_a_run : public testing::Test {
protected:
  void SetUp() override {
    auto made = create_run({scratch() + "/runs/half", "half", ""}, json::object(), {});
    ASSERT_TRUE(made) << made.error().message;
    run = *made;
    auto s = store::open({run.store, false, uint64_t{1} << 24, false});
    ASSERT_TRUE(s) << s.error().message;
    write_file("runs/half/traces.jsonl", last_copy);
  }
  void TearDown() override { fs::remove_all(run.path); }

  void expect_refused(const std::string& missing, bool restorable = false) {
    const std::vector<std::vector<std::string>> commands = {
        {"resume", "half"},
        {"show", "half"},
        {"report", "half"},
        {"index", "build", "cards", "--from", "run=half"},
        {"simulate", "--from", "half", source_file("configs/quickstart.json")}};
    for (auto command : commands) {
      command.push_back("--json");
      auto x = kernelmill(command);
      EXPECT_EQ(x.code, 4) << command[0] << x.err;
      EXPECT_EQ(x.fault()["category"], "run_incomplete") << command[0] << x.err;
      EXPECT_THAT(x.fault()["message"], HasSubstr(missing)) << command[0];
      EXPECT_THAT(x.fault()["hint"], HasSubstr("run.name=")) << command[0];
      EXPECT_EQ(x.fault()["hint"].get<std::string>().find("half --from-traces") !=
                    std::string::npos,
                restorable)
          << command[0];
    }
    EXPECT_EQ(*read_file(run.traces_file()), last_copy);
  }

  const std::string last_copy = "{\"episode\": \"g0.e0\"}\n";
  run_directory run;
};

TEST_F(half_a_run, without_its_store_is_refused_everywhere) {
  fs::remove_all(run.store);
  expect_refused("lineage/data.mdb is gone", true);
  auto checked = kernelmill({"fsck", "half", "--json"});
  EXPECT_EQ(checked.code, 5) << checked.err;
  EXPECT_EQ(checked.document()["findings"][0]["kind"], "store_gone");
}

TEST_F(half_a_run, with_a_store_of_0_bytes_is_refused_everywhere) {
  write_file("runs/half/lineage/data.mdb", "");
  expect_refused("lineage/data.mdb has 0 bytes, so its records are gone", true);
  for (const auto* command : {"ps", "fsck"}) {
    auto x = kernelmill({command, "half"});
    EXPECT_NE(x.code, 0) << command << x.out;
    EXPECT_THAT(x.out + x.err, HasSubstr("lineage/data.mdb")) << command;
    EXPECT_THAT(x.err, HasSubstr("half --from-traces")) << command;
  }
  EXPECT_EQ(fs::file_size(run.store + "/data.mdb"), 0u);
}

TEST_F(half_a_run, that_was_imported_comes_back_by_another_import) {
  fs::remove_all(run.path);
  auto made = create_run({run.path, "half", ""}, {{"imported", "gpu_rl"}},
                         {{"imported", {{"system", "gpu_rl"}, {"file", "bundle"}}}});
  ASSERT_TRUE(made) << made.error().message;
  write_file("runs/half/traces.jsonl", last_copy);
  const std::vector<std::vector<std::string>> commands = {
      {"show", "half"}, {"resume", "half"}, {"resume", "half", "--from-traces"}, {"fsck", "half"}};
  for (const auto& command : commands) {
    auto x = kernelmill(command);
    EXPECT_NE(x.code, 0) << command[0];
    EXPECT_THAT(x.err, HasSubstr("kernelmill import gpu-rl-bundle PATH --out runs/NAME"))
        << command[0];
    EXPECT_THAT(x.out + x.err, Not(HasSubstr("kernelmill resume"))) << command[0];
    EXPECT_THAT(x.err, Not(HasSubstr("kernelmill run "))) << command[0];
  }
  EXPECT_EQ(*read_file(run.traces_file()), last_copy);
}

TEST_F(half_a_run, without_its_manifest_is_refused_everywhere) {
  fs::remove(run.manifest_file());
  expect_refused("manifest.json is gone");
}

TEST_F(half_a_run, without_its_configuration_is_refused_everywhere) {
  fs::remove(run.config_file());
  expect_refused("config.json is gone");
}

TEST_F(half_a_run, without_its_records_is_refused_everywhere) {
  auto config = kernelmill({"run", source_file("configs/quickstart.json"), "--dry-run"});
  ASSERT_EQ(config.code, 0) << config.err;
  write_file("runs/half/config.json", config.out);
  expect_refused("its records in ", true);
  EXPECT_NE(kernelmill({"fsck", "half", "--repair"}).code, 0);
  EXPECT_EQ(*read_file(run.traces_file()), last_copy);
}

TEST_F(store_command, resume_of_nothing_is_3) {
  EXPECT_EQ(kernelmill({"resume", "nothing"}).code, 3);
}

} // namespace store_command_test

} // namespace kernelmill::test
