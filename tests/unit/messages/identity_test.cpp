#include "messages/identity.hpp"

#include <set>

#include <gtest/gtest.h>

#include "messages/base/digest.hpp"
#include "messages/error.hpp"

namespace kernelmill {
namespace identity_test {

TEST(identity, a_runs_number_is_the_same_on_every_machine) {
  // The first 8 bytes of the name's SHA-256.
  EXPECT_EQ(run_number("abc"), 0xba7816bf8f01cfeau);
}

TEST(identity, each_request_has_a_seed_of_its_own_that_its_run_repeats) {
  std::set<uint32_t> seen;
  for (uint32_t member = 0; member < 8; ++member)
    for (uint32_t turn = 0; turn < 8; ++turn) {
      auto seed = request_seed(1, 0, {"first", "native/row_sum", 0, member}, turn);
      EXPECT_LT(seed, uint32_t{1} << 31);
      EXPECT_EQ(seed, request_seed(1, 0, {"second", "native/row_sum", 0, member}, turn));
      seen.insert(seed);
    }
  EXPECT_EQ(seen.size(), 64u);
  auto seed = request_seed(1, 0, {"first", "native/row_sum", 0, 0}, 0);
  EXPECT_NE(seed, request_seed(2, 0, {"first", "native/row_sum", 0, 0}, 0));
  EXPECT_NE(seed, request_seed(1, 1, {"first", "native/row_sum", 0, 0}, 0));
}

TEST(identity, names_and_back) {
  episode_id x{"run", "native/row_sum", 3, 1};
  EXPECT_EQ(short_name(x), "g3.e1");
  EXPECT_EQ(short_name(x, 2), "g3.e1.t2");
  auto group = parse_name("g12");
  ASSERT_TRUE(group);
  EXPECT_EQ(group->group, 12u);
  EXPECT_FALSE(group->member || group->turn);
  auto turn = parse_name("g3.e1.t2");
  ASSERT_TRUE(turn && turn->member && turn->turn);
  EXPECT_EQ(*turn->member, 1u);
  EXPECT_EQ(*turn->turn, 2u);
}

TEST(identity, what_is_no_name) {
  for (auto text : {"", "g", "e1", "g1.", "g1.e", "g1.t1", "g1.e1.", "g1.e1.t", "g1.e1.t1.x", "g-1",
                    "g 1", "g1e1", "G1", "g4294967296", "g1.e1.t1 "})
    EXPECT_FALSE(parse_name(text)) << text;
  EXPECT_TRUE(parse_name("g4294967295"));
}

TEST(identity, a_turn_id_depends_on_every_part_and_on_nothing_else) {
  episode_id x{"run", "task", 1, 2};
  EXPECT_EQ(turn_id(x, 0), turn_id({"run", "task", 1, 2}, 0));
  EXPECT_EQ(turn_id(x, 0).size(), 64u);
  for (const auto& other : {episode_id{"run2", "task", 1, 2}, episode_id{"run", "task2", 1, 2},
                            episode_id{"run", "task", 2, 2}, episode_id{"run", "task", 1, 3}})
    EXPECT_NE(turn_id(x, 0), turn_id(other, 0));
  EXPECT_NE(turn_id(x, 0), turn_id(x, 1));
}

TEST(identity, borders_between_the_parts_count) {
  EXPECT_NE(turn_id({"ab", "c", 0, 0}, 0), turn_id({"a", "bc", 0, 0}, 0));
}

TEST(digest, sha256_of_known_texts) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(error_value, is_shown_with_its_hint) {
  EXPECT_EQ(render({fault_class::policy, "c", "failed to x: y", "do z"}), "failed to x: y (do z)");
  EXPECT_EQ(render({fault_class::policy, "c", "failed to x: y", ""}), "failed to x: y");
  EXPECT_EQ(to_string(fault_class::infrastructure), "infrastructure");
}

} // namespace identity_test
} // namespace kernelmill
