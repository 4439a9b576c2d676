#include "storage/run_directory.hpp"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "fixtures.hpp"
#include "messages/digest.hpp"
#include "storage/canonical.hpp"
#include "storage/export.hpp"
#include "storage/files.hpp"
#include "storage/run_journal.hpp"

namespace kernelmill {
namespace {

using namespace testing;
using nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

template <class T>
std::string category(const expected<T>& x) {
  return x ? "fine" : x.error().category;
}

std::vector<ordered_json> lines_of(const std::string& path) {
  std::vector<ordered_json> result;
  std::ifstream in{path};
  for (std::string line; std::getline(in, line);) result.push_back(ordered_json::parse(line));
  return result;
}

TEST(run_directory, is_laid_out_and_found_again) {
  temporary_folder folder;
  auto made = create_run({folder / "runs/first/", "", ""}, {{"tasks", "all"}}, {{"version", "1"}});
  ASSERT_TRUE(made) << render(made.error());
  EXPECT_EQ(made->name, "first");
  for (auto name : {"config.json", "manifest.json", "logs", "artifacts"})
    EXPECT_TRUE(fs::exists(folder / "runs/first/" + name)) << name;
  auto opened = find_run("first", folder / "runs");
  ASSERT_TRUE(opened) << render(opened.error());
  EXPECT_EQ(opened->store, folder / "runs/first/lineage");
  EXPECT_EQ(category(find_run(folder / "runs/first", "elsewhere")), "fine");
  EXPECT_THAT(list_runs(folder / "runs"), ElementsAre("first"));
  auto manifest = read_json(opened->manifest_file());
  EXPECT_EQ((*manifest)["run"], "first");
  EXPECT_EQ((*manifest)["version"], "1");
  EXPECT_EQ((*read_json(opened->config_file()))["tasks"], "all");
}

TEST(run_directory, is_not_created_over_a_run) {
  temporary_folder folder;
  ASSERT_TRUE(create_run({folder / "first", "", ""}, {}, {}));
  auto again = create_run({folder / "first", "", ""}, {}, {});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().category, "run_exists");
  EXPECT_THAT(again.error().hint, HasSubstr("kernelmill resume"));
}

TEST(run_directory, is_not_created_among_other_files) {
  temporary_folder folder;
  std::ofstream{folder / "thesis.tex"} << "x";
  auto made = create_run({folder.path(), "mine", ""}, {}, {});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().category, "directory_not_empty");
  EXPECT_THAT(made.error().message, HasSubstr("thesis.tex"));
}

TEST(run_directory, takes_over_what_was_cut_off_before_it_began) {
  temporary_folder folder;
  ASSERT_TRUE(create_run({folder / "first", "", ""}, {}, {}));
  fs::remove(folder / "first/manifest.json");
  std::ofstream{folder / "first/manifest.json.77.0.tmp"} << "{";
  EXPECT_EQ(category(open_run(folder / "first")), "run_torn");
  EXPECT_EQ(category(create_run({folder / "first", "", ""}, {}, {})), "fine");
  EXPECT_FALSE(fs::exists(folder / "first/manifest.json.77.0.tmp"));
  EXPECT_EQ(category(open_run(folder / "first")), "fine");
}

TEST(run_directory, is_not_created_over_records_without_a_manifest) {
  temporary_folder folder;
  auto made = create_run({folder / "first", "", ""}, {}, {});
  ASSERT_TRUE(made);
  ASSERT_TRUE(store::open({.directory = made->store, .durable = false}));
  fs::remove(folder / "first/manifest.json");
  EXPECT_EQ(category(open_run(folder / "first")), "run_incomplete");
  EXPECT_EQ(category(create_run({folder / "first", "", ""}, {}, {})), "directory_not_empty");
}

TEST(run_directory, names_what_is_wrong_with_a_folder) {
  temporary_folder folder;
  EXPECT_EQ(category(open_run(folder / "none")), "not_found");
  EXPECT_EQ(category(open_run(folder.path())), "not_a_run");
  ASSERT_TRUE(create_run({folder / "runs/first", "", ""}, {}, {}));
  auto missing = find_run("fisrt", folder / "runs");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().category, "not_found");
  EXPECT_THAT(missing.error().hint, HasSubstr("first"));
  auto manifest = folder / "runs/first/manifest.json";
  std::ofstream{manifest} << "{\n  \"run\": oops}";
  auto broken = open_run(folder / "runs/first");
  EXPECT_EQ(category(broken), "invalid_json");
  EXPECT_THAT(broken.error().message, HasSubstr("line 2"));
  for (auto text : {"[]", "{}", "null", R"({"run": 1, "store": "lineage", "schema_version": 1})"}) {
    std::ofstream{manifest} << text;
    EXPECT_EQ(category(open_run(folder / "runs/first")), "not_a_run") << text;
  }
  std::ofstream{manifest} << R"({"run": "first", "store": "lineage", "schema_version": 99})";
  EXPECT_EQ(category(open_run(folder / "runs/first")), "store_newer");
}

TEST(run_directory, refuses_names_that_are_no_file_names) {
  temporary_folder folder;
  for (auto name : {"a b", ".hidden", "-rf", "a/b", "ü", ".."})
    EXPECT_EQ(category(create_run({folder / "x", name, ""}, {}, {})), "invalid_run_name") << name;
}

TEST(run_directory, keeps_artifacts_beside_a_shared_store) {
  temporary_folder folder;
  auto made = create_run({folder / "runs/first", "", folder / "shared/"}, {}, {});
  ASSERT_TRUE(made);
  auto opened = open_run(folder / "runs/first");
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->store, folder / "shared");
  EXPECT_EQ(opened->artifacts, folder / "shared/artifacts");
}

TEST(files, keep_the_old_content_when_a_write_is_given_up) {
  temporary_folder folder;
  ASSERT_TRUE(write_file(folder / "x", "old"));
  {
    auto file = atomic_file::create(folder / "x");
    ASSERT_TRUE(file->append(std::string(1 << 20, 'n')));
  }
  EXPECT_EQ(*read_file(folder / "x"), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator{folder.path()}, fs::directory_iterator{}), 1);
}

// -- a small run: two groups of two, one of them with an infrastructure turn -------------------

class recorded_run : public ::testing::Test {
protected:
  void SetUp() override {
    auto made = create_run({folder / "demo", "", ""}, {}, {});
    ASSERT_TRUE(made);
    run = *made;
    auto opened = store::open({.directory = run.store, .durable = false});
    ASSERT_TRUE(opened);
    lineage.emplace(std::move(*opened));
    artifacts.emplace(run.artifacts);
  }

  std::vector<Message<wire::Record>> records(double speed = 1.25, double at = 1000) const {
    turn_options good{.speedup = speed, .started = at};
    good.reward = 0.3 + speed;
    good.feedback = "correct\nspeedup " + std::to_string(speed) + "x\nmax error 1e-6 at y[3]";
    turn_options bad = good;
    bad.reward = 0;
    bad.correct = false;
    bad.outcome = wire::Outcome::REJECTED;
    bad.text = "<think>hm</think><KERNEL>bad</KERNEL>";
    turn_options next = good;
    next.prompt = good.feedback;
    turn_options lost = bad;
    lost.outcome = wire::Outcome::INFRASTRUCTURE;
    auto bad_end = bad;
    return {make_run("demo", "finished"),
            make_turn(0, 0, 0, bad),
            make_turn(0, 0, 1, next),
            make_episode(0, 0, {0, 1.5}, good),
            make_turn(0, 1, 0, bad),
            make_episode(0, 1, {0}, bad_end, wire::EpisodeKind::USABLE_NEGATIVE_DEBUG),
            make_group(0, {0.5, -0.5}, good),
            make_turn(1, 0, 0, good),
            make_episode(1, 0, {1.5}, good),
            make_turn(1, 1, 0, lost),
            make_episode(1, 1, {0}, lost, wire::EpisodeKind::UNUSABLE),
            make_group(1, {0, std::nan("")}, good),
            make_turn(2, 0, 0, good)};
  }

  void record_all() { ASSERT_TRUE(lineage->commit(records())); }

  temporary_folder folder;
  run_directory run;
  std::optional<store> lineage;
  std::optional<artifact_store> artifacts;
};

TEST_F(recorded_run, is_projected_alike_line_by_line_and_at_once) {
  {
    auto journal = run_journal::open(run);
    ASSERT_TRUE(journal);
    for (const auto& record : records()) {
      ASSERT_TRUE(lineage->commit({record}));
      auto ok = journal->follow(*lineage, *artifacts, *record.open());
      ASSERT_TRUE(ok) << render(ok.error());
    }
  }
  auto traces = *read_file(run.traces_file()), metrics = *read_file(run.metrics_file());
  // A torn line and a doubled one, as kill -9 may leave them.
  std::ofstream{run.traces_file(), std::ios::app} << traces.substr(0, 40);
  std::ofstream{run.metrics_file(), std::ios::app} << metrics;
  auto ok = rebuild_projections(*lineage, *artifacts, run);
  ASSERT_TRUE(ok) << render(ok.error());
  EXPECT_EQ(*read_file(run.traces_file()), traces);
  EXPECT_EQ(*read_file(run.metrics_file()), metrics);
}

TEST_F(recorded_run, traces_have_the_fields_that_people_know) {
  record_all();
  ASSERT_TRUE(rebuild_projections(*lineage, *artifacts, run));
  auto traces = lines_of(run.traces_file());
  ASSERT_EQ(traces.size(), 4u); // the episode of group 2 has not ended
  const auto& first = traces[0];
  EXPECT_EQ(first["episode"], "g0.e0");
  EXPECT_EQ(first["task"], "native/row_sum");
  EXPECT_EQ(first["outcome"], "accepted");
  ASSERT_EQ(first["turns"].size(), 2u);
  const auto& turn = first["turns"][0];
  EXPECT_EQ(turn["prompt_messages"][0]["content"], "make it fast");
  EXPECT_EQ(turn["response"]["thought"], "hm");
  EXPECT_EQ(turn["response"]["kernel"], "int x;");
  EXPECT_EQ(turn["eval_result"]["correct"], false);
  EXPECT_EQ(turn["reward"], 0);
  EXPECT_EQ(first["readiness"]["kind"], "usable_positive_sft");
  EXPECT_EQ(traces[3]["turns"][0]["reward"], nullptr); // the infrastructure's fault is no reward
  auto metrics = lines_of(run.metrics_file());
  ASSERT_EQ(metrics.size(), 2u);
  EXPECT_EQ(metrics[0]["step"], 0);
  EXPECT_EQ(metrics[0]["kernel/compile_rate"], 1.0);
  EXPECT_NEAR(metrics[0]["kernel/correct_rate"].get<double>(), 1.0 / 3, 1e-12);
  EXPECT_EQ(metrics[1]["infrastructure_turns"], 1);
  EXPECT_EQ(metrics[1]["turns"], 1);
}

// Three siblings: timed, not timed by the machine, and not timed of its own doing.
TEST_F(recorded_run, a_turn_that_the_machine_could_not_time_has_no_reward_anywhere) {
  turn_options good, machine{.not_timed = wire::NotTimed::MACHINE},
      own{.not_timed = wire::NotTimed::CANDIDATE};
  ASSERT_TRUE(lineage->commit(
      {make_turn(0, 0, 0, good), make_episode(0, 0, {0.3}, good), make_turn(0, 1, 0, machine),
       make_episode(0, 1, {std::nan("")}, machine), make_turn(0, 2, 0, own),
       make_episode(0, 2, {0.3}, own), make_group(0, {0, std::nan(""), 0}, good)}));
  ASSERT_TRUE(rebuild_projections(*lineage, *artifacts, run));
  auto traces = lines_of(run.traces_file());
  ASSERT_EQ(traces.size(), 3u);
  auto turn = [&](size_t i) { return traces[i]["turns"][0]; };
  EXPECT_EQ(turn(1)["reward"], nullptr);
  EXPECT_EQ(traces[1]["rewards"][0], nullptr);
  EXPECT_EQ(turn(1)["eval_result"]["category"], "not_timed");
  EXPECT_EQ(turn(1)["eval_result"]["not_timed"]["by"], "machine");
  EXPECT_EQ(turn(1)["eval_result"]["not_timed"]["why"], "the machine is too busy");
  EXPECT_FALSE(turn(1)["eval_result"].contains("speedup"));
  EXPECT_EQ(turn(2)["reward"], 0.3);
  EXPECT_EQ(turn(2)["eval_result"]["not_timed"]["by"], "candidate");
  auto metrics = lines_of(run.metrics_file());
  EXPECT_EQ(metrics[0]["not_timed_turns"], 2);
  EXPECT_EQ(metrics[0]["turns"], 3);
  EXPECT_EQ(metrics[0]["reward/mean"], 0.3);
  auto report = export_dataset(*lineage, *artifacts, {export_kind::rl, {"demo"}, folder / "data"});
  ASSERT_TRUE(report) << render(report.error());
  auto rows = lines_of(report->file);
  EXPECT_EQ(rows[1]["advantage"], nullptr);
  EXPECT_EQ(rows[1]["turns"][0]["reward"], nullptr);
  EXPECT_EQ(rows[1]["turns"][0]["category"], "not_timed");
}

TEST_F(recorded_run, is_canonical_whatever_the_clock_said) {
  record_all();
  auto one = canonical_lineage(*lineage, *artifacts, "demo");
  ASSERT_TRUE(one) << render(one.error());
  auto other = store::open({.directory = folder / "other", .durable = false});
  auto slower = records(7.5, 2000);
  std::reverse(slower.begin(), slower.end());
  ASSERT_TRUE(other->commit(slower));
  EXPECT_EQ(*canonical_lineage(*other, *artifacts, "demo"), *one);
  EXPECT_EQ(std::count(one->begin(), one->end(), '\n'), 13);
  EXPECT_THAT(*one, HasSubstr("max error # at y[#]"));
  EXPECT_THAT(*one, Not(HasSubstr("speedup")));
  EXPECT_THAT(*one, HasSubstr("\"evaluation\""));
  for (auto* timed : {"\"spans\"", "\"conditions\"", "sm_clock", "correctness"})
    EXPECT_THAT(*one, Not(HasSubstr(timed)));
}

TEST_F(recorded_run, differs_when_anything_untimed_does) {
  record_all();
  auto one = *canonical_lineage(*lineage, *artifacts, "demo");
  auto other = store::open({.directory = folder / "other", .durable = false});
  auto changed = records();
  changed.pop_back();
  ASSERT_TRUE(other->commit(changed));
  EXPECT_NE(*canonical_lineage(*other, *artifacts, "demo"), one);
  ASSERT_TRUE(other->commit({make_turn(2, 0, 0, {.text = "another answer"})}));
  EXPECT_NE(*canonical_lineage(*other, *artifacts, "demo"), one);
}

TEST(without_timing, drops_lines_about_time_and_numbers_from_the_others) {
  EXPECT_EQ(without_timing("Speedup: 1.2\nwrong at y[12]: got -1.5e-07, want 2\n"),
            "wrong at y[#]: got #, want #\n");
  EXPECT_EQ(without_timing("took 12ms\ntook 1.5 s\n3x faster\nruntime_error\n"),
            "took # s\nruntime_error\n");
  EXPECT_EQ(without_timing("float32 x2 - 3"), "float32 x2 - #\n");
  EXPECT_EQ(without_timing(""), "");
}

TEST_F(recorded_run, exports_conversations_that_end_in_the_best_answer) {
  record_all();
  auto report = export_dataset(*lineage, *artifacts, {export_kind::sft, {}, folder / "data"});
  ASSERT_TRUE(report) << render(report.error());
  auto rows = lines_of(report->file);
  ASSERT_EQ(rows.size(), 2u);
  ASSERT_EQ(rows[0]["messages"].size(), 4u);
  EXPECT_EQ(rows[0]["messages"][1]["weight"], 0);
  EXPECT_EQ(rows[0]["messages"][3]["weight"], 1);
  EXPECT_EQ(rows[0]["origin"]["turn"], 1);
  EXPECT_EQ(report->left_out["usable_negative_debug"], 1u);
  EXPECT_EQ(report->left_out["unusable"], 1u);
  EXPECT_EQ(report->left_out["unfinished"], 1u);
  auto manifest = *read_json(report->manifest);
  EXPECT_EQ(manifest["rows"], 2);
  EXPECT_EQ(manifest["sha256"], sha256_hex(*read_file(report->file)));
  EXPECT_EQ(manifest["tasks"][0], "native/row_sum");
}

TEST_F(recorded_run, exports_trajectories_without_infrastructure_turns) {
  record_all();
  auto report = export_dataset(*lineage, *artifacts, {export_kind::rl, {"demo"}, folder / "data"});
  ASSERT_TRUE(report) << render(report.error());
  auto rows = lines_of(report->file);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0]["advantage"], 0.5);
  EXPECT_EQ(rows[0]["group_id"], "demo/g0");
  EXPECT_EQ(rows[0]["turns"].size(), 2u);
  EXPECT_EQ(rows[0]["turns"][1]["return"], 1.5);
  EXPECT_EQ(report->left_out["infrastructure_turns"], 1u);
  EXPECT_EQ(report->left_out["infrastructure_episodes"], 1u);
}

TEST_F(recorded_run, exports_pairs_of_groups_with_a_contrast) {
  record_all();
  auto report =
      export_dataset(*lineage, *artifacts, {export_kind::preference, {}, folder / "data"});
  ASSERT_TRUE(report) << render(report.error());
  auto rows = lines_of(report->file);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["prompt"][0]["content"], "make it fast");
  EXPECT_EQ(rows[0]["same_context"], false); // no first turn of the group was accepted
  EXPECT_GT(rows[0]["chosen_reward"].get<double>(), rows[0]["rejected_reward"].get<double>());
  EXPECT_EQ(report->left_out["groups_without_contrast"], 2u);
}

TEST_F(recorded_run, exports_nothing_of_a_run_that_is_not_there) {
  record_all();
  auto report = export_dataset(*lineage, *artifacts, {export_kind::rl, {"typo"}, folder / "data"});
  EXPECT_EQ(category(report), "not_found");
  EXPECT_FALSE(fs::exists(folder / "data/rl.jsonl"));
}

} // namespace
} // namespace kernelmill
