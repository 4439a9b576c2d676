#include "storage/lineage/handoff_ledger.hpp"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "folder.hpp"

namespace kernelmill {
namespace handoff_ledger_test {

using ::testing::ElementsAre;

Message<wire::HandoffEvent> event_at(int64_t at) {
  return build<wire::HandoffEvent>([&](wire::HandoffEvent::Builder x) {
    x.setAt(at);
    x.setWithdrawn("run " + std::to_string(at));
  });
}

std::vector<std::pair<uint64_t, int64_t>> read_all(const handoff_ledger& from, uint64_t first = 1) {
  std::vector<std::pair<uint64_t, int64_t>> result;
  auto ok = from.scan(first, [&](uint64_t number, wire::HandoffEvent::Reader x) -> expected<void> {
    result.emplace_back(number, x.getAt());
    return {};
  });
  EXPECT_TRUE(ok) << (ok ? "" : render(ok.error()));
  return result;
}

handoff_ledger open_ledger(const folder& where) {
  auto result = handoff_ledger::open({.directory = where.path, .durable = false});
  EXPECT_TRUE(result) << (result ? "" : render(result.error()));
  return std::move(*result);
}

TEST(HandoffLedger, KeepsEventsInTheirOrder) {
  folder where;
  {
    auto ledger = open_ledger(where);
    EXPECT_TRUE(ledger.append({event_at(10), event_at(20)}));
    EXPECT_TRUE(ledger.append({}));
    EXPECT_TRUE(ledger.append({event_at(30)}));
  }
  auto ledger = open_ledger(where);
  EXPECT_TRUE(ledger.append({event_at(40)}));
  EXPECT_THAT(read_all(ledger), ElementsAre(std::pair{1u, 10}, std::pair{2u, 20}, std::pair{3u, 30},
                                            std::pair{4u, 40}));
  EXPECT_THAT(read_all(ledger, 3), ElementsAre(std::pair{3u, 30}, std::pair{4u, 40}));
}

TEST(HandoffLedger, GrowsBeyondItsFirstMap) {
  folder where;
  auto ledger = open_ledger(where);
  std::vector<Message<wire::HandoffEvent>> many;
  for (int i = 0; i < 1000; ++i) many.push_back(event_at(i));
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(ledger.append(many));
  EXPECT_EQ(read_all(ledger, 199'001).size(), 1000u);
}

TEST(HandoffLedger, NoticesDamage) {
  folder where;
  { EXPECT_TRUE(open_ledger(where).append({event_at(1), event_at(2)})); }
  auto file = where.path + "/data.mdb";
  std::string bytes;
  {
    std::ifstream in{file, std::ios::binary};
    bytes.assign(std::istreambuf_iterator<char>{in}, {});
  }
  auto at = bytes.find("run 2");
  ASSERT_NE(at, bytes.npos);
  bytes[at] = 'R';
  std::ofstream{file, std::ios::binary} << bytes;
  auto ledger = open_ledger(where);
  auto ok = ledger.scan(1, [](uint64_t, wire::HandoffEvent::Reader) { return expected<void>{}; });
  ASSERT_FALSE(ok);
  EXPECT_EQ(ok.error().category, "store_damaged");
}

} // namespace handoff_ledger_test
} // namespace kernelmill
