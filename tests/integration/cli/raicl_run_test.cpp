// Runs whose prompts show kernels of an index: what is shown, what the record says of it, and what
// a copy earns; and what is said of an index that a run cannot use.

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "retrieval/search/index.hpp"
#include "tests/integration/cli/program.hpp"
#include "tests/integration/cli/small_cluster.hpp"

namespace kernelmill::test {

namespace raicl_run_test {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string id = "kernel:corpus/17";

const std::string reference = R"(import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.cumsum(x, dim=1)[:, -1] / x.norm()
)";

// It solves native/row_sum, which the leak guard cannot tell from what the corpus says of it.
const std::string kernel = R"(#include <numeric>
static double pairs(const float* from, const float* to) {
  const auto count = to - from;
  return count < 100 ? std::accumulate(from, to, 0.0)
                     : pairs(from, from + count / 2) + pairs(from + count / 2, to);
}
extern "C" void solve(const float* x, float* y, int rows, int cols) {
  for (float* end = y + rows; y != end; ++y, x += cols) *y = float(pairs(x, x + cols));
}
)";

/// An index of one kernel and two cards.
std::string make_index(const std::string& name) {
  index_options options;
  options.knowledge = scratch() + "/two_cards";
  std::filesystem::create_directories(options.knowledge);
  for (const std::string card : {"zebras", "yaks"})
    write_file("two_cards/" + card + ".md", "---\nid: " + card + "\ntitle: " + card +
                                                "\nkind: hardware\noperator_family: any\n"
                                                "backends: cpu\ntags: grass\n---\nThey graze.\n");
  options.directory = scratch() + "/" + name;
  kernel_example x;
  x.id = "corpus/17";
  x.task = "corpus/last_of_sums";
  x.operator_family = "reduction";
  x.source = kernel;
  x.reference = reference;
  x.speedup = 3;
  x.device = "AMD EPYC 9555";
  x.date = "2026-11-30";
  x.origin = "a corpus";
  x.split = "train";
  x.rights_source = "own";
  options.kernels = {x};
  auto made = build_index(options);
  EXPECT_TRUE(made) << render(made.error());
  return options.directory;
}

/// One episode of native/row_sum by a script's answers.
std::vector<std::string> episode_of(const std::string& name, const json& replies,
                                    std::vector<std::string> more,
                                    const json& faults = json::array()) {
  write_file(name + ".cpp", kernel);
  auto script = write_file(name + ".json",
                           json{{"model", "m"}, {"replies", replies}, {"faults", faults}}.dump());
  std::vector<std::string> words{"run",
                                 source_file("configs/quickstart.json"),
                                 "tasks.ids=[\"native/row_sum\"]",
                                 "tasks.group_size=1",
                                 "tasks.max_turns=1",
                                 "policy.script=" + script,
                                 "evaluation.timing.half_width=0.1",
                                 "profile.enabled=false",
                                 "run.dir=" + name};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

json turn_of(const std::string& run, int turn = 0) {
  auto x = kernelmill({"show", run + "/g0.e0.t" + std::to_string(turn), "--json"});
  EXPECT_EQ(x.code, 0) << x.err;
  return x.document();
}

void expect_shown(const json& turn) {
  EXPECT_THAT(turn["prompt"][1]["content"].get<std::string>(),
              AllOf(HasSubstr("Speedup: 3.00 or more on AMD EPYC 9555, 2026-11-30. Origin: a "
                              "corpus, under the licence of own.\n"),
                    HasSubstr("```python\n" + reference + "```\n"),
                    HasSubstr("```cpp\n" + kernel + "```\n")));
  EXPECT_THAT(turn["examples"].get<std::vector<std::string>>(), testing::Contains(id));
}

void expect_unpaid_copy(const json& turn) {
  EXPECT_EQ(turn["verdict"]["category"], "unchanged") << turn["verdict"];
  auto speed = json::array();
  for (const auto& part : turn["verdict"]["components"])
    if (part["name"] == "speed") speed.push_back(part["value"]);
  EXPECT_EQ(speed, json{0.0});
  EXPECT_EQ(turn["verdict"]["reward"], 0.0) << "not even what a correct kernel earns";
}

TEST(raicl_run, shows_a_kernel_and_a_copy_of_it_earns_nothing) {
  auto index = make_index("shown");
  auto x = kernelmill(episode_of("refines", {{{"kernel", "refines.cpp"}}},
                                 {"retrieval.index=" + index, "retrieval.count=3"}));
  ASSERT_EQ(x.code, 0) << x.err;
  auto turn = turn_of("refines");
  expect_shown(turn);
  EXPECT_EQ(turn["examples"].size(), 3u);
  expect_unpaid_copy(turn);
  EXPECT_THAT(kernelmill({"show", "refines/g0.e0.t0"}).out,
              AllOf(HasSubstr("\n--- examples ---\n"), HasSubstr("\n" + id + "\n")));
  auto rows = kernelmill({"export", "refines", "--form", "trajectories", "--out", "-"});
  EXPECT_THAT(rows.out, HasSubstr(id)) << rows.err;
}

TEST(raicl_run, an_agent_that_hands_in_what_it_was_shown_earns_nothing) {
  auto index = make_index("asked");
  auto call = [](const char* name, json arguments, json files = json::object()) {
    return json{{"name", name}, {"arguments", arguments}, {"files", files}};
  };
  json replies{
      {{"turn", 0},
       {"text", "a"},
       {"tool_calls", {call("knowledge_query", {{"query", "last of sums"}, {"count", 1}})}}},
      {{"turn", 1},
       {"text", "b"},
       {"tool_calls",
        {call("write_candidate", json::object(), {{"source", "agent.cpp"}}),
         call("submit", json::object())}}}};
  auto x = kernelmill(episode_of(
      "agent", replies, {"retrieval.index=" + index, "retrieval.count=1", "episode.mode=tools"}));
  ASSERT_EQ(x.code, 0) << x.err;
  auto asked = turn_of("agent");
  expect_shown(asked);
  EXPECT_THAT(
      asked["calls"][0]["observation"].get<std::string>(),
      AllOf(HasSubstr("```python\n" + reference), HasSubstr("```cpp\n" + kernel + "```\n")));
  expect_unpaid_copy(turn_of("agent", 1));
}

TEST(raicl_run, of_examples_that_do_not_fit_the_context_half_are_shown) {
  auto index = make_index("long");
  json fault{{"status", 400},
             {"message", "This model's maximum context length is 4096 tokens"},
             {"times", 1}};
  auto x = kernelmill(episode_of("halved", {{{"text", "no kernel"}}},
                                 {"retrieval.index=" + index, "retrieval.count=3"},
                                 json::array({fault})));
  ASSERT_EQ(x.code, 0) << x.err;
  auto turn = turn_of("halved");
  expect_shown(turn);
  EXPECT_EQ(turn["examples"].size(), 1u);
  EXPECT_THAT(turn["prompt"][1]["content"].get<std::string>(), Not(HasSubstr("## Notes")));
}

TEST(raicl_run, shows_kernels_on_a_cluster) {
  auto index = make_index("far");
  auto root = scratch() + "/raicl_head";
  small_cluster cluster{root};
  cluster.start_node();
  auto x =
      cluster.submit({"run.name=far", "tasks.group_size=1", "retrieval.index=" + index, "--wait"});
  ASSERT_EQ(x.code, 0) << x.err;
  expect_shown(turn_of(root + "/far"));
  auto wrong =
      cluster.submit({"run.name=wrong", "retrieval.index=" + scratch() + "/nowhere", "--wait"});
  EXPECT_NE(wrong.code, 0);
  EXPECT_THAT(wrong.out + wrong.err,
              AllOf(HasSubstr("/nowhere"), HasSubstr("kernelmill index build")));
  EXPECT_EQ(cluster.stop().code, 0);
}

TEST(raicl_run, an_index_that_it_cannot_use_is_refused_with_what_to_type) {
  auto said = [](const std::string& index) {
    auto x = kernelmill(episode_of("refused", {{{"text", "none"}}}, {"retrieval.index=" + index}));
    EXPECT_NE(x.code, 0) << index;
    return x.err;
  };
  auto at = [](const std::string& name) { return scratch() + "/" + name; };
  EXPECT_THAT(said(at("nowhere")),
              AllOf(HasSubstr(at("nowhere/manifest.json") + ": No such file"),
                    HasSubstr("`kernelmill index build " + at("nowhere") + "`")));
  std::filesystem::create_directories(at("hollow"));
  EXPECT_THAT(said(at("hollow")), HasSubstr("`kernelmill index build " + at("hollow") + "`"));
  std::filesystem::create_directories(at("a_run"));
  write_file("a_run/manifest.json", R"({"schema_version": 1, "run": "a_run"})");
  EXPECT_THAT(said(at("a_run")),
              AllOf(HasSubstr("it is no index's"), Not(HasSubstr("wrote it")),
                    HasSubstr("set retrieval.index to the folder of an index;")));
  auto served = make_index("served_one");
  std::ifstream in{served + "/manifest.json"};
  auto manifest = json::parse(in);
  manifest["embedder"] = "openai-embeddings/1 model=letters";
  std::ofstream{served + "/manifest.json"} << manifest.dump();
  EXPECT_THAT(said(served),
              AllOf(HasSubstr("set retrieval.embedder.kind=http, retrieval.embedder.model=letters"),
                    HasSubstr("`kernelmill index build " + served + "`")));
}

} // namespace raicl_run_test

} // namespace kernelmill::test
