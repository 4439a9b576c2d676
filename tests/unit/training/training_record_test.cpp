#include "launch/training/training_record.hpp"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "storage/event_file.hpp"
#include "storage/files.hpp"

namespace kernelmill::training {
namespace {

namespace fs = std::filesystem;
using line = training_record::line;

line step_line(uint64_t step) {
  return {{"step", step},       {"version", "v"},      {"weights", "/w"}, {"groups", {"r/g" + std::to_string(step)}},
          {"reward/mean", 0.5}, {"Timing/Train", 2.0}, {"timestamp", 3}};
}

line evaluation_line(uint64_t after) {
  return {{"after", after}, {"version", "v"}, {"reward", {0.5, 0.4, 0.6}}, {"pass@1", {1, 1, 1}}, {"fast_1.5", {0, 0, 0}}};
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
  for (const auto& x : fs::directory_iterator{dir + "/tensorboard"}) // it was killed within an event
    fs::resize_file(x.path(), fs::file_size(x.path()) - 3);
  auto record = training_record::open(dir, 4);
  ASSERT_TRUE(record);
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

TEST(training_record, lines_that_are_none_are_named) {
  auto dir = fresh("training_record_damaged");
  std::ofstream{dir + "/checkpoints.jsonl"} << R"({"step":0,"version":"v","weights":"w"})" "\n{\"step\":";
  auto record = training_record::open(dir, 4);
  ASSERT_FALSE(record);
  EXPECT_EQ(record.error().category, "training_damaged");
  EXPECT_NE(record.error().message.find("checkpoints.jsonl:2"), std::string::npos);
}

} // namespace
} // namespace kernelmill::training
