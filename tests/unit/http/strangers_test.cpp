#include "launch/server/http/strangers.hpp"

#include <vector>

#include <gmock/gmock.h>

namespace kernelmill::http {

namespace strangers_test {

using testing::ElementsAre;
using testing::IsEmpty;

const peer_origin here{127, 0, 0, 1};
const peer_origin there{10, 0, 0, 1};

class Strangers : public testing::Test {
protected:
  strangers::number add(const peer_origin& from, int name) {
    return all.add(from, [this, name] { left.push_back(name); });
  }

  strangers all{2};
  std::vector<int> left;
};

TEST_F(Strangers, TheOldestOfAnAddressLeavesForItsNext) {
  add(there, 0);
  add(here, 1);
  add(here, 2);
  EXPECT_FALSE(all.make_room(there, false));
  EXPECT_TRUE(all.make_room(here, false));
  EXPECT_THAT(left, ElementsAre(1));
  EXPECT_FALSE(all.make_room(here, false));
}

TEST_F(Strangers, TheOldestOfAllLeavesAFullServer) {
  add(there, 0);
  add(here, 1);
  EXPECT_TRUE(all.make_room(here, true));
  EXPECT_THAT(left, ElementsAre(0));
}

TEST_F(Strangers, WhatWasLetInStays) {
  auto first = add(here, 0);
  all.remove(first);
  all.remove(first);
  EXPECT_FALSE(all.make_room(here, true));
  EXPECT_THAT(left, IsEmpty());
}

} // namespace strangers_test

} // namespace kernelmill::http
