// `kernelmill compare`: runs by their figures, which a program in Python makes anew; groups,
// episodes, turns and candidates by what differs.

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "messages/base/json_value.hpp"
#include "storage/lineage/store.hpp"
#include "storage/run_directory.hpp"
#include "tests/integration/cli/program.hpp"
#include "tests/unit/storage/fixtures.hpp"

namespace kernelmill::test {

namespace compare_command_test {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using records = std::vector<Message<wire::Record>>;

/// A turn of the fixtures with what they leave out: an interval, and what `more` says.
template <class F>
Message<wire::Record> turn_with(uint32_t group, uint32_t member, uint32_t number,
                                const fixtures::turn_options& with, F more) {
  auto made = fixtures::make_turn(group, member, number, with);
  auto opened = made.open();
  return build<wire::Record>([&](wire::Record::Builder x) {
    x.setTurn(opened->getTurn());
    auto turn = x.getTurn();
    turn.setCandidateSha256("sha of " + with.text);
    auto s = turn.getFacts().getEvaluation().getTiming().initSpeedup();
    s.setEstimate(with.speedup);
    s.setLow(with.speedup * 0.95);
    s.setHigh(with.speedup * 1.05);
    more(turn);
  });
}

std::string task_name(uint32_t n) {
  return "native/task_" + std::to_string(n / 10) + std::to_string(n % 10);
}

/// 40 tasks of which each run lacks one, another has other files, and every fourth is held out.
nlohmann::ordered_json manifest_of(const std::string& run) {
  auto tasks = nlohmann::ordered_json::array();
  for (uint32_t n = 0; n < 40; ++n)
    tasks.push_back({{"id", task_name(n)},
                     {"digest", n == 5 ? "files of " + run : "files"},
                     {"split", n % 4 == 0 ? "dev" : "train"}});
  return {{"tasks", tasks}, {"toolchain", "g++ of " + run}};
}

/// Episodes of up to three turns, seeded: right and wrong, lost and untimed, open and ended.
records episodes_of_task(std::mt19937& random, const std::string& run, uint32_t n, bool better) {
  records result;
  for (uint32_t member = 0; member < 2 + random() % 4; ++member) {
    fixtures::turn_options with;
    with.run = run;
    with.task = task_name(n);
    bool lost = random() % 12 == 0;
    std::vector<double> rewards;
    for (uint32_t turn = 0; turn < 1 + random() % 3; ++turn) {
      bool right = random() % 3 != 0 || better;
      bool unpaid = right && random() % 8 == 0;
      with.outcome = right ? wire::Outcome::ACCEPTED : wire::Outcome::REJECTED;
      with.not_timed = unpaid ? wire::NotTimed::MACHINE : wire::NotTimed::NO;
      with.speedup = 0.5 + static_cast<double>(random() % 300) / 100 + (better ? 0.3 : 0);
      with.reward = right ? 0.3 + with.speedup : 0.05;
      if (random() % 15 == 0) with.outcome = wire::Outcome::INFRASTRUCTURE;
      bool timed = right && !unpaid && with.outcome == wire::Outcome::ACCEPTED;
      result.push_back(turn_with(n, member, turn, with, [&](wire::TurnRecord::Builder x) {
        if (!timed) x.getFacts().getEvaluation().initTiming();
      }));
      rewards.push_back(with.reward);
    }
    with.outcome = lost ? wire::Outcome::INFRASTRUCTURE : wire::Outcome::ACCEPTED;
    if (random() % 10 != 0) result.push_back(fixtures::make_episode(n, member, rewards, with));
  }
  return result;
}

void write_run(const std::string& name, uint32_t seed, uint32_t without, bool better,
               double temperature) {
  auto run = create_run(
      {scratch() + "/runs/" + name, name, ""},
      {{"policy", {{"sampling", {{"temperature", temperature}}}}}, {"run", {{"name", name}}}},
      manifest_of(name));
  ASSERT_TRUE(run) << run.error().message;
  auto s = store::open({run->store, false, uint64_t{1} << 26, false});
  ASSERT_TRUE(s) << s.error().message;
  std::mt19937 random{seed};
  for (uint32_t n = 0; n < 40; ++n) {
    auto all = episodes_of_task(random, name, n, better);
    if (n == without) continue;
    auto committed = s->commit(all);
    ASSERT_TRUE(committed) << committed.error().message;
  }
}

class compare_command : public ::testing::Test {
protected:
  static void SetUpTestSuite() {
    write_run("base", 1, 7, false, 1.0);
    write_run("checkpoint", 2, 9, true, 0.5);
    write_turns();
  }

  /// Two episodes of one group, whose second turns differ in everything.
  static void write_turns() {
    auto run = create_run({scratch() + "/runs/turns", "turns", ""}, json::object(), {});
    ASSERT_TRUE(run) << run.error().message;
    auto s = store::open({run->store, false, uint64_t{1} << 24, false});
    ASSERT_TRUE(s) << s.error().message;
    fixtures::turn_options with;
    with.run = "turns";
    records all;
    auto nothing_more = [](wire::TurnRecord::Builder) {};
    for (uint32_t member : {0u, 1u}) all.push_back(turn_with(0, member, 0, with, nothing_more));
    with.text = "first";
    all.push_back(turn_with(0, 0, 1, with, [](wire::TurnRecord::Builder x) {
      x.initCandidate().setInline("int a;\nint b;\n");
      x.setCandidateSha256("aaaaaa1111");
      x.getFacts().getEvaluation().initCases(1)[0].setName("small");
      x.getFacts().getEvaluation().getCases()[0].setPass(true);
    }));
    with.text = "second";
    with.speedup = 2;
    with.reward = 1;
    with.outcome = wire::Outcome::REJECTED;
    all.push_back(turn_with(0, 1, 1, with, [](wire::TurnRecord::Builder x) {
      x.initCandidate().setInline("int a;\nint c;\n");
      x.setCandidateSha256("bbbbbb2222");
      x.getFacts().getBuild().setLog("kernel.cpp:2: warning: \x1b[31mno b\n");
      x.getVerdict().initFindings(1)[0].setRule("late_write");
      x.getVerdict().getFindings()[0].setEvidence("3 of 4");
      auto bad = x.getFacts().getEvaluation().initCases(1)[0];
      bad.setName("small");
      bad.setFirstBad("y[3]: got 1, want 2");
      bad.setBadCount(4);
    }));
    auto committed = s->commit(all);
    ASSERT_TRUE(committed) << committed.error().message;
  }

  static json compare(const std::string& a, const std::string& b,
                      std::vector<std::string> more = {}) {
    std::vector<std::string> words{"compare", a, b, "--json"};
    words.insert(words.end(), more.begin(), more.end());
    auto x = kernelmill(words);
    EXPECT_EQ(x.code, 0) << x.err;
    return x.document();
  }

  static json group(const json& document, const std::string& name) {
    for (const auto& x : document["groups"])
      if (x["group"] == name) return x;
    ADD_FAILURE() << "no group " << name << " in " << document;
    return {};
  }

  static json value(const json& of, const std::string& key) {
    for (const auto& x : of["values"])
      if (x["key"] == key) return x;
    ADD_FAILURE() << "no value " << key << " in " << of;
    return {};
  }

  static void expect_oracle(const std::string& a, const std::string& b,
                            std::vector<std::string> more) {
    std::vector<std::string> words{
        "/usr/bin/python3", "-B", source_file("tests/integration/cli/compare_oracle.py"),
        binary(),           a,    b};
    words.insert(words.end(), more.begin(), more.end());
    auto x = run_program(words);
    EXPECT_EQ(x.code, 0) << x.err;
    EXPECT_THAT(x.out, HasSubstr("agree"));
  }
};

TEST_F(compare_command, figures_of_runs_are_those_of_an_oracle) {
  expect_oracle("runs/base", "runs/checkpoint", {"--draws", "1000"});
  expect_oracle("runs/base", "runs/checkpoint", {"--draws", "1000", "--seed", "12345678901"});
  expect_oracle("runs/checkpoint", "runs/base", {"--draws", "1500", "--p", "0.5,3", "--k", "3,5"});
}

TEST_F(compare_command, held_out_tasks_have_figures_of_their_own) {
  expect_oracle("runs/base", "runs/checkpoint", {"--draws", "1500", "--held-out"});
  auto x = compare("runs/base", "runs/checkpoint", {"--held-out"});
  EXPECT_EQ(x["tasks"]["compared"], 10);
  for (const auto& t : x["by_task"])
    EXPECT_EQ(std::stoi(t["task"].get<std::string>().substr(12)) % 4, 0) << t["task"];
}

TEST_F(compare_command, runs_say_what_is_in_no_figure_and_what_made_them_differ) {
  auto x = compare("runs/base", "runs/checkpoint");
  EXPECT_EQ(x["tasks"]["only_a"], json({task_name(9)}));
  EXPECT_EQ(x["tasks"]["only_b"], json({task_name(7)}));
  EXPECT_EQ(x["tasks"]["changed"], json({task_name(5)}));
  EXPECT_EQ(x["tasks"]["compared"], 37);
  EXPECT_GT(x["left_out"]["a"]["infrastructure"], 0);
  EXPECT_GT(x["left_out"]["b"]["open"], 0);
  ASSERT_EQ(x["configuration"].size(), 1u) << "names of runs are no difference";
  EXPECT_EQ(x["configuration"][0]["key"], "policy.sampling.temperature");
  EXPECT_EQ(x["environment"][0]["b"], "g++ of checkpoint");
  EXPECT_GT(x["statistics"][0]["low"], 0) << "the checkpoint is better by construction";
  EXPECT_GT(x["wins"][0]["wins"], x["wins"][0]["losses"]);
  auto text = kernelmill({"compare", "runs/base", "runs/checkpoint", "--limit", "3"}).out;
  EXPECT_THAT(text, AllOf(HasSubstr("95 % INTERVAL"), HasSubstr("pass@4"), HasSubstr("SIGN TEST P"),
                          HasSubstr("3 of 37 tasks")));
}

TEST_F(compare_command, a_run_does_not_differ_from_itself) {
  auto x = compare("runs/base", "runs/base");
  for (const auto& row : x["statistics"]) {
    EXPECT_EQ(row["difference"], row["scale"] == "ratio" ? 1 : 0) << row;
    EXPECT_TRUE(row["low"].is_null()) << row;
    EXPECT_EQ(row["no_interval"], row["tasks"] < 6 ? "few_tasks" : "no_spread") << row;
  }
  EXPECT_EQ(x["wins"][0]["wins"].get<int>() + x["wins"][0]["losses"].get<int>(), 0);
  EXPECT_TRUE(x["configuration"].empty());
}

TEST_F(compare_command, turns_differ_in_groups) {
  auto x = compare("runs/turns/g0.e0.t1", "runs/turns/g0.e1.t1");
  EXPECT_EQ(x["kind"], "turns");
  auto code = group(x, "code");
  EXPECT_EQ(code["diff"], "--- turns/g0.e0.t1.code\n+++ turns/g0.e1.t1.code\n@@ -1,2 +1,2 @@\n"
                          " int a;\n-int b;\n+int c;\n");
  EXPECT_THAT(group(x, "compiler")["diff"].get<std::string>(), HasSubstr("+kernel.cpp:2: warning"));
  auto small = value(group(x, "cases"), "small");
  EXPECT_EQ(small["a"]["pass"], true);
  EXPECT_EQ(small["b"]["first_bad"], "y[3]: got 1, want 2");
  EXPECT_EQ(value(group(x, "findings"), "late_write")["b"], "3 of 4");
  auto speedup = value(group(x, "times"), "speedup");
  EXPECT_EQ(speedup["overlap"], false);
  EXPECT_EQ(speedup["faster"], "b");
  EXPECT_NEAR(value(group(x, "reward"), "reward")["difference"].get<double>(), 0.7, 1e-12);
  EXPECT_NEAR(value(group(x, "reward"), "reward")["a"].get<double>(), 0.3, 1e-12);
  EXPECT_EQ(value(group(x, "verdict"), "outcome")["b"], "rejected");
  EXPECT_TRUE(group(x, "configuration")["equal"]);
  auto text = kernelmill({"compare", "runs/turns/g0.e0.t1", "runs/turns/g0.e1.t1"}).out;
  EXPECT_THAT(text, AllOf(HasSubstr("B is faster"), HasSubstr("+int c;"),
                          HasSubstr("equal: configuration"), Not(HasSubstr("\x1b"))));
}

TEST_F(compare_command, equal_turns_are_equal_in_every_group) {
  auto x = compare("runs/turns/g0.e0.t0", "runs/turns/g0.e1.t0");
  for (const auto& g : x["groups"]) EXPECT_TRUE(g["equal"]) << g;
  EXPECT_EQ(value(group(x, "times"), "speedup")["overlap"], true);
}

TEST_F(compare_command, episodes_and_groups_show_their_turns_and_members) {
  auto x = compare("runs/turns/g0.e0", "runs/turns/g0.e1");
  EXPECT_EQ(x["kind"], "episodes");
  ASSERT_EQ(x["turns"].size(), 2u);
  EXPECT_EQ(x["first_difference"], 1);
  EXPECT_EQ(x["best"]["a"], "turns/g0.e0.t0") << "the first of two with one reward";
  EXPECT_EQ(x["best"]["b"], "turns/g0.e1.t1");
  auto groups = compare("runs/turns/g0", "runs/turns/g0");
  EXPECT_EQ(groups["members"].size(), 2u);
  EXPECT_EQ(groups["best"]["a"], "turns/g0.e1.t1");
}

TEST_F(compare_command, candidates_are_named_by_their_first_digits) {
  auto x = compare("aaaaaa11", "runs/turns/g0.e1.t1", {"--root", "runs"});
  EXPECT_EQ(x["a"]["name"], "turns/g0.e0.t1");
  auto none = kernelmill({"compare", "cccccc", "aaaaaa"});
  EXPECT_EQ(none.code, 3) << none.err;
  EXPECT_THAT(none.err, HasSubstr("cccccc"));
}

TEST_F(compare_command, says_what_is_wrong_with_its_words) {
  struct {
    std::vector<std::string> words;
    int code;
    const char* said;
  } cases[] = {{{"runs/base", "runs/turns/g0"}, 2, "two runs, two groups"},
               {{"runs/turns/g0.e0.t0", "runs/turns/g0.e0.t1", "--held-out"}, 2, "--held-out"},
               {{"runs/base", "runs/base", "--p", "much"}, 2, "--p 0,1,2"},
               {{"runs/turns/g9", "runs/turns/g0"}, 3, "turns/g9"},
               {{"runs/turns/g0.e9.t0", "runs/turns/g0.e0.t0"}, 3, "turns/g0.e9.t0"},
               {{"runs/turns/g0.e0.t9", "runs/turns/g0.e0.t0"}, 3, "turns/g0.e0.t9"},
               {{"runs/absent", "runs/base"}, 3, "absent"}};
  for (auto& [words, code, said] : cases) {
    words.insert(words.begin(), "compare");
    auto x = kernelmill(words);
    EXPECT_EQ(x.code, code) << words[1] << x.err;
    EXPECT_THAT(x.err, HasSubstr(said));
  }
}

} // namespace compare_command_test

} // namespace kernelmill::test
