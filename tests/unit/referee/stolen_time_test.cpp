#include <gtest/gtest.h>

#include "gpu/referee/stolen_time.hpp"

using namespace kernelmill;

namespace stolen_time_test {

TEST(stolen_time, is_a_condition_of_the_record) {
  evaluation_record record;
  record.timing.note = "the interval is narrow enough";
  note_stolen(0.4, record);
  ASSERT_EQ(record.conditions.size(), 1u);
  EXPECT_EQ(record.conditions[0].name, "stolen");
  EXPECT_EQ(record.conditions[0].unit, "%");
  EXPECT_DOUBLE_EQ(record.conditions[0].value, 0.4);
  EXPECT_EQ(record.timing.note, "the interval is narrow enough");
}

TEST(stolen_time, is_said_of_a_timing_where_it_is_much) {
  evaluation_record record;
  record.timing.note = "the time budget is spent";
  note_stolen(6.7, record);
  EXPECT_EQ(record.timing.note, "the time budget is spent; the host of this virtual machine took 7 "
                                "% of its processors' time");
  evaluation_record untimed;
  note_stolen(6.7, untimed);
  EXPECT_TRUE(untimed.timing.note.empty());
}

TEST(stolen_time, of_a_machine_of_ones_own_is_no_condition) {
  evaluation_record record;
  note_stolen(0, record);
  EXPECT_TRUE(record.conditions.empty());
}

} // namespace stolen_time_test
