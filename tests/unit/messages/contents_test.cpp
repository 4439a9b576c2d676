#include "messages/contents.hpp"

#include <set>
#include <string>

#include <capnp/dynamic.h>
#include <capnp/message.h>
#include <gtest/gtest.h>

namespace kernelmill {
namespace contents_test {

// Makes one of everything below a struct: each list has one item. Returns how many texts there are.
size_t fill(capnp::DynamicStruct::Builder x) {
  if (x.getSchema() == capnp::Schema::from<wire::Content>()) return 1;
  size_t count = 0;
  for (auto field : x.getSchema().getNonUnionFields()) {
    auto type = field.getType();
    if (type.isStruct()) {
      count += fill(x.init(field).as<capnp::DynamicStruct>());
    } else if (type.isList()) {
      auto items = x.init(field, 1).as<capnp::DynamicList>();
      if (type.asList().getElementType().isStruct())
        count += fill(items[0].as<capnp::DynamicStruct>());
    }
  }
  return count;
}

TEST(contents, every_text_of_a_turn_is_visited) {
  capnp::MallocMessageBuilder message;
  auto turn = message.initRoot<wire::TurnRecord>();
  auto all = fill(capnp::toDynamic(turn));
  std::multiset<std::string> visited;
  for_each_content(turn.asReader(),
                   [&](wire::Content::Reader, const char* what) { visited.insert(what); });
  EXPECT_EQ(visited.size(), all) << "the schema has another text than messages/contents.hpp";
  EXPECT_EQ(visited.count("the observation of a call"), 1u);
  size_t built = 0;
  for_each_content(turn, [&](wire::Content::Builder x, const char*) {
    x.setInline("text");
    ++built;
  });
  EXPECT_EQ(built, all);
  EXPECT_EQ(turn.getCandidates()[0].getPatch().getInline(), "text");
}

} // namespace contents_test
} // namespace kernelmill
