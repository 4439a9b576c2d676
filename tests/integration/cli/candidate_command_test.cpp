// `kernelmill lineage`, `candidate` and `show` on an episode whose turns called tools.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "messages/base/json_value.hpp"
#include "storage/lineage/store.hpp"
#include "storage/run_directory.hpp"
#include "tests/integration/cli/program.hpp"
#include "tests/unit/storage/fixtures.hpp"

namespace kernelmill::test {

namespace candidate_command_test {

using ::testing::HasSubstr;
using ::testing::Not;

/// A run "tooled": c0, of which c1 and c2 are patches, and a submission.
void make_run() {
  static bool made = false;
  if (made) return;
  made = true;
  auto run =
      create_run({scratch() + "/runs/tooled", "tooled", ""}, nlohmann::ordered_json::object(), {});
  ASSERT_TRUE(run);
  auto to = store::open({.directory = run->store, .durable = false});
  ASSERT_TRUE(to);
  fixtures::turn_options with{.run = "tooled"};
  auto last = with;
  last.terminal = true;
  auto end = build<wire::Record>([&](wire::Record::Builder x) {
    auto plain = fixtures::make_episode(0, 0, {0, 0, 0, 0.3}, with);
    x.setEpisode(plain.open()->getEpisode());
    x.getEpisode().setTerminalState("success");
    x.getEpisode().setSteps(9);
    x.getEpisode().setGpuSeconds(1.5);
  });
  ASSERT_TRUE(
      to->commit({fixtures::make_tool_turn(0, 0, 0, "c0", "", "int a;\nint b;\n", with),
                  fixtures::make_tool_turn(0, 0, 1, "c1", "c0", "int a;\nint c;\n", with),
                  fixtures::make_tool_turn(0, 0, 2, "c2", "c0", "int a;\n\x1b[31mint d;\n", with),
                  fixtures::make_turn(0, 0, 3, last), end}));
}

TEST(candidate_command, lineage_draws_the_graph) {
  make_run();
  auto tree = kernelmill({"lineage", "tooled/g0.e0"});
  EXPECT_EQ(tree.code, 0) << tree.err;
  EXPECT_THAT(tree.out, HasSubstr("\ncandidates\n└─ c0 patched, build_passed, perf_transform  t0 "
                                  "patch_candidate"));
  EXPECT_THAT(tree.out, HasSubstr("\n   ├─ c1 patched, build_passed"));
  EXPECT_THAT(tree.out, HasSubstr("\n   └─ c2 patched, build_passed, perf_transform, active  t2"));
  EXPECT_THAT(tree.out, HasSubstr("t0 open"));
  auto x = kernelmill({"lineage", "tooled/g0.e0", "--json"}).document();
  ASSERT_EQ(x["candidates"].size(), 3u);
  EXPECT_EQ(x["candidates"][2]["parent"], "c0");
  EXPECT_TRUE(x["problems"].empty()) << x["problems"];
}

TEST(candidate_command, prints_sources_and_differences) {
  make_run();
  auto source = kernelmill({"candidate", "show", "tooled/g0.e0", "c1"});
  EXPECT_EQ(source.code, 0) << source.err;
  EXPECT_THAT(source.out, HasSubstr("int a;\nint c;\n"));
  auto diff = kernelmill({"candidate", "diff", "tooled/g0.e0", "c0", "c1"});
  EXPECT_EQ(diff.out, "--- c0\n+++ c1\n@@ -1,2 +1,2 @@\n int a;\n-int b;\n+int c;\n");
  EXPECT_EQ(kernelmill({"candidate", "diff", "tooled/g0.e0", "c1"}).out, diff.out) << "its parent";
  EXPECT_THAT(kernelmill({"candidate", "show", "tooled/g0.e0", "c2"}).out, Not(HasSubstr("\x1b")));
  auto json = kernelmill({"candidate", "show", "tooled/g0.e0", "c2", "--json"}).document();
  EXPECT_EQ(json["source"], "int a;\n\x1b[31mint d;\n");
  EXPECT_EQ(json["patch_kind"], "perf_transform");
}

TEST(candidate_command, refuses_what_is_not_there) {
  make_run();
  for (const auto& [arguments, category] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"candidate", "show", "tooled/g0.e0", "c9"}, "not_found"},
           {{"candidate", "show", "tooled", "c0"}, "usage"},
           {{"candidate", "diff", "tooled/g0.e0", "c0"}, "usage"},
           {{"candidate", "diff", "tooled/g0.e0", "c0", "c9"}, "not_found"},
           {{"candidate", "show", "tooled/g7.e0", "c0"}, "not_found"},
           {{"show", "tooled/g0.e0", "--call", "0"}, "usage"},
           {{"show", "tooled/g0.e0.t1", "--call", "2"}, "not_found"}}) {
    auto with_json = arguments;
    with_json.push_back("--json");
    auto x = kernelmill(with_json);
    EXPECT_EQ(x.code, category == "usage" ? 2 : 3) << x.out;
    EXPECT_EQ(x.fault()["category"], category) << x.err;
  }
}

TEST(candidate_command, show_lists_calls_and_prints_one) {
  make_run();
  auto turn = kernelmill({"show", "tooled/g0.e0.t1"}).out;
  EXPECT_THAT(turn, HasSubstr("patch_applied"));
  EXPECT_THAT(turn, HasSubstr("c0 > c1"));
  EXPECT_THAT(turn, HasSubstr("c1 is active"));
  EXPECT_THAT(turn, HasSubstr("open: the turn asked for no verdict"));
  auto call = kernelmill({"show", "tooled/g0.e0.t1", "--call", "1"}).out;
  EXPECT_THAT(call, HasSubstr("{\"patch\":\"...\"}"));
  EXPECT_THAT(call, HasSubstr("next: build"));
  auto json = kernelmill({"show", "tooled/g0.e0.t1", "--call", "0", "--json"}).document();
  EXPECT_EQ(json["tool"], "inspect");
  EXPECT_EQ(json["observation"], "nothing was built");
  EXPECT_THAT(kernelmill({"show", "tooled/g0.e0"}).out,
              HasSubstr("success after 9 steps and 1.5 GPU seconds"));
  EXPECT_THAT(kernelmill({"explain", "tooled/g0.e0"}).out, HasSubstr("9 steps"));
  EXPECT_THAT(kernelmill({"stats", "tooled"}).out, HasSubstr("3 turns asked for no verdict"));
}

} // namespace candidate_command_test
} // namespace kernelmill::test
