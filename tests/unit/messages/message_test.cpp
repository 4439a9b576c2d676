#include "messages/message.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "messages/common.capnp.h"
#include "messages/run.capnp.h"

namespace kernelmill {
namespace message_test {

Message<wire::Fault> a_fault(const std::string& text) {
  return build<wire::Fault>([&](wire::Fault::Builder x) {
    x.setClass(wire::FaultClass::POLICY);
    x.setMessage(text);
  });
}

Message<wire::Snapshot> nested(int depth) {
  return build<wire::Snapshot>([&](wire::Snapshot::Builder x) {
    for (int i = 0; i < depth; ++i) x = x.initChildren(1)[0];
    x.setActor("deepest");
  });
}

int depth_of(wire::Snapshot::Reader x) {
  int depth = 0;
  while (x.getChildren().size() > 0) {
    x = x.getChildren()[0];
    ++depth;
  }
  return depth;
}

TEST(message, an_empty_one_reads_as_defaults) {
  Message<wire::Fault> none;
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.size(), 0u);
  EXPECT_EQ(none.data(), nullptr);
  auto view = none.open();
  EXPECT_EQ(view->getClass(), wire::FaultClass::NONE);
  EXPECT_EQ(view->getMessage().size(), 0u);
}

TEST(message, copies_share_their_words) {
  auto one = a_fault("x");
  auto two = one;
  EXPECT_EQ(one.data(), two.data());
}

TEST(message, a_view_outlives_the_message_that_it_was_opened_from) {
  auto view = a_fault("still here").open();
  EXPECT_EQ(view->getMessage(), "still here");
}

TEST(message, a_struct_of_another_message_can_be_taken_out) {
  auto source = a_fault("inside");
  auto copy = copy_of<wire::Fault>(*source.open());
  source = {};
  EXPECT_EQ(copy.open()->getMessage(), "inside");
}

TEST(message, sizes_that_no_message_has) {
  const char bytes[24] = {};
  for (size_t size : {size_t{0}, size_t{7}, size_t{9}, max_message_bytes + 8}) {
    auto got = Message<wire::Fault>::from_bytes(bytes, size);
    ASSERT_FALSE(got) << size;
    EXPECT_EQ(got.error().category, "malformed_message");
    EXPECT_EQ(got.error().cls, fault_class::infrastructure);
  }
}

TEST(message, a_segment_table_that_promises_more_than_there_is) {
  const uint64_t words[2] = {uint64_t{1000} << 32, 0};
  EXPECT_FALSE(Message<wire::Fault>::from_bytes(words, sizeof words));
}

TEST(message, a_cut_off_message_is_refused) {
  auto whole = a_fault(std::string(1000, 'x'));
  EXPECT_FALSE(Message<wire::Fault>::from_bytes(whole.data(), whole.size() - 8));
}

TEST(message, deep_nesting_is_refused_where_it_is_read) {
  EXPECT_EQ(depth_of(*nested(6).open()), 6);
  auto deep = nested(40);
  auto view = deep.open();
  EXPECT_THROW(depth_of(*view), kj::Exception);
}

TEST(message, reading_the_same_words_over_and_over_has_an_end) {
  auto x = a_fault(std::string(100'000, 'x'));
  auto view = x.open();
  EXPECT_THROW(for (int i = 0; i < 100; ++i) EXPECT_EQ(view->getMessage().size(), 100'000u),
               kj::Exception);
}

RC_GTEST_PROP(message, comes_back_from_its_bytes, (const std::string& text)) {
  std::string inner{text.c_str()}; // Text ends at NUL
  auto sent = a_fault(inner);
  auto got = Message<wire::Fault>::from_bytes(sent.data(), sent.size());
  RC_ASSERT(got.has_value());
  RC_ASSERT(std::string{got->open()->getMessage().cStr()} == inner);
}

// Every field is read, as a consumer would; anything but an answer or a kj::Exception is a bug.
void read_all(const Message<wire::Snapshot>& x) {
  auto view = x.open();
  depth_of(*view);
  for (auto number : view->getNumbers()) {
    (void)number.getName().size();
    (void)number.getValue();
  }
  (void)view->getActor().size();
}

RC_GTEST_PROP(message, garbage_is_refused_or_read_within_limits,
              (const std::vector<uint64_t>& words)) {
  auto got = Message<wire::Snapshot>::from_bytes(words.data(), words.size() * 8);
  if (!got) return;
  try {
    read_all(*got);
  } catch (const kj::Exception&) {
    // nop
  }
}

RC_GTEST_PROP(message, a_flipped_bit_is_refused_or_read_within_limits, ()) {
  auto sent = nested(3);
  std::vector<char> bytes(sent.data(), sent.data() + sent.size());
  auto at = *rc::gen::inRange<size_t>(0, bytes.size());
  bytes[at] = static_cast<char>(bytes[at] ^ (1 << *rc::gen::inRange(0, 8)));
  auto got = Message<wire::Snapshot>::from_bytes(bytes.data(), bytes.size());
  if (!got) return;
  try {
    read_all(*got);
  } catch (const kj::Exception&) {
    // nop
  }
}

} // namespace message_test
} // namespace kernelmill
