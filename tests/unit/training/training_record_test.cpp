#include "launch/learning/training/training_record.hpp"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "storage/files.hpp"
#include "storage/journal/event_file.hpp"

namespace kernelmill::training {
namespace training_record_test {

namespace fs = std::filesystem;
using line = training_record::line;

line step_line(uint64_t step) {
  return {{"step", step},       {"version", "v"},
          {"weights", "/w"},    {"groups", {"r/g" + std::to_string(step)}},
          {"reward/mean", 0.5}, {"Timing/Train", 2.0},
          {"timestamp", 3}};
}

line evaluation_line(uint64_t after) {
  return {{"after", after},
          {"version", "v"},
          {"reward", {0.5, 0.4, 0.6}},
          {"pass@1", {1, 1, 1}},
          {"fast_1.5", {0, 0, 0}}};
}

std::string fresh(const std::string& name) {
  auto folder = fs::path{testing::TempDir()} / name;
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder.string();
}

event_prefix events_of(const std::string& dir) {
  for (const auto& x : fs::directory_iterator{dir + "/tensorboard"})
    return read_events(*read_file(x.path().string()));
  return {};
}

TEST(training_record, what_was_written_is_read_again_and_events_are_there_once) {
  auto dir = fresh("training_record");
  {
    auto record = training_record::open(dir, 4);
    ASSERT_TRUE(record);
    ASSERT_TRUE(record->add_evaluation(evaluation_line(0)));
    ASSERT_TRUE(record->add_step(step_line(0)));
    ASSERT_TRUE(record->add_step(step_line(1)));
  }
  for (const auto& x :
       fs::directory_iterator{dir + "/tensorboard"}) // it was killed within an event
    fs::resize_file(x.path(), fs::file_size(x.path()) - 3);
  auto record = training_record::open(dir, 4);
  ASSERT_TRUE(record);
  EXPECT_EQ(events_of(dir).events.size(), 3u) << "a reader writes nothing";
  ASSERT_TRUE(record->write_events());
  EXPECT_EQ(record->steps().size(), 2u);
  EXPECT_TRUE(record->is_evaluated(0));
  EXPECT_FALSE(record->is_evaluated(2));
  EXPECT_TRUE(record->has_learned("r/g1"));
  EXPECT_FALSE(record->has_learned("r/g2"));
  auto events = events_of(dir).events;
  ASSERT_EQ(events.size(), 4u); // the version, the evaluation, two steps
  auto has = [](const read_event& x, const std::string& tag, float value) {
    for (const auto& [name, number] : x.scalars)
      if (name == tag) return static_cast<float>(number) == value;
    return false;
  };
  EXPECT_TRUE(has(events[1], "eval/Pass@1", 1));
  EXPECT_TRUE(has(events[1], "eval/Fast1.5x", 0));
  EXPECT_TRUE(has(events[3], "Reward/Mean", 0.5f));
  EXPECT_TRUE(has(events[3], "Batch/NumGroups", 1));
  EXPECT_TRUE(has(events[3], "Progress/CompletionFraction", 0.5f));
  EXPECT_EQ(events[3].step, 1);
}

TEST(training_record, a_line_is_put_behind_the_others_which_are_not_written_again) {
  auto dir = fresh("training_record_append");
  auto path = dir + "/checkpoints.jsonl";
  auto record = training_record::open(dir, 4);
  ASSERT_TRUE(record->add_step(step_line(0)));
  struct stat before {
  }, after{};
  ASSERT_EQ(::stat(path.c_str(), &before), 0);
  ASSERT_TRUE(record->add_step(step_line(1)));
  ASSERT_EQ(::stat(path.c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
}

TEST(training_record, half_a_line_of_a_killed_process_does_not_count_and_is_replaced) {
  auto dir = fresh("training_record_half");
  auto path = dir + "/checkpoints.jsonl";
  ASSERT_TRUE(training_record::open(dir, 4)->add_step(step_line(0)));
  std::ofstream{path, std::ios::app} << R"({"step":1,"vers)";
  auto half = *read_file(path);
  auto record = training_record::open(dir, 4);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->steps().size(), 1u);
  EXPECT_EQ(*read_file(path), half) << "a reader changes nothing";
  ASSERT_TRUE(record->add_step(step_line(1)));
  EXPECT_EQ(*read_file(path), step_line(0).dump() + "\n" + step_line(1).dump() + "\n");
}

TEST(training_record, a_whole_line_without_its_newline_is_kept) {
  auto dir = fresh("training_record_edited");
  auto path = dir + "/checkpoints.jsonl";
  std::ofstream{path} << step_line(0).dump();
  auto record = training_record::open(dir, 4);
  ASSERT_TRUE(record);
  ASSERT_EQ(record->steps().size(), 1u);
  ASSERT_TRUE(record->add_step(step_line(1)));
  EXPECT_EQ(*read_file(path), step_line(0).dump() + "\n" + step_line(1).dump() + "\n");
}

TEST(training_record, lines_that_are_none_are_named) {
  auto dir = fresh("training_record_damaged");
  std::ofstream{dir + "/checkpoints.jsonl"} << R"({"step":0,"version":"v","weights":"w"})"
                                               "\n{\"step\":\n";
  auto record = training_record::open(dir, 4);
  ASSERT_FALSE(record);
  EXPECT_EQ(record.error().category, "training_damaged");
  EXPECT_NE(record.error().message.find("checkpoints.jsonl:2"), std::string::npos);
}

} // namespace training_record_test
} // namespace kernelmill::training
