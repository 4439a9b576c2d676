#include "storage/lineage/candidate_graph.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixtures.hpp"

namespace kernelmill {
namespace candidate_graph_test {

using namespace fixtures;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct a_node {
  std::string id, parent, role = "patched", kind = "";
  uint32_t depth = 0;
};
struct a_mark {
  std::string id, status;
  double low = 0, high = 0;
};

/// A turn of mode `tools`: each node is made by a call of its own.
Message<wire::Record> tool_turn(uint32_t number, const std::vector<a_node>& nodes,
                                const std::vector<a_mark>& marks, const std::string& active) {
  auto plain = make_turn(0, 0, number, {.outcome = wire::Outcome::OPEN});
  capnp::MallocMessageBuilder builder;
  builder.setRoot(*plain.open());
  auto turn = builder.getRoot<wire::Record>().getTurn();
  turn.initCandidate();
  auto calls = turn.initCalls(static_cast<unsigned>(nodes.size()) + 1);
  calls[0].setTool("inspect");
  auto list = turn.initCandidates(static_cast<unsigned>(nodes.size()));
  for (unsigned i = 0; i < nodes.size(); ++i) {
    const auto& x = nodes[i];
    list[i].setId(x.id);
    list[i].setParent(x.parent);
    list[i].setRole(x.role);
    list[i].setPatchKind(x.kind);
    list[i].setDepth(x.depth);
    list[i].setSha256("sha of " + x.id);
    list[i].initSource().setInline("source of " + x.id);
    calls[i + 1].setId("call-" + x.id);
    calls[i + 1].setTool("patch_candidate");
    calls[i + 1].setOutput(x.id);
  }
  auto told = turn.initMarks(static_cast<unsigned>(marks.size()));
  for (unsigned i = 0; i < marks.size(); ++i) {
    told[i].setId(marks[i].id);
    told[i].setStatus(marks[i].status);
    auto speedup = told[i].initSpeedup();
    speedup.setEstimate((marks[i].low + marks[i].high) / 2);
    speedup.setLow(marks[i].low);
    speedup.setHigh(marks[i].high);
  }
  turn.setActive(active);
  return Message<wire::Record>{builder};
}

std::vector<std::string> lines_of(const candidate_graph& x) {
  std::vector<std::string> result;
  for (const auto& e : x.entries) {
    auto line = e.id + "<" + e.parent + " " + std::to_string(e.depth) + " t" +
                std::to_string(e.turn) + " " + e.role + " " + e.status + " " + e.patch_kind;
    if (e.best) line += " best";
    if (e.dominated) line += " dominated";
    if (e.active) line += " active";
    result.push_back(line);
  }
  return result;
}

TEST(candidate_graph, of_tools_is_that_of_the_records) {
  std::vector<Message<wire::Record>> turns;
  turns.push_back(tool_turn(0, {{"c0", "", "baseline"}}, {{"c0", "benchmarked", 0.9, 1.1}}, "c0"));
  turns.push_back(
      tool_turn(1, {{"c1", "c0", "patched", "instrumentation", 1}, {"c2", "c1", "branched", "", 2}},
                {{"c1", "build_failed"}}, "c2"));
  turns.push_back(tool_turn(2, {{"c3", "c0", "patched", "", 1}, {"c4", "c1", "patched", "", 2}},
                            {{"c3", "benchmarked", 1.5, 1.7}, {"c4", "eval_passed"}}, "c3"));
  turns.push_back(tool_turn(3, {}, {{"c2", "eval_passed"}}, ""));
  auto graph = graph_of(turns);
  EXPECT_THAT(lines_of(graph),
              ElementsAre("c0< 0 t0 baseline benchmarked  dominated",
                          "c1<c0 1 t1 patched build_failed instrumentation",
                          "c2<c1 2 t1 branched eval_passed bug_fix",
                          "c3<c0 1 t2 patched benchmarked perf_transform best active",
                          "c4<c1 2 t2 patched eval_passed bug_fix"));
  EXPECT_THAT(graph.problems, IsEmpty());
  EXPECT_EQ(graph.find("c2")->call, "call-c2");
  EXPECT_EQ(graph.find("c2")->tool, "patch_candidate");
  EXPECT_EQ(graph.find("c9"), nullptr);
  turns.push_back(tool_turn(4, {}, {{"c3", "eval_failed"}}, ""));
  auto later = graph_of(turns);
  EXPECT_FALSE(later.find("c3")->best || later.find("c3")->speedup) << "fast and wrong";
  EXPECT_TRUE(later.find("c0")->best);
  artifact_store artifacts{"/nowhere"};
  EXPECT_EQ(source_of(*graph.find("c3"), turns, artifacts).value_or("gone"), "source of c3");
}

TEST(candidate_graph, of_records_that_contradict_themselves_is_reported_and_ends) {
  std::vector<Message<wire::Record>> turns;
  turns.push_back(tool_turn(
      0, {{"c0", "c0"}, {"c1", "c2"}, {"c2", "c1", "patched", "", 7}, {"c1", "c0"}, {"", "c0"}},
      {{"c7", "eval_passed"}, {"c2", "benchmarked", 2, 1}}, "c8"));
  auto graph = graph_of(turns);
  EXPECT_THAT(lines_of(graph), ElementsAre("c0< 0 t0 patched  ", "c1< 0 t0 patched  ",
                                           "c2<c1 1 t0 patched benchmarked  best"));
  EXPECT_FALSE(graph.find("c2")->speedup) << "an interval that is none";
  ASSERT_EQ(graph.problems.size(), 7u);
  EXPECT_THAT(graph.problems[0], HasSubstr("turn t0: c0 has the parent 'c0'"));
  EXPECT_THAT(graph.problems[1], HasSubstr("c1 has the parent 'c2'"));
  EXPECT_THAT(graph.problems[2], HasSubstr("depth 7, not 1"));
  EXPECT_THAT(graph.problems[3], HasSubstr("id 'c1'"));
  EXPECT_THAT(graph.problems[6], HasSubstr("'c8' is active"));
  std::vector<a_node> many(500, {"c0", "none"});
  graph = graph_of({tool_turn(0, many, {}, "")});
  EXPECT_EQ(graph.entries.size(), 1u);
  EXPECT_EQ(graph.problems.size(), 21u) << "the rest is a number";
}

Message<wire::Record> refine_turn(uint32_t number, const std::string& sha256,
                                  const char* transition, wire::Outcome outcome,
                                  double speedup = 0) {
  auto plain = make_turn(0, 0, number, {.speedup = speedup > 0 ? speedup : 1, .outcome = outcome});
  capnp::MallocMessageBuilder builder;
  builder.setRoot(*plain.open());
  auto turn = builder.getRoot<wire::Record>().getTurn();
  turn.setCandidateSha256(sha256);
  turn.setTransition(transition);
  auto timing = turn.getFacts().getEvaluation().getTiming();
  timing.setMeasured(speedup > 0);
  timing.getSpeedup().setHigh(speedup);
  return Message<wire::Record>{builder};
}

TEST(candidate_graph, of_refine_is_told_by_its_turns) {
  constexpr auto accepted = wire::Outcome::ACCEPTED, rejected = wire::Outcome::REJECTED;
  std::vector<Message<wire::Record>> turns;
  turns.push_back(refine_turn(0, "", "none", rejected));
  turns.push_back(refine_turn(1, "a", "synthesized", rejected));
  turns.push_back(refine_turn(2, "b", "repaired", accepted, 1.2));
  turns.push_back(refine_turn(3, "b", "repeated", wire::Outcome::INFRASTRUCTURE));
  turns.push_back(refine_turn(4, "c", "rewritten", accepted, 2.0));
  turns.push_back(refine_turn(5, "b", "reverted", accepted, 1.2));
  turns.push_back(refine_turn(6, "d", "rewritten", rejected));
  auto graph = graph_of(turns);
  EXPECT_THAT(lines_of(graph), ElementsAre("c0< 0 t1 synthesized eval_failed ",
                                           "c1<c0 1 t2 working benchmarked bug_fix dominated",
                                           "c2<c1 2 t4 working benchmarked perf_transform best",
                                           "c3<c1 2 t5 reverted benchmarked  dominated",
                                           "c4<c3 3 t6 working eval_failed perf_transform active"));
  EXPECT_THAT(graph.problems, IsEmpty());
  artifact_store artifacts{"/nowhere"};
  EXPECT_EQ(source_of(graph.entries[1], turns, artifacts).value_or("gone"), "int x;");
  turns.push_back(refine_turn(7, "e", "reverted", rejected));
  EXPECT_THAT(graph_of(turns).problems, ElementsAre(HasSubstr("is a new one")));
}

} // namespace candidate_graph_test
} // namespace kernelmill
