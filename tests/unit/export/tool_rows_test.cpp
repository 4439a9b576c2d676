// Episodes of mode `tools` as rows: their calls, their candidates, and the filters that ask for
// them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "golden.hpp"
#include "material.hpp"

namespace kernelmill::exports {
namespace tool_rows_test {

using namespace row_fixtures;
using ::testing::ElementsAre;

/// A turn that looked and patched, and one that submitted; the group has two such members, of which
/// the second only looked.
group tool_group(bool natively = true) {
  auto x = make_group();
  x.episodes.clear();
  for (uint32_t member : {0u, 1u}) {
    auto look = make_turn(0, 0, {1, 2, 3}, wire::Outcome::OPEN);
    look.category = "open";
    look.transition = "none";
    look.quality = "unusable";
    look.answer = natively ? "I look first." : "<tool_call>\n{\"name\": \"inspect\"}\n</tool_call>";
    look.code.clear();
    look.code_sha256.clear();
    look.called_natively = natively;
    look.calls = {
        {{"call-1", "inspect", "{}"}, "nothing yet", "ok", "inspect_only", "c0", "c0", 1, 0}};
    if (member == 0) {
      look.calls.push_back({{"call-2", "patch_candidate", "{\"patch\": \"...\"}"},
                            "c1 is active",
                            "ok",
                            "patch_applied",
                            "c0",
                            "c1",
                            2,
                            0.5});
      look.candidates = {
          {"c1", "c0", "ab", "int y;", "patched", "patch", "--- a\n+++ b\n", "bug_fix"}};
    }
    auto submit = make_turn(1, 1.25, {1, 2, 3, 10, 11, 4});
    submit.calls = {{{"call-3", "submit", "{}"}, "submitted", "ok", "evaluated", "c1", "c1", 0, 1}};
    submit.called_natively = natively;
    submit.added.clear();
    if (natively)
      for (const auto& done : look.calls)
        submit.added.push_back({"tool", done.observation, {}, done.call.id});
    else
      submit.added.push_back({"user", "<tool_response>\n</tool_response>\n", {}, {}});
    x.episodes.push_back(make_episode(member, member == 0 ? 1.0 : -1.0, {look, submit}));
  }
  return x;
}

TEST(tool_rows, have_calls_as_a_server_has_them) {
  auto rows = rows_of(form::sft, tool_group()).rows;
  ASSERT_EQ(rows.size(), 2u) << "the open turns are not accepted";
  const auto& messages = rows[0]["messages"];
  ASSERT_EQ(messages.size(), 5u);
  EXPECT_EQ(messages[1]["role"], "assistant");
  EXPECT_EQ(messages[1]["weight"], 0);
  EXPECT_EQ(messages[1]["tool_calls"].size(), 2u);
  EXPECT_EQ(messages[1]["tool_calls"][1]["function"]["name"], "patch_candidate");
  EXPECT_EQ(messages[1]["tool_calls"][1]["function"]["arguments"], "{\"patch\": \"...\"}");
  EXPECT_EQ(messages[2]["role"], "tool");
  EXPECT_EQ(messages[2]["tool_call_id"], "call-1");
  EXPECT_EQ(messages[3]["tool_call_id"], "call-2");
  EXPECT_EQ(messages[3]["content"], "c1 is active");
  EXPECT_EQ(messages[4]["tool_calls"][0]["id"], "call-3");
  EXPECT_EQ(messages[4]["weight"], 1);
}

TEST(tool_rows, of_the_text_form_are_text_alone) {
  auto messages = rows_of(form::sft, tool_group(false)).rows.at(0)["messages"];
  ASSERT_EQ(messages.size(), 4u);
  for (const auto& x : messages) EXPECT_FALSE(x.contains("tool_calls") || x["role"] == "tool") << x;
}

// A conversation with calls left out would teach a model to answer without them.
TEST(tool_rows, of_each_form_with_texts_have_the_native_calls) {
  for (auto as :
       {form::sft, form::trajectories, form::trl, form::nemo_gym, form::harbor, form::kernel_rl}) {
    std::string all;
    for (const auto& row : rows_of(as, tool_group()).rows) all += row.dump();
    for (const char* word :
         {"\"inspect\"", "\"patch_candidate\"", "patch\\\": \\\"...", "c1 is active", "\"submit\""})
      EXPECT_NE(all.find(word), std::string::npos) << to_string(as) << " lacks " << word;
  }
}

TEST(tool_rows, of_harbor_have_calls_in_the_step_that_made_them) {
  auto steps = rows_of(form::harbor, tool_group()).rows.at(0)["steps"];
  const auto& look = steps[steps.size() - 2];
  const auto& submit = steps.back();
  EXPECT_EQ(look["source"], "agent");
  EXPECT_EQ(look["tool_calls"][1]["tool_call_id"], "call-2");
  EXPECT_EQ(look["tool_calls"][1]["arguments"]["json"], "{\"patch\": \"...\"}");
  EXPECT_EQ(look["observation"]["results"][1]["source_call_id"], "call-2");
  EXPECT_EQ(look["observation"]["results"][1]["content"], "c1 is active");
  EXPECT_EQ(submit["observation"]["results"][0]["content"], "submitted");
  for (const auto& x : rows_of(form::harbor, tool_group(false)).rows.at(0)["steps"])
    EXPECT_FALSE(x.contains("tool_calls")) << x;
}

TEST(tool_rows, of_nemo_gym_have_calls_as_items) {
  auto row = rows_of(form::nemo_gym, tool_group()).rows.at(0);
  std::vector<std::string> types;
  for (const auto& x : row["response"]["output"]) types.push_back(x["type"]);
  EXPECT_THAT(types,
              ElementsAre("message", "function_call", "function_call", "function_call_output",
                          "function_call_output", "message", "function_call"));
  const auto& output = row["response"]["output"];
  EXPECT_EQ(output[2]["name"], "patch_candidate");
  EXPECT_EQ(output[4]["call_id"], output[2]["call_id"]);
  EXPECT_EQ(output[4]["output"], "c1 is active");
  // Tokens are of an answer as a whole.
  for (size_t i : {0, 1, 3, 5}) EXPECT_FALSE(output[i].contains("generation_token_ids")) << i;
  EXPECT_FALSE(output[2]["generation_token_ids"].empty());
  EXPECT_FALSE(output[6]["generation_token_ids"].empty());
}

TEST(tool_rows, of_trajectories_have_calls_and_patches) {
  auto rows = rows_of(form::trajectories, tool_group()).rows;
  const auto& turn = rows.at(0)["turns"][0];
  EXPECT_EQ(turn["outcome"], "open");
  EXPECT_EQ(turn["calls"][1]["transition"], "patch_applied");
  EXPECT_EQ(turn["calls"][1]["output"], "c1");
  EXPECT_EQ(turn["candidates"][0]["patch_kind"], "bug_fix");
  EXPECT_FALSE(rows.at(1)["turns"][0].contains("candidates"));
}

TEST(tool_rows, follow_the_schema_of_each_form) {
  for (auto as : all_forms) {
    auto document = nlohmann::json::parse(json_schema(as));
    for (bool natively : {true, false})
      for (const auto& row : rows_of(as, tool_group(natively)).rows)
        expect_valid(document, nlohmann::json::parse(row.dump()));
  }
}

TEST(tool_rows, an_open_first_turn_is_in_no_preference) {
  auto made = rows_of(form::preference, tool_group());
  EXPECT_TRUE(made.rows.empty());
  EXPECT_EQ(made.without["open_turns"], 2u);
}

TEST(tool_rows, are_filtered_by_the_transitions_of_calls) {
  auto x = tool_group();
  filter f;
  f.kinds = {"patch_applied"};
  EXPECT_THAT(turns_taken(f, x.episodes[0]), ElementsAre(0));
  EXPECT_THAT(turns_taken(f, x.episodes[1]), ElementsAre());
  EXPECT_TRUE(takes_episode(f, x.episodes[0]));
  EXPECT_FALSE(takes_episode(f, x.episodes[1]));
  f.kinds = {"inspect_only", "repaired"};
  EXPECT_THAT(turns_taken(f, x.episodes[1]), ElementsAre(0, 1)) << "a turn's own transition, too";
  f = {};
  f.patch_bearing = true;
  EXPECT_THAT(turns_taken(f, x.episodes[0]), ElementsAre(0));
  EXPECT_FALSE(takes_episode(f, x.episodes[1]));
  f.accepted = true; // asks the best turn, which needs not be the one that patched
  EXPECT_TRUE(takes_episode(f, x.episodes[0]));
  EXPECT_EQ(rows_of(form::trajectories, x, f).without["episodes_not_taken"], 1u);
}

} // namespace tool_rows_test
} // namespace kernelmill::exports
