// A store made anew from traces.jsonl: what comes back, what does not, and kills at every step.

#include "messages/base/json_value.hpp"
#include "storage/restore/restore.hpp"

#include <csignal>
#include <fstream>
#include <functional>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "fixtures.hpp"
#include "storage/files.hpp"
#include "storage/journal/run_journal.hpp"
#include "storage/lineage/store.hpp"

namespace kernelmill {
namespace restore_test {

using namespace fixtures;
using nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr restore_options planned{.retrieves = true, .groups = 2, .group_size = 2};

constexpr double unpaid = std::numeric_limits<double>::quiet_NaN();

/// Calls and candidates, with texts that are too long for a record.
void add_tool_parts(wire::TurnRecord::Builder to) {
  auto made = make_tool_turn(0, 0, 1, "c1", "c0", "int x;");
  auto view = made.open();
  auto from = view->getTurn();
  to.setCalls(from.getCalls());
  to.setCandidates(from.getCandidates());
  to.setMarks(from.getMarks());
  to.setStrategies(from.getStrategies());
  to.setActive(from.getActive());
  to.getCalls()[1].getObservation().setInline(std::string(6000, 'o'));
  to.getMarks()[0].getSpeedup().setLow(1.5);
  auto call = to.getCalls()[1];
  call.initFacts().initBuild().setCompiled(true);
  auto evaluation = call.getFacts().initEvaluation();
  evaluation.setCorrect(true);
  evaluation.initTiming().setMeasured(true);
  evaluation.getTiming().initSpeedup().setLow(1.5);
  call.initVerdict().setCategory("success");
  call.getVerdict().setReward(0.5);
}

/// A turn of which the line says all that a line can say.
Message<wire::Record> full_turn(uint32_t group, uint32_t member, uint32_t number,
                                turn_options with = {}) {
  with.examples = number == 0 ? std::vector<std::string>{"card:coalescing"} : with.examples;
  auto plain = make_turn(group, member, number, with);
  capnp::MallocMessageBuilder builder;
  builder.setRoot(*plain.open());
  auto turn = builder.getRoot<wire::Record>().getTurn();
  turn.setTransition(number == 0 ? "synthesized" : "repeated");
  auto completion = turn.getCompletion();
  completion.setFinishReason("stop");
  completion.setPromptTokens(7);
  completion.setCompletionTokens(2);
  completion.setPromptTokenIds({1, 2, 3});
  completion.setTokenIds({4, 5});
  completion.setLogprobs({-0.25f, std::numeric_limits<float>::quiet_NaN()});
  completion.setRoute("tokens");
  completion.initAudit().setState(wire::TokenState::EXACT);
  auto versions = completion.initWeightVersions(1);
  versions[0].setVersion("step-1");
  versions[0].setEnd(2);
  turn.getFacts().setContract("native");
  turn.getFacts().setMaxTurns(3);
  auto evaluation = turn.getFacts().getEvaluation();
  evaluation.initCases(3)[0].setPass(true);
  evaluation.initLayers(1).set(0, "seccomp");
  auto finding = turn.getVerdict().initFindings(1)[0];
  finding.setRule("slow_start");
  finding.setSeverity(wire::Severity::WARNING);
  auto gate = turn.getVerdict().initGates(1)[0];
  gate.setName("format");
  gate.setStatus(wire::GateStatus::NOT_RUN);
  if (with.outcome == wire::Outcome::INFRASTRUCTURE)
    turn.getVerdict().initFault().setMessage("the GPU is gone");
  if (number == 1) add_tool_parts(turn);
  turn.setTerminal(with.terminal);
  if (with.terminal) turn.setStopReason("max_turns");
  return Message<wire::Record>{builder};
}

std::vector<ordered_json> lines_of(const std::string& path) {
  std::vector<ordered_json> result;
  std::ifstream in{path};
  for (std::string line; std::getline(in, line);) result.push_back(ordered_json::parse(line));
  return result;
}

std::vector<std::string> records_of(const run_directory& run) {
  std::vector<std::string> result;
  auto from = store::open({.directory = run.store, .read_only = true});
  if (!from) return {from.error().category};
  auto ok = from->scan_run("demo", [&](wire::Record::Reader x) {
    result.push_back(name_of(x));
    return true;
  });
  EXPECT_TRUE(ok);
  return result;
}

class restore : public ::testing::Test {
protected:
  void SetUp() override {
    auto made = create_run({folder_ / "demo", "demo", ""}, ordered_json::object(),
                           {{"config_digest", "cd"},
                            {"tasks", {{{"id", "native/row_sum"}}}},
                            {"fingerprints", {{{"opening", 0}, {"at", 5}}, {{"opening", 1}}}}});
    ASSERT_TRUE(made) << render(made.error());
    run_ = *made;
    auto lineage = store::open({.directory = run_.store, .durable = false});
    ASSERT_TRUE(lineage) << render(lineage.error());
    auto journal = run_journal::open(run_);
    auto commit = [&](const Message<wire::Record>& x) {
      ASSERT_TRUE(lineage->commit({x}));
      ASSERT_TRUE(journal->follow(*lineage, artifact_store{run_.artifacts}, *x.open()));
    };
    turn_options lost{.reward = unpaid, .outcome = wire::Outcome::INFRASTRUCTURE, .terminal = true};
    turn_options untimed{.reward = unpaid, .not_timed = wire::NotTimed::MACHINE};
    commit(make_run("demo", "running"));
    commit(full_turn(0, 0, 0, {.prompt = std::string(6000, 'p')}));
    commit(full_turn(0, 1, 0, untimed));
    commit(full_turn(0, 0, 1, {.reward = 0.7, .terminal = true}));
    commit(make_episode(0, 0, {0.3, 0.7}));
    commit(full_turn(0, 1, 1, lost));
    commit(make_episode(0, 1, {unpaid, unpaid}, lost, wire::EpisodeKind::UNUSABLE));
    commit(make_group(0, {1, 0}));
    commit(full_turn(1, 0, 0));
    rows_ = *read_file(run_.traces_file());
  }

  void lose_store() const {
    fs::remove_all(run_.store);
    fs::remove_all(run_.artifacts);
  }

  restored_run restored(bool retrieves = true) const {
    auto options = planned;
    options.retrieves = retrieves;
    auto x = restore_run(run_, options);
    EXPECT_TRUE(x) << render(x.error());
    EXPECT_TRUE(x && *x);
    return x && *x ? **x : restored_run{};
  }

  temporary_folder folder_;
  run_directory run_;
  std::string rows_;
};

const std::vector<std::string> all_that_ended = {"running", "running",  "g0.e0.t0", "g0.e0.t1",
                                                 "g0.e0",   "g0.e1.t0", "g0.e1.t1", "g0.e1"};

TEST_F(restore, gives_back_what_rows_say_and_marks_it) {
  auto before = lines_of(run_.traces_file());
  auto metrics = lines_of(run_.metrics_file());
  lose_store();
  auto x = restored();
  EXPECT_EQ(x.episodes, 2u);
  EXPECT_EQ(x.turns, 4u);
  EXPECT_EQ(x.again, 1u);
  EXPECT_THAT(x.broken, ElementsAre());
  EXPECT_EQ(records_of(run_), all_that_ended);
  EXPECT_EQ(*read_file(x.kept), rows_);
  auto manifest = *read_json(run_.manifest_file());
  ASSERT_EQ(manifest["restored"].size(), 1u);
  EXPECT_EQ(manifest["restored"][0]["from"], "traces.jsonl.before");
  EXPECT_EQ(manifest["restored"][0]["done_again"], 1);
  // The rows of the new records are the old ones and the mark.
  auto from = store::open({.directory = run_.store});
  ASSERT_TRUE(run_journal::open(run_)->catch_up(*from, artifact_store{run_.artifacts}, "demo"));
  size_t turns = 0;
  for (auto& line : lines_of(run_.traces_file())) {
    if (line["kind"] == "turn") {
      auto& findings = line["eval_result"]["findings"];
      EXPECT_EQ(findings.back()["rule"], "restored") << line;
      findings.erase(findings.size() - 1);
      ++turns;
    }
    EXPECT_THAT(before, ::testing::Contains(line));
  }
  EXPECT_EQ(turns, 4u);
  for (const auto& line : lines_of(run_.metrics_file()))
    EXPECT_THAT(metrics, ::testing::Contains(line));
}

TEST_F(restore, a_second_time_keeps_both_copies_and_marks_once) {
  lose_store();
  restored();
  {
    auto from = store::open({.directory = run_.store});
    ASSERT_TRUE(run_journal::open(run_)->catch_up(*from, artifact_store{run_.artifacts}, "demo"));
  }
  lose_store();
  EXPECT_EQ(restored().kept, run_.traces_file() + ".before2");
  EXPECT_EQ(*read_file(run_.traces_file() + ".before"), rows_);
  EXPECT_EQ((*read_json(run_.manifest_file()))["restored"].size(), 2u);
  auto from = store::open({.directory = run_.store});
  auto ok = from->scan_episode("demo", 0, 0, [](wire::Record::Reader x) {
    EXPECT_TRUE(!x.isTurn() || x.getTurn().getVerdict().getFindings().size() == 2);
    return true;
  });
  EXPECT_TRUE(ok);
}

TEST_F(restore, does_episodes_again_of_which_a_row_is_broken) {
  lose_store();
  auto turn_id = ordered_json::parse(rows_.substr(0, rows_.find('\n')))["turn_id"];
  auto wrong = rows_;
  wrong.replace(wrong.find(turn_id.get<std::string>()), 8, "00000000");
  ASSERT_TRUE(write_file(run_.traces_file(), "[1]\n" + wrong + "{\"kind\":"));
  auto x = restored();
  EXPECT_EQ(x.episodes, 1u);
  EXPECT_EQ(x.again, 2u);
  EXPECT_THAT(x.broken, ElementsAre(HasSubstr("traces.jsonl:1: the row is no JSON object"),
                                    HasSubstr("traces.jsonl:2: 'turn_id' is not that of its run"),
                                    HasSubstr("traces.jsonl:9: the row is cut off")));
  EXPECT_THAT(records_of(run_), ElementsAre("running", "running", "g0.e1.t0", "g0.e1.t1", "g0.e1"));
}

TEST_F(restore, counts_rows_once_that_stand_twice) {
  lose_store();
  ASSERT_TRUE(write_file(run_.traces_file(), rows_ + rows_));
  EXPECT_EQ(restored().turns, 4u);
  EXPECT_EQ(records_of(run_), all_that_ended);
}

// A licence may forbid an example that a prompt shows: who cannot tell does the turn again.
TEST_F(restore, takes_no_first_turn_that_hides_its_examples) {
  lose_store();
  auto rows = rows_;
  for (auto at = rows.find("\"examples\""); at != rows.npos; at = rows.find("\"examples\""))
    rows.replace(at, 10, "\"exemples\"");
  ASSERT_TRUE(write_file(run_.traces_file(), rows));
  auto x = restored();
  EXPECT_EQ(x.episodes, 0u);
  EXPECT_TRUE(fs::exists(run_.artifacts));
  EXPECT_THAT(x.broken[0], HasSubstr("traces.jsonl:1: "));
  EXPECT_THAT(x.broken[0], HasSubstr("examples"));
  lose_store();
  ASSERT_TRUE(write_file(run_.traces_file(), rows));
  EXPECT_EQ(restored(false).episodes, 2u);
  lose_store();
  ASSERT_TRUE(write_file(run_.traces_file(), rows));
  auto fork = *read_json(run_.manifest_file());
  fork["fork"] = {{"run", "origin"}};
  ASSERT_TRUE(write_json(run_.manifest_file(), fork));
  EXPECT_EQ(restored(false).episodes, 0u);
}

TEST_F(restore, begins_the_journals_that_one_before_it_had_no_time_for) {
  lose_store();
  restored();
  ASSERT_TRUE(write_file(run_.traces_file(), rows_));
  auto x = restore_run(run_, planned);
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_FALSE(*x);
  EXPECT_FALSE(fs::exists(run_.traces_file()));
}

TEST_F(restore, leaves_a_store_alone_that_has_the_run) {
  auto x = restore_run(run_, planned);
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_FALSE(*x);
  EXPECT_EQ(*read_file(run_.traces_file()), rows_);
  lose_store();
  fs::remove(run_.traces_file());
  auto none = restore_run(run_, planned);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().category, "run_incomplete");
}

TEST_F(restore, leaves_out_rows_of_another_run_and_what_cannot_be) {
  lose_store();
  std::vector<ordered_json> strange(7, lines_of(run_.traces_file())[0]); // g0.e0.t0
  auto place = [](ordered_json& x, const std::string& of, uint32_t group, uint32_t member) {
    episode_id id{"demo", of, group, member};
    x.update({{"task", of}, {"group", group}, {"member", member}});
    x.update({{"episode", short_name(id)}, {"turn_id", turn_id(id, 0)}});
  };
  place(strange[0], "native/softmax", 0, 0);
  place(strange[1], "native/row_sum", 2, 0);
  place(strange[2], "native/row_sum", 0, 2);
  strange[3]["turn"] = uint64_t{1} << 32;
  strange[4]["turn"] = 0.5;
  strange[5]["eval_result"]["cases_total"] = 1'000'000;
  strange[6]["eval_result"]["findings"][0]["rule"] = "\x1b[2J";
  std::string rows;
  for (const auto& x : strange) rows += x.dump() + "\n";
  ASSERT_TRUE(write_file(run_.traces_file(), rows + rows_));
  auto x = restored();
  EXPECT_EQ(records_of(run_), all_that_ended);
  EXPECT_EQ(x.again, 1u);
  EXPECT_THAT(x.broken, ElementsAre(HasSubstr("'task' is not that of its group"),
                                    HasSubstr("the run has no such episode"),
                                    HasSubstr("the run has no such episode"),
                                    HasSubstr("'turn' is no number that can be"),
                                    HasSubstr("'turn' is no number that can be"),
                                    HasSubstr("'cases_total' cannot be"),
                                    HasSubstr("a name has control characters")));
}

TEST_F(restore, does_an_episode_again_whose_reward_was_edited_in_one_row) {
  lose_store();
  auto rows = rows_;
  rows.replace(rows.find("\"reward\":0.3"), 12, "\"reward\":9.3");
  ASSERT_TRUE(write_file(run_.traces_file(), rows));
  auto x = restored();
  EXPECT_EQ(x.episodes, 1u);
  EXPECT_EQ(x.again, 2u);
  EXPECT_THAT(x.broken, ElementsAre(HasSubstr("are not those of its turns")));
}

TEST_F(restore, changes_nothing_where_a_journal_cannot_be_read) {
  lose_store();
  fs::remove(run_.metrics_file());
  fs::create_directory(run_.metrics_file());
  auto x = restore_run(run_, planned);
  ASSERT_FALSE(x);
  EXPECT_EQ(x.error().message, "failed to read " + run_.metrics_file() + ": Is a directory");
  EXPECT_EQ(*read_file(run_.traces_file()), rows_);
  EXPECT_THAT(records_of(run_), ElementsAre());
}

TEST_F(restore, takes_what_it_can_of_a_strange_folder_and_manifest) {
  lose_store();
  fs::create_directory(run_.traces_file() + ".before");
  auto manifest = *read_json(run_.manifest_file());
  manifest.update({{"fingerprints", {1}}, {"config_digest", 2}, {"restored", {3}}});
  ASSERT_TRUE(write_json(run_.manifest_file(), manifest));
  EXPECT_EQ(restored().kept, run_.traces_file() + ".before2");
  lose_store();
  ASSERT_TRUE(write_file(run_.traces_file(), rows_));
  manifest.erase("tasks");
  ASSERT_TRUE(write_json(run_.manifest_file(), manifest));
  auto x = restore_run(run_, planned);
  ASSERT_FALSE(x);
  EXPECT_EQ(x.error().category, "run_incomplete");
  EXPECT_EQ(*read_file(run_.traces_file()), rows_);
}

/// Runs `body` in a child that is killed at its `step`-th stop before or behind a system call.
/// False when it ended before.
bool killed_at(size_t step, const std::function<void()>& body) {
  auto pid = ::fork();
  if (pid == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(1);
    ::raise(SIGSTOP);
    body();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  for (size_t i = 0; i < step && WIFSTOPPED(status); ++i) {
    ::ptrace(PTRACE_SYSCALL, pid, nullptr, nullptr);
    ::waitpid(pid, &status, 0);
  }
  if (!WIFSTOPPED(status)) return false;
  ::kill(pid, SIGKILL);
  ::waitpid(pid, &status, 0);
  return true;
}

TEST_F(restore, killed_at_any_system_call_loses_nothing_and_can_be_given_again) {
  lose_store();
  const auto lost = folder_ / "lost";
  fs::copy(run_.path, lost, fs::copy_options::recursive);
  size_t kills = 0;
  for (size_t step = 1;; step += 11, ++kills) {
    SCOPED_TRACE("step " + std::to_string(step));
    fs::remove_all(run_.path);
    fs::copy(lost, run_.path, fs::copy_options::recursive);
    if (!killed_at(step, [&] { std::ignore = restore_run(run_, planned); })) break;
    auto kept = read_file(run_.traces_file() + ".before");
    auto there = read_file(run_.traces_file());
    ASSERT_TRUE((there && *there == rows_) || (kept && *kept == rows_));
    auto again = restore_run(run_, planned);
    ASSERT_TRUE(again) << render(again.error());
    ASSERT_EQ(records_of(run_), all_that_ended);
    ASSERT_FALSE(fs::exists(run_.traces_file() + ".before2"));
  }
  EXPECT_GT(kills, 10u);
}

} // namespace restore_test
} // namespace kernelmill
