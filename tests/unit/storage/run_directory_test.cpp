#include "messages/base/json_value.hpp"
#include "storage/run_directory.hpp"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixtures.hpp"
#include "messages/base/digest.hpp"
#include "storage/files.hpp"
#include "storage/journal/event_file.hpp"
#include "storage/journal/event_tags.hpp"
#include "storage/journal/run_journal.hpp"
#include "storage/search_end.hpp"
#include "tests/oracles/canonical.hpp"

namespace kernelmill {
namespace run_directory_test {

using namespace fixtures;
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

TEST(search_end, is_of_the_turns_that_are_stored_now) {
  temporary_folder folder;
  run_directory run{folder.path(), "first", folder.path() + "/lineage", folder.path()};
  EXPECT_FALSE(read_search_end(run, 4)) << "the search was killed before it wrote one";
  ordered_json end = {{"used", {{"turns", 4}}}, {"winner", {{"turn", "g1.e0.t0"}}}};
  ASSERT_TRUE(write_search_end(run, end));
  ASSERT_TRUE(read_search_end(run, 4));
  EXPECT_EQ((*read_search_end(run, 4))["winner"]["turn"], "g1.e0.t0");
  EXPECT_FALSE(read_search_end(run, 8)) << "it was resumed since";
  EXPECT_TRUE(is_end_of_search({{"used", {{"turns", 4}}}, {"winner", nullptr}}, 4));
  for (const auto& other : {ordered_json{{"used", 4}}, ordered_json::array(), ordered_json{}})
    EXPECT_FALSE(is_end_of_search(other, 4)) << other;
}

TEST(search_end, is_written_by_runs_that_ask_for_a_search) {
  EXPECT_TRUE(asks_for_search({{"search", {{"strategy", "tree"}}}}));
  EXPECT_FALSE(asks_for_search({{"search", {{"strategy", "off"}}}}));
  EXPECT_FALSE(asks_for_search({{"search", 1}}));
  EXPECT_FALSE(asks_for_search(ordered_json::object()));
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

// Every record's name, in the order of the lines.
std::vector<std::string> names_in(const std::string& path) {
  std::vector<std::string> result;
  for (const auto& x : lines_of(path)) {
    auto kind = x["kind"].get<std::string>();
    result.push_back(kind == "group"  ? "g" + std::to_string(x["step"].get<int>())
                     : kind == "turn" ? x["episode"].get<std::string>() + ".t" +
                                            std::to_string(x["turn"].get<int>())
                                      : x["episode"].get<std::string>());
  }
  return result;
}

const std::vector<std::string> all_traces{"g0.e0.t0", "g0.e0.t1", "g0.e0", "g0.e1.t0",
                                          "g0.e1",    "g1.e0.t0", "g1.e0", "g1.e1.t0",
                                          "g1.e1",    "g2.e0.t0"};
const std::vector<std::string> all_metrics{"g0.e0.t0", "g0.e0.t1", "g0.e1.t0", "g0",
                                           "g1.e0.t0", "g1.e1.t0", "g1",       "g2.e0.t0"};

TEST_F(recorded_run, has_a_line_for_each_turn_as_soon_as_it_is_committed) {
  auto journal = run_journal::open(run);
  ASSERT_TRUE(journal);
  std::vector<std::string> traced;
  for (const auto& record : records()) {
    ASSERT_TRUE(lineage->commit({record}));
    auto ok = journal->follow(*lineage, *artifacts, *record.open());
    ASSERT_TRUE(ok) << render(ok.error());
    if (auto name = fixtures::name_of(*record.open()); name.find(".e") != name.npos)
      traced.push_back(name);
    EXPECT_EQ(names_in(run.traces_file()), traced);
  }
  EXPECT_EQ(names_in(run.traces_file()), all_traces);
  EXPECT_EQ(names_in(run.metrics_file()), all_metrics);
  for (const auto& path : {run.traces_file(), run.metrics_file()})
    for (const auto& line : lines_of(path)) EXPECT_EQ(line["timestamp"], 1001) << line;
}

// As kill -9 leaves them: a line that is torn, and records whose lines were not written yet.
TEST_F(recorded_run, catches_up_with_what_was_committed_and_leaves_the_lines_that_are_there) {
  record_all();
  ASSERT_TRUE(run_journal::open(run)->catch_up(*lineage, *artifacts, run.name));
  auto traces = *read_file(run.traces_file()), metrics = *read_file(run.metrics_file());
  EXPECT_EQ(names_in(run.traces_file()), all_traces);
  auto size = [](const std::string& path) { return static_cast<size_t>(fs::file_size(path)); };
  for (auto kept : {size_t{0}, size_t{40}, traces.find('\n') + 1, traces.size() - 1}) {
    fs::resize_file(run.traces_file(), kept);
    fs::resize_file(run.metrics_file(), std::min(kept, metrics.size()));
    auto journal = run_journal::open(run);
    auto ok = journal->catch_up(*lineage, *artifacts, run.name);
    ASSERT_TRUE(ok) << render(ok.error());
    EXPECT_EQ(*read_file(run.traces_file()), traces) << kept;
    EXPECT_EQ(*read_file(run.metrics_file()), metrics) << kept;
  }
  // The order is that of the commits; it stays, and so does the offset of a reader.
  auto second = traces.find('\n') + 1;
  auto first = traces.substr(0, second);
  auto turned = traces.substr(second, traces.find('\n', second) + 1 - second) + first;
  ASSERT_TRUE(write_file(run.traces_file(), turned));
  ASSERT_TRUE(run_journal::open(run)->catch_up(*lineage, *artifacts, run.name));
  EXPECT_TRUE(read_file(run.traces_file())->starts_with(turned));
  EXPECT_EQ(size(run.traces_file()), traces.size());
  EXPECT_THAT(names_in(run.traces_file()), ::testing::UnorderedElementsAreArray(all_traces));
}

TEST_F(recorded_run, writes_lines_anew_that_are_doubled_of_another_version_or_of_no_record) {
  record_all();
  ASSERT_TRUE(run_journal::open(run)->catch_up(*lineage, *artifacts, run.name));
  auto traces = *read_file(run.traces_file()), metrics = *read_file(run.metrics_file());
  auto first = traces.substr(0, traces.find('\n') + 1);
  ordered_json stranger = lines_of(run.traces_file())[0];
  stranger["turn_id"] = "0123";
  for (const auto& text :
       {first + traces, std::string{"{\"schema_version\":1,\"turns\":[]}\n"} + traces,
        json_line(stranger) + "\n" + traces, traces + json_line(stranger) + "\n"}) {
    ASSERT_TRUE(write_file(run.traces_file(), text));
    ASSERT_TRUE(run_journal::open(run)->catch_up(*lineage, *artifacts, run.name));
    EXPECT_EQ(*read_file(run.traces_file()), traces);
    EXPECT_EQ(*read_file(run.metrics_file()), metrics);
  }
}

// -- TensorBoard's file ---------------------------------------------------------------------------

std::string event_file_of(const run_directory& run) {
  for (const auto& x : fs::directory_iterator{run.tensorboard()})
    if (x.path().string().ends_with(".kernelmill")) return x.path().string();
  return {};
}

// Group numbers in the order of the steps 0, 1, ...
std::vector<int> groups_in_events(const std::string& path) {
  auto read = read_events(*read_file(path));
  EXPECT_EQ(read.bytes, fs::file_size(path));
  std::vector<int> result;
  for (size_t i = 1; i < read.events.size(); ++i) {
    EXPECT_EQ(read.events[i].step, static_cast<int64_t>(i) - 1);
    for (const auto& [tag, value] : read.events[i].scalars)
      if (tag == group_tag) result.push_back(static_cast<int>(value));
  }
  return result;
}

constexpr journal_options with_events{.events = true, .groups = 4};

TEST_F(recorded_run, has_an_event_for_each_group_as_soon_as_it_ends) {
  auto journal = run_journal::open(run, with_events);
  ASSERT_TRUE(journal) << render(journal.error());
  auto path = event_file_of(run);
  EXPECT_EQ(groups_in_events(path), std::vector<int>{});
  for (const auto& record : records()) {
    ASSERT_TRUE(lineage->commit({record}));
    ASSERT_TRUE(journal->follow(*lineage, *artifacts, *record.open()));
  }
  EXPECT_EQ(groups_in_events(path), (std::vector<int>{0, 1}));
  auto metrics = lines_of(run.metrics_file())[3];
  for (const auto& [tag, value] : read_events(*read_file(path)).events[1].scalars) {
    if (tag == "Reward/Mean") {
      EXPECT_FLOAT_EQ(value, metrics["reward/mean"].get<double>());
    } else if (tag == "Progress/CompletionFraction") {
      EXPECT_FLOAT_EQ(value, 0.25);
    }
  }
}

TEST_F(recorded_run, no_event_is_there_twice_or_torn_after_it_was_opened_again) {
  record_all();
  ASSERT_TRUE(run_journal::open(run, with_events)->catch_up(*lineage, *artifacts, run.name));
  auto path = event_file_of(run);
  auto events = *read_file(path);
  EXPECT_EQ(groups_in_events(path), (std::vector<int>{0, 1}));
  auto ends = read_events(events).ends;
  for (auto kept : {size_t{0}, size_t{7}, ends[0], ends[0] + 1, ends[1], ends[2] - 1, ends[2]}) {
    fs::resize_file(path, kept);
    auto ok = run_journal::open(run, with_events)->catch_up(*lineage, *artifacts, run.name);
    ASSERT_TRUE(ok) << render(ok.error());
    EXPECT_EQ(groups_in_events(path), (std::vector<int>{0, 1})) << kept;
    EXPECT_EQ(read_file(path)->substr(ends[0]), events.substr(ends[0])) << kept;
  }
  // Twice the same group; a group that the store does not have; bytes behind the end.
  event_values stranger{1, 2, {{group_tag, 77}}, {}};
  for (const auto& more : {events.substr(ends[0], ends[1] - ends[0]),
                           event_record(encode_event(stranger)), std::string(100, '\0')}) {
    ASSERT_TRUE(write_file(path, events + more));
    ASSERT_TRUE(run_journal::open(run, with_events)->catch_up(*lineage, *artifacts, run.name));
    EXPECT_EQ(groups_in_events(path), (std::vector<int>{0, 1}));
    EXPECT_EQ(read_file(path)->substr(ends[0]), events.substr(ends[0]));
  }
}

TEST_F(recorded_run, leaves_the_event_files_of_others_alone) {
  record_all();
  fs::create_directories(run.tensorboard());
  auto other = run.tensorboard() + "/events.out.tfevents.99.trainer";
  ASSERT_TRUE(write_file(other, "of a trainer"));
  ASSERT_TRUE(run_journal::open(run, with_events)->catch_up(*lineage, *artifacts, run.name));
  EXPECT_EQ(*read_file(other), "of a trainer");
  EXPECT_EQ(groups_in_events(event_file_of(run)), (std::vector<int>{0, 1}));
}

TEST_F(recorded_run, has_no_event_file_without_a_reader) {
  record_all();
  ASSERT_TRUE(run_journal::open(run)->catch_up(*lineage, *artifacts, run.name));
  EXPECT_FALSE(fs::exists(run.tensorboard()));
}

TEST_F(recorded_run, lines_have_the_fields_that_people_know) {
  record_all();
  ASSERT_TRUE(run_journal::open(run)->catch_up(*lineage, *artifacts, run.name));
  auto traces = lines_of(run.traces_file());
  ASSERT_EQ(traces.size(), all_traces.size());
  const auto& turn = traces[0];
  EXPECT_EQ(turn["episode"], "g0.e0");
  EXPECT_EQ(turn["task"], "native/row_sum");
  EXPECT_EQ(turn["prompt_messages"][0]["content"], "make it fast");
  EXPECT_EQ(turn["response"]["thought"], "hm");
  EXPECT_EQ(turn["response"]["kernel"], "int x;");
  EXPECT_EQ(turn["eval_result"]["correct"], false);
  EXPECT_EQ(turn["reward"], 0);
  EXPECT_EQ(traces[2]["outcome"], "accepted");
  EXPECT_EQ(traces[2]["rewards"], ordered_json::parse("[0, 1.5]"));
  EXPECT_EQ(traces[2]["readiness"]["kind"], "usable_positive_sft");
  EXPECT_EQ(traces[7]["reward"], nullptr); // the infrastructure's fault is no reward
  auto metrics = lines_of(run.metrics_file());
  ASSERT_EQ(metrics.size(), all_metrics.size());
  EXPECT_EQ(metrics[1]["kernel/correct"], true);
  EXPECT_EQ(metrics[1]["kernel/speedup"], 1.25);
  for (const auto& line : metrics)
    EXPECT_TRUE(line.contains("step") && line.contains("timestamp")) << line;
  EXPECT_EQ(metrics[4]["step"], 1);
  EXPECT_EQ(metrics[3]["step"], 0);
  EXPECT_TRUE(metrics[3].contains("reward_components/speed")) << metrics[3];
  EXPECT_EQ(metrics[3]["kernel/compile_rate"], 1.0);
  EXPECT_NEAR(metrics[3]["kernel/correct_rate"].get<double>(), 1.0 / 3, 1e-12);
  EXPECT_EQ(metrics[6]["infrastructure_turns"], 1);
  EXPECT_EQ(metrics[6]["turns"], 1);
}

TEST_F(recorded_run, a_turn_that_asked_for_no_verdict_is_in_no_rate) {
  turn_options good;
  ASSERT_TRUE(
      lineage->commit({make_tool_turn(0, 0, 0, "c1", "c0", "int y;"), make_turn(0, 0, 1, good),
                       make_episode(0, 0, {0, 0.3}, good), make_group(0, {0}, good)}));
  auto group = read_group(*lineage, "demo", 0);
  ASSERT_TRUE(group);
  auto x = group_metrics(*group);
  EXPECT_EQ(x["turns"], 2);
  EXPECT_EQ(x["open_turns"], 1);
  EXPECT_EQ(x["kernel/correct_rate"], 1.0);
  EXPECT_EQ(x["reward/mean"], 0.3);
  auto line = turn_trace(group->episodes[0].turns[0].open()->getTurn(), *artifacts);
  ASSERT_TRUE(line);
  EXPECT_EQ((*line)["calls"][1]["tool"], "patch_candidate");
  EXPECT_EQ((*line)["calls"][1]["observation"], "c1 is active\nnext: build");
  EXPECT_EQ((*line)["candidates"][0]["source"], "int y;");
  EXPECT_EQ((*line)["marks"][0]["status"], "build_passed");
  EXPECT_EQ((*line)["strategies"][0]["state"], "exploring");
  EXPECT_EQ((*line)["active"], "c1");
}

// Three siblings: timed, not timed by the machine, and not timed of its own doing.
TEST_F(recorded_run, a_turn_that_the_machine_could_not_time_has_no_reward_anywhere) {
  turn_options good, machine{.not_timed = wire::NotTimed::MACHINE},
      own{.not_timed = wire::NotTimed::CANDIDATE};
  ASSERT_TRUE(lineage->commit(
      {make_turn(0, 0, 0, good), make_episode(0, 0, {0.3}, good), make_turn(0, 1, 0, machine),
       make_episode(0, 1, {std::nan("")}, machine), make_turn(0, 2, 0, own),
       make_episode(0, 2, {0.3}, own), make_group(0, {0, std::nan(""), 0}, good)}));
  ASSERT_TRUE(run_journal::open(run)->catch_up(*lineage, *artifacts, run.name));
  auto traces = lines_of(run.traces_file());
  ASSERT_EQ(traces.size(), 6u);
  auto turn = [&](size_t i) { return traces[2 * i]; };
  EXPECT_EQ(turn(1)["reward"], nullptr);
  EXPECT_EQ(traces[3]["rewards"][0], nullptr);
  EXPECT_EQ(turn(1)["eval_result"]["category"], "not_timed");
  EXPECT_EQ(turn(1)["eval_result"]["not_timed"]["by"], "machine");
  EXPECT_EQ(turn(1)["eval_result"]["not_timed"]["why"], "the machine is too busy");
  EXPECT_FALSE(turn(1)["eval_result"].contains("speedup"));
  EXPECT_EQ(turn(2)["reward"], 0.3);
  EXPECT_EQ(turn(2)["eval_result"]["not_timed"]["by"], "candidate");
  auto metrics = lines_of(run.metrics_file());
  ASSERT_EQ(metrics.size(), 4u);
  EXPECT_EQ(metrics[3]["not_timed_turns"], 2);
  EXPECT_EQ(metrics[3]["turns"], 3);
  EXPECT_EQ(metrics[3]["reward/mean"], 0.3);
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

} // namespace run_directory_test
} // namespace kernelmill
