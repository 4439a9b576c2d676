// What the page shows of a search, from plain values and from stored records.

#include <gtest/gtest.h>

#include "launch/analysis/searching/search_document.hpp"
#include "messages/identity.hpp"
#include "tests/unit/storage/fixtures.hpp"

namespace kernelmill::searching {
namespace search_document_test {

using json = nlohmann::ordered_json;
using search::node_state;

json config(const char* strategy) {
  return {{"run", {{"seed", 3}}},
          {"tasks", {{"ids", {"native/x"}}, {"groups", 3}, {"group_size", 2}, {"max_turns", 1}}},
          {"search", {{"strategy", strategy}, {"islands", 2}, {"migration", 0}, {"fresh", 0.0}}}};
}

search_plan plan(const char* strategy = "beam") {
  auto result = plan_of(config(strategy));
  EXPECT_TRUE(result);
  return result.value_or(search_plan{});
}

struct outcome {
  uint32_t group, member;
  const char* parent;
  double low; ///< 0: it failed
  const char* niche = "plain";
  const char* category = "wrong_result";
};

void add(search_story& to, const outcome& x) {
  search::searched_episode made;
  made.name = short_name({{}, {}, x.group, x.member});
  made.parent = x.parent;
  made.what.state = x.low > 0 ? node_state::verified : node_state::failed;
  made.what.low = x.low;
  made.what.estimate = x.low * 1.1;
  made.what.high = x.low * 1.2;
  made.what.sha256 = made.name;
  made.what.niche = x.niche;
  made.source = "int x;";
  made.category = x.low > 0 ? "success" : x.category;
  made.cost.turns = 1;
  if (x.low > 0 &&
      (to.improvements.empty() || x.low > to.episodes[to.improvements.back().episode].what.low))
    to.improvements.push_back({static_cast<uint32_t>(to.episodes.size()), to.used});
  to.used += made.cost;
  to.episodes.push_back(std::move(made));
}

/// Two of the three generations that are planned.
search_story two_generations() {
  search_story result;
  add(result, {0, 0, "", 2, "simd"});
  add(result, {0, 1, "", 1.5});
  add(result, {1, 0, "g0.e0", 3, "simd"});
  add(result, {1, 1, "g0.e1", 0, "plain", "unchanged"});
  result.generations = result.finished = 2;
  return result;
}

std::vector<std::string> outcomes(const json& document) {
  std::vector<std::string> result;
  for (const auto& x : document["tree"])
    result.push_back(x["episode"].get<std::string>() + " " + x["outcome"].get<std::string>());
  return result;
}

TEST(search_document, a_run_without_a_strategy_is_no_search) {
  EXPECT_FALSE(plan_of(config("off")));
  EXPECT_FALSE(plan_of(json::object()));
  EXPECT_FALSE(plan_of({{"search", {{"strategy", "of_tomorrow"}}}}));
  EXPECT_FALSE(plan_of({{"search", {{"strategy", "tree"}}}, {"tasks", {{"groups", "many"}}}}));
}

TEST(search_document, the_tree_has_each_episode_with_parent_and_outcome) {
  auto x = search_document(two_generations(), plan(), {});
  EXPECT_EQ(outcomes(x), (std::vector<std::string>{"g0.e0 verified", "g0.e1 verified",
                                                   "g1.e0 verified", "g1.e1 unchanged"}));
  EXPECT_EQ(x["tree"][2]["parent"], "g0.e0");
  EXPECT_TRUE(x["tree"][0]["parent"].is_null());
  EXPECT_EQ(x["tree"][2]["speedup"]["low"], 3);
  EXPECT_EQ(x["tree"][2]["generation"], 1);
  EXPECT_TRUE(x["tree"][2]["island"].is_null());
  EXPECT_EQ(x["episodes"]["verified"], 3);
  EXPECT_EQ(x["episodes"]["unchanged"], 1);
  EXPECT_EQ(x["best_so_far"].size(), 2u);
  EXPECT_EQ(x["budget"]["turns"], 6);
  EXPECT_TRUE(x["budget"]["tokens"].is_null());
}

TEST(search_document, the_frontier_is_what_the_strategy_chooses_next) {
  auto x = search_document(two_generations(), plan(), {});
  EXPECT_EQ(x["frontier"]["generation"], 2);
  const auto& starts = x["frontier"]["starts"]; // a beam of four has three candidates for two
  ASSERT_EQ(starts.size(), 2u);
  EXPECT_EQ(starts[0]["parent"], "g1.e0");
  EXPECT_EQ(starts[1]["parent"], "g0.e0");
  EXPECT_EQ(starts[0]["episodes"], 1);
  EXPECT_TRUE(x["elites"].empty());
}

TEST(search_document, each_island_has_the_elite_of_each_niche) {
  auto x = search_document(two_generations(), plan("islands"), {});
  EXPECT_EQ(x["islands"], 2);
  EXPECT_EQ(x["tree"][3]["island"], 1);
  ASSERT_EQ(x["elites"].size(), 2u);
  EXPECT_EQ(x["elites"][0]["episode"], "g1.e0") << "it is faster than g0.e0 in the same niche";
  EXPECT_EQ(x["elites"][0]["niche"], "simd");
  EXPECT_EQ(x["elites"][1]["island"], 1);
  EXPECT_EQ(x["elites"][1]["episode"], "g0.e1");
}

TEST(search_document, episodes_in_progress_have_the_parent_that_is_chosen) {
  auto story = two_generations();
  auto x = search_document(story, plan(), {true, {"g2.e0", "g2.e1"}, {}});
  EXPECT_EQ(x["state"], "running");
  EXPECT_EQ(x["tree"][4]["outcome"], "running");
  EXPECT_EQ(x["tree"][4]["parent"], "g1.e0");
  EXPECT_EQ(x["tree"][5]["parent"], "g0.e0");
  EXPECT_EQ(x["episodes"]["running"], 2);
  add(story, {2, 0, "g1.e0", 4}); // its turn is stored, its end is not
  story.open = {4};
  x = search_document(story, plan(), {true, {"g2.e0", "g2.e1"}, {}});
  EXPECT_EQ(outcomes(x)[4], "g2.e0 running");
  EXPECT_EQ(x["tree"].size(), 6u);
}

TEST(search_document, a_search_that_was_killed_is_interrupted_until_it_has_ended) {
  auto story = two_generations();
  add(story, {2, 1, "g0.e0", 2.5});
  story.open = {4};
  auto x = search_document(story, plan(), {});
  EXPECT_EQ(x["state"], "interrupted");
  EXPECT_EQ(outcomes(x)[4], "g2.e1 interrupted");
  EXPECT_EQ(x["frontier"]["generation"], 2) << "of which g2.e0 is missing";
  story.open = {};
  add(story, {2, 0, "g1.e0", 0});
  story.finished = 3;
  EXPECT_EQ(search_document(story, plan(), {})["state"], "finished");
}

TEST(search_document, the_winner_is_that_of_what_is_stored) {
  auto story = two_generations();
  json ended = {{"used", {{"turns", 4}}}, {"winner", {{"turn", "g1.e0.t0"}}}};
  auto x = search_document(story, plan(), {false, {}, ended});
  EXPECT_EQ(x["winner"]["turn"], "g1.e0.t0");
  EXPECT_EQ(x["state"], "finished") << "a budget ended it before its last generation";
  add(story, {2, 0, "g1.e0", 5});
  EXPECT_TRUE(search_document(story, plan(), {false, {}, ended})["winner"].is_null())
      << "it was resumed since";
}

TEST(search_document, a_generation_that_lost_an_episode_keeps_the_places_of_the_others) {
  search_story story;
  add(story, {0, 1, "", 1.5}); // g0.e0 left no record
  add(story, {1, 0, "g0.e1", 2});
  add(story, {1, 1, "", 0});
  story.generations = story.finished = 2;
  auto starts = search_document(story, plan(), {})["frontier"]["starts"];
  ASSERT_EQ(starts.size(), 2u);
  EXPECT_EQ(starts[0]["parent"], "g1.e0");
  EXPECT_EQ(starts[1]["parent"], "g0.e1");
}

TEST(search_story, tells_finished_generations_from_those_in_progress) {
  using namespace kernelmill::fixtures;
  temporary_folder folder;
  auto to = store::open({.directory = folder / "store", .durable = false});
  ASSERT_TRUE(to) << to.error().message;
  ASSERT_TRUE(to->commit({make_turn(0, 0, 0), make_episode(0, 0, {0.3}), make_turn(0, 1, 0),
                          make_episode(0, 1, {0.3}), make_group(0, {0, 0}), make_turn(1, 0, 0),
                          make_episode(1, 0, {0.3}), make_turn(1, 1, 0)}));
  auto story = read_story(*to, "demo");
  ASSERT_TRUE(story) << story.error().message;
  EXPECT_EQ(story->episodes.size(), 4u);
  EXPECT_EQ(story->generations, 2u);
  EXPECT_EQ(story->finished, 1u);
  EXPECT_EQ(story->open, std::vector<uint32_t>{3});
}

TEST(search_story, of_a_candidate_within_its_completion_has_its_niche) {
  using namespace kernelmill::fixtures;
  const std::string kernel = "#pragma omp simd\nint x;";
  const std::string completion = "<KERNEL>\n" + kernel + "\n</KERNEL>";
  auto plain = make_turn(0, 0, 0);
  auto turn = build<wire::Record>([&](wire::Record::Builder x) {
    x.setTurn(plain.open()->getTurn());
    x.getTurn().setCandidateSha256("a");
    x.getTurn().getCompletion().getText().setInline(completion);
    auto span = x.getTurn().getCandidate().initOfCompletion();
    span.setBegin(static_cast<uint32_t>(completion.find(kernel)));
    span.setSize(static_cast<uint32_t>(kernel.size()));
  });
  temporary_folder folder;
  auto to = store::open({.directory = folder / "store", .durable = false});
  ASSERT_TRUE(to) << to.error().message;
  ASSERT_TRUE(to->commit({turn, make_episode(0, 0, {0.3}), make_group(0, {0})}));
  auto story = read_whole_story(*to, "demo", artifact_store{folder / "artifacts"});
  ASSERT_TRUE(story) << story.error().message;
  ASSERT_EQ(story->episodes.size(), 1u);
  EXPECT_EQ(story->episodes[0].source, kernel);
  EXPECT_EQ(story->episodes[0].what.niche, "simd");
}

} // namespace search_document_test
} // namespace kernelmill::searching
