#include "messages/base/json_value.hpp"
#include "storage/journal/event_file.hpp"

#include <cmath>

#include <gmock/gmock.h>

#include "messages/base/digest.hpp"
#include "storage/journal/event_tags.hpp"

namespace kernelmill {
namespace event_file_test {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Pair;

std::string hex(const std::string& bytes) {
  return to_hex(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

// RFC 3720, appendix B.4, and the check value of the catalogues.
TEST(crc32c, has_the_values_of_the_standard) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string rising;
  for (char c = 0; c < 32; ++c) rising.push_back(c);
  EXPECT_EQ(crc32c(rising), 0x46dd794eu);
  EXPECT_EQ(crc32c({}), 0u);
  EXPECT_EQ(masked_crc32c({}), 0xa282ead8u);
}

// The first bytes of every file that TensorFlow's own writer makes: a record of 24 bytes.
TEST(event_record, begins_as_files_of_other_writers_do) {
  auto file = event_record(first_event(1.5));
  EXPECT_EQ(file.size(), 12u + 24 + 4);
  EXPECT_EQ(hex(file.substr(0, 12)), "1800000000000000a37f4b22");
  EXPECT_EQ(hex(file.substr(12, 9)), "09000000000000f83f");
  EXPECT_EQ(hex(file.substr(21, 2)), "1a0d"); // field 3, 13 bytes
  EXPECT_EQ(file.substr(23, 13), "brain.Event:2");
}

TEST(encode_event, writes_the_fields_of_the_message) {
  event_values x{0, 300, {{"a", 1}}, {}};
  EXPECT_EQ(hex(encode_event(x)),
            "090000000000000000" // wall time
            "10ac02"             // step
            "2a0a"               // summary of 10 bytes
            "0a08"               // one value of 8 bytes
            "0a0161"             // tag
            "150000803f");       // simple_value
}

TEST(encode_event, leaves_out_what_is_no_number) {
  event_values x{0, 0, {{"a", std::nan("")}, {"b", 2}}, {{"h", {}}, {"i", {std::nan(""), 3}}}};
  auto read = read_events(event_record(encode_event(x)));
  ASSERT_EQ(read.events.size(), 1u);
  EXPECT_THAT(read.events[0].scalars, ElementsAre(Pair("b", 2.0)));
  EXPECT_THAT(read.events[0].histograms, ElementsAre("i"));
}

TEST(read_events, ends_before_the_first_record_that_is_torn_or_damaged) {
  auto one = event_record(first_event(1)), two = event_record(encode_event({2, 7, {{"a", 1}}, {}}));
  auto file = one + two;
  auto whole = read_events(file);
  EXPECT_EQ(whole.bytes, file.size());
  ASSERT_EQ(whole.events.size(), 2u);
  EXPECT_EQ(whole.events[1].step, 7);
  EXPECT_THAT(whole.ends, ElementsAre(one.size(), file.size()));
  for (size_t kept = 0; kept < file.size(); ++kept) {
    auto read = read_events(file.substr(0, kept));
    EXPECT_EQ(read.bytes, kept < one.size() ? 0 : one.size()) << kept;
  }
  for (size_t at = 0; at < file.size(); ++at) {
    auto damaged = file;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    EXPECT_EQ(read_events(damaged).bytes, at < one.size() ? 0 : one.size()) << at;
  }
  auto nonsense = event_record(std::string(40, '\xff'));
  EXPECT_EQ(read_events(one + nonsense).bytes, one.size());
}

TEST(group_event, has_the_tags_that_users_of_kernel_rl_know) {
  auto line = nlohmann::ordered_json::parse(R"({"timestamp": 5.5, "step": 3, "task":
      "kernelbench/level2/7_Conv", "episodes": 8, "reward/mean": 0.5, "reward/std": 0.25,
      "kernel/compile_rate": 0.75, "kernel/correct_rate": 0.125, "return/mean": null,
      "reward_components/speed": 0.4, "multiturn/turn_1/compile_rate": 1.0})");
  auto x = group_event(line, {{"reward", {0, 1}}, {"speedup", {}}}, 9, 20);
  EXPECT_EQ(x.step, 9);
  EXPECT_EQ(x.wall_time, 5.5);
  for (auto [tag, value] : {std::pair{group_tag, 3.0},
                            {"Batch/NumTrajectories", 8.0},
                            {"Batch/NumGroups", 1.0},
                            {"Reward/Mean", 0.5},
                            {"Reward/StdDev", 0.25},
                            {"Kernel/CompileRate", 0.75},
                            {"multiturn/compile_rate", 0.75},
                            {"multiturn/turn_1/compile_rate", 1.0},
                            {"RewardComponents/speed", 0.4},
                            {"PerLevel/Level2/RewardMean", 0.5},
                            {"PerLevel/Level2/CorrectRate", 0.125},
                            {"PerLevel/Level2/CompileRate", 0.75},
                            {"Progress/CompletionFraction", 0.5}})
    EXPECT_THAT(x.scalars, Contains(Pair(tag, value)));
  for (const auto& [tag, value] : x.scalars) EXPECT_NE(tag, "Return/Mean");
  EXPECT_THAT(x.histograms, Contains(Pair("Distributions/Rewards", ElementsAre(0, 1))));
}

TEST(group_event, has_no_level_of_a_task_that_has_none) {
  for (const auto* task : {"native/row_sum", "a/level", "a/level7", "a/levels/2", "a/levelx/2"}) {
    auto line = nlohmann::ordered_json{{"task", task}, {"reward/mean", 1.0}};
    for (const auto& [tag, value] : group_event(line, {}, 0, 0).scalars)
      EXPECT_FALSE(tag.starts_with("PerLevel") || tag.starts_with("Progress")) << task << tag;
  }
}

} // namespace event_file_test
} // namespace kernelmill
