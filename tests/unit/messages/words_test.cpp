#include <gtest/gtest.h>

#include <capnp/message.h>

#include "messages/base/counted.hpp"
#include "messages/gate_words.hpp"

namespace kernelmill {

namespace words_test {

TEST(counted, has_one_in_the_singular_alone) {
  EXPECT_EQ(counted(0, "run"), "0 runs");
  EXPECT_EQ(counted(uint64_t{1}, "run"), "1 run");
  EXPECT_EQ(counted(2, "entry", "entries"), "2 entries");
}

TEST(gate_word, of_an_accepted_candidate_never_says_that_it_failed) {
  capnp::MallocMessageBuilder message;
  auto gate = message.initRoot<wire::Gate>();
  gate.setName("performance");
  gate.setStatus(wire::GateStatus::FAIL);
  EXPECT_EQ(gate_word(wire::Outcome::ACCEPTED, gate), "slower");
  EXPECT_EQ(gate_word(wire::Outcome::REJECTED, gate), "fail");
  gate.setName("originality");
  EXPECT_EQ(gate_word(wire::Outcome::ACCEPTED, gate), "copy");
  gate.setStatus(wire::GateStatus::NOT_RUN);
  EXPECT_EQ(gate_word(wire::Outcome::ACCEPTED, gate), "not_run");
}

} // namespace words_test

} // namespace kernelmill
