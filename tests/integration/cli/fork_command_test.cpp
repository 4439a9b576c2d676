// `kernelmill fork`: new episodes from the first turns of a stored one, what shows them, what
// exports count, and what is left of a fork that was killed.

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {

namespace fork_command_test {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

std::vector<json> lines(const std::string& text) {
  std::istringstream in{text};
  std::vector<json> result;
  for (std::string line; std::getline(in, line);) result.push_back(json::parse(line));
  return result;
}

/// Two episodes of three turns: at first wrong, then right twice.
const std::string& origin() {
  static const std::string name = [] {
    auto ran =
        kernelmill({"run", source_file("configs/quickstart.json"), "tasks.ids=[\"native/row_sum\"]",
                    "tasks.group_size=2", "tasks.max_turns=3", "evaluation.timing.enabled=false",
                    "profile.enabled=false", "run.dir=runs/origin", "--json"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    return std::string{"origin"};
  }();
  return name;
}

/// A fork of the origin's first episode; returns what it says at its end.
json fork(const std::string& turn, const std::string& name, std::vector<std::string> more = {}) {
  std::vector<std::string> words{"fork", "runs/" + origin() + "/" + turn, "run.name=" + name,
                                 "--json"};
  words.insert(words.end(), more.begin(), more.end());
  auto x = kernelmill(words);
  EXPECT_EQ(x.code, 0) << x.err;
  return x.document();
}

std::set<std::string> turns_of(const std::string& form, const std::vector<std::string>& runs) {
  std::vector<std::string> words{"export"};
  words.insert(words.end(), runs.begin(), runs.end());
  for (const auto* x : {"--form", form.c_str(), "--out", "-"}) words.emplace_back(x);
  auto x = kernelmill(words);
  EXPECT_EQ(x.code, 0) << x.err;
  std::set<std::string> result;
  auto take = [&](const json& turn, const std::string& where) {
    if (turn["reward"].is_null()) return;
    EXPECT_TRUE(result.insert(where + ".t" + turn["turn"].dump()).second) << where;
  };
  for (const auto& row : lines(x.out)) {
    if (row.contains("episodes"))
      for (const auto& e : row["episodes"])
        for (const auto& t : e["turns"]) take(t, e["id"]);
    else if (row.contains("turns"))
      for (const auto& t : row["turns"]) take(t, row["id"]);
    else
      EXPECT_TRUE(result.insert(row["id"].get<std::string>()).second);
  }
  return result;
}

std::string talk_server(const std::string& name, const std::string& more) {
  return write_file(name,
                    R"({"model": "other", "replies": [{"text": "no kernel at all"}])" + more + "}");
}

uint64_t stored_turns(const std::string& run) {
  auto x = kernelmill({"query", "", "runs/" + run, "--fields", "turn", "--json"});
  return x.code == 0 ? lines(x.out).size() : 0;
}

/// Waits until so many turns are stored; the test's own time limit is the only one.
void wait_for_turns(const std::string& run, uint64_t count, const running_program& while_running) {
  while (stored_turns(run) < count) ASSERT_TRUE(while_running.running());
}

TEST(fork_command, shares_the_first_turns_and_takes_the_others_anew) {
  auto x = fork("g0.e0.t2", "shares", {"tasks.group_size=3"});
  EXPECT_EQ(x["totals"]["episodes"], 3);
  auto before = kernelmill({"show", "runs/origin/g0.e0.t1", "--json"}).document();
  auto after = kernelmill({"show", "runs/shares/g0.e2.t1", "--json"}).document();
  EXPECT_EQ(after["candidate"], before["candidate"]);
  EXPECT_EQ(after["verdict"], before["verdict"]);
  auto counted = kernelmill({"query", "not shared", "runs/shares", "--fields", "turn", "--json"});
  ASSERT_EQ(lines(counted.out).size(), 3u);
  for (const auto& row : lines(counted.out)) EXPECT_EQ(row["turn"], 2);
}

TEST(fork_command, takes_another_policy_and_another_prompt) {
  running_program server{{"policy", "scripted", "--script", talk_server("other.json", "")}};
  auto x = fork(
      "g0.e0.t1", "hinted",
      {"--policy", server.first_line(), "policy.model=other", "--prompt", "Use shared memory."});
  EXPECT_EQ(x["totals"]["rejected"].get<int>() + x["totals"]["accepted"].get<int>(), 1);
  auto rows =
      lines(kernelmill({"export", "runs/hinted", "--form", "trajectories", "--out", "-"}).out);
  ASSERT_EQ(rows.size(), 1u);
  const auto& turns = rows[0]["turns"];
  EXPECT_EQ(turns[0]["model"], "scripted-quickstart");
  EXPECT_EQ(turns[1]["model"], "other");
  EXPECT_EQ(turns[1]["response"], "no kernel at all");
  EXPECT_THAT(turns[1]["messages"].back()["content"].get<std::string>(),
              AllOf(HasSubstr("ompile"), HasSubstr("Use shared memory.")));
  server.stop(SIGTERM);
}

TEST(fork_command, lineage_shows_the_branch_and_the_branch_of_the_branch) {
  fork("g0.e1.t2", "branch");
  auto second = kernelmill({"fork", "runs/branch/g0.e0.t1", "run.name=twig", "--json"});
  ASSERT_EQ(second.code, 0) << second.err;
  auto x = kernelmill({"lineage", "runs/origin/g0.e1", "--json"}).document();
  EXPECT_TRUE(x["fork"].is_null());
  ASSERT_EQ(x["branches"].size(), 1u) << x;
  const auto& branch = x["branches"][0];
  EXPECT_EQ(branch["run"], "branch");
  ASSERT_EQ(branch["turns"].size(), 1u);
  EXPECT_EQ(branch["turns"][0]["parent"], x["turns"][1]["id"]);
  ASSERT_EQ(branch["branches"].size(), 1u);
  EXPECT_EQ(branch["branches"][0]["run"], "twig");
  EXPECT_EQ(branch["branches"][0]["turns"][0]["parent"], x["turns"][0]["id"])
      << "it shares t0 alone, which is the origin's";
  auto tree = kernelmill({"lineage", "runs/origin/g0.e1"}).out;
  EXPECT_THAT(tree, AllOf(HasSubstr("branch/g0.e0.t2 "), HasSubstr("twig/g0.e0.t1 ")));
  auto dot = kernelmill({"lineage", "runs/origin/g0.e1", "--dot"}).out;
  auto parent = x["turns"][1]["id"].get<std::string>().substr(0, 12);
  auto child = branch["turns"][0]["id"].get<std::string>().substr(0, 12);
  EXPECT_THAT(dot, HasSubstr("\"" + parent + "\" -> \"" + child + "\""));

  auto own = kernelmill({"lineage", "runs/branch/g0.e0", "--json"}).document();
  EXPECT_EQ(own["fork"]["run"], "origin");
  EXPECT_EQ(own["turns"][1]["shared"], true);
  EXPECT_EQ(own["turns"][2]["shared"], false);
  EXPECT_THAT(kernelmill({"lineage", "runs/branch/g0.e0"}).out,
              AllOf(HasSubstr("a fork of origin/g0.e1.t2"), HasSubstr("(shared)")));
}

TEST(fork_command, exports_count_shared_turns_once) {
  fork("g0.e0.t2", "once", {"tasks.group_size=2"});
  for (const std::string form : {"sft", "rl", "trajectories"}) {
    auto alone = turns_of(form, {"runs/origin"});
    auto both = turns_of(form, {"runs/origin", "runs/once"});
    ASSERT_FALSE(alone.empty()) << form;
    auto expected = alone;
    expected.insert({"once/g0.e0.t2", "once/g0.e1.t2"});
    EXPECT_EQ(both, expected) << form;
  }
  for (const auto& row :
       lines(kernelmill({"export", "runs/once", "--form", "preference", "--out", "-"}).out))
    for (const auto* side : {"chosen_answer", "rejected_answer"})
      EXPECT_THAT(row[side]["id"].get<std::string>(), HasSubstr(".t2"));
  auto counted = kernelmill(
      {"export", "runs/origin", "runs/once", "--form", "rl", "--out", "of-both", "--json"});
  ASSERT_EQ(counted.code, 0) << counted.err;
  auto report = kernelmill({"report", "runs/once", "--by", "turn", "--json"}).document();
  EXPECT_EQ(report["all"]["samples"], 2) << report;
  std::ifstream file{scratch() + "/of-both/PROVENANCE.json"};
  auto provenance = json::parse(file);
  EXPECT_EQ(provenance["read"]["turns"], 8)
      << "six of the origin, and one of each episode of the fork";
  EXPECT_EQ(provenance["runs"][1]["fork"]["run"], "origin") << provenance["runs"];
}

TEST(fork_command, that_is_killed_loses_nothing_and_is_resumed) {
  auto stalls = talk_server("stalls.json", R"(, "faults": [{"kind": "stall", "turn": 4}])");
  running_program slow{{"policy", "scripted", "--script", stalls}};
  running_program run{{"fork", "runs/" + origin() + "/g0.e0.t2", "run.name=killed", "--policy",
                       slow.first_line(), "policy.model=other", "tasks.max_turns=6",
                       "tasks.group_size=2"}};
  wait_for_turns("killed", 2 * 4, run); // two that are shared, two of its own, in each of two
  run.stop(SIGKILL);
  slow.stop(SIGTERM);
  auto before = lines(kernelmill({"query", "", "runs/killed", "--fields",
                                  "name,turn_id,shared,reward,code_sha256", "--json"})
                          .out);
  EXPECT_EQ(before.size(), 8u);
  running_program quick{{"policy", "scripted", "--script", talk_server("quick.json", "")}};
  auto resumed =
      kernelmill({"resume", "runs/killed", "policy.base_url=" + quick.first_line(), "--json"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(resumed.document()["totals"]["episodes"], 2);
  auto after = lines(kernelmill({"query", "turn < 4", "runs/killed", "--fields",
                                 "name,turn_id,shared,reward,code_sha256", "--json"})
                         .out);
  EXPECT_EQ(after, before);
  EXPECT_EQ(stored_turns("killed"), 12u);
  quick.stop(SIGTERM);
}

// What a kill leaves between the layout of the folder and the commit of what is shared.
TEST(fork_command, that_was_killed_before_its_shared_turns_were_there_gets_them) {
  fork("g0.e0.t2", "early");
  auto empty = [](const std::string& name) {
    auto from = fs::path{scratch()} / "runs/early", to = fs::path{scratch()} / "runs" / name;
    fs::create_directories(to);
    fs::copy_file(from / "config.json", to / "config.json");
    std::ifstream in{from / "manifest.json"};
    auto manifest = json::parse(in);
    manifest["run"] = name;
    std::ofstream{to / "manifest.json"} << manifest.dump(2);
  };
  empty("again");
  auto resumed = kernelmill({"resume", "runs/again", "--json"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(stored_turns("again"), 3u);

  empty("orphan");
  fs::rename(scratch() + "/runs/origin", scratch() + "/moved");
  auto lost = kernelmill({"resume", "runs/orphan", "--json"});
  EXPECT_EQ(lost.fault()["category"], "fork_origin_gone") << lost.err;
  auto whole = kernelmill({"resume", "runs/again", "--json"});
  EXPECT_EQ(whole.code, 0) << "a fork that has them needs its origin no more: " << whole.err;
  fs::rename(scratch() + "/moved", scratch() + "/runs/origin");
  EXPECT_EQ(kernelmill({"resume", "runs/orphan", "--json"}).code, 0);
  EXPECT_EQ(stored_turns("orphan"), 3u);
}

TEST(fork_command, says_what_is_wrong_with_its_words) {
  struct {
    std::vector<std::string> words;
    int code;
    const char* said;
  } cases[] = {
      {{"g0.e0"}, 2, "RUN/g3.e1.t2"},
      {{"g0.e0.t0"}, 2, "it shares no turn"},
      {{"g0.e0.t9"}, 3, "the episode has 3 turns"},
      {{"g0.e9.t1"}, 3, "the episode has 0 turns"},
      {{"g0.e0.t3"}, 2, "tasks.max_turns=5"},
      {{"g0.e0.t1", "--prompt", "\xff"}, 2, "not UTF-8"},
      {{"g0.e0.t1", "tasks.groups=4"}, 2, "tasks.group_size"},
      {{"g0.e0.t1", "run.name=origin"}, 4, "run_exists"},
  };
  for (auto& [words, code, said] : cases) {
    words[0] = "runs/" + origin() + "/" + words[0];
    words.insert(words.begin(), "fork");
    words.emplace_back("--json");
    auto x = kernelmill(words);
    EXPECT_EQ(x.code, code) << words[1] << x.err;
    EXPECT_THAT(x.err, HasSubstr(said)) << words[1];
  }
}

TEST(fork_command, and_its_origin_may_share_a_store) {
  auto ran = kernelmill(
      {"run", source_file("configs/quickstart.json"), "tasks.ids=[\"native/row_sum\"]",
       "tasks.group_size=1", "tasks.max_turns=2", "evaluation.timing.enabled=false",
       "profile.enabled=false", "storage.store=one/store", "run.dir=one/first", "--json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  auto script = talk_server("relative.json", "");
  auto x = kernelmill({"fork", "one/first/g0.e0.t1", "--policy", "relative.json",
                       "policy.model=other", "run.name=second", "--json"});
  ASSERT_EQ(x.code, 0) << x.err;
  auto rows =
      lines(kernelmill({"query", "", "one/second", "--fields", "turn,model,shared", "--json"}).out);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["shared"], true);
  EXPECT_EQ(rows[1]["model"], "other");
  auto compared = kernelmill({"compare", "one/first/g0.e0", "one/second/g0.e0", "--json"});
  ASSERT_EQ(compared.code, 0) << compared.err;
  EXPECT_EQ(compared.document()["first_difference"], 1);
  auto tree = kernelmill({"lineage", "one/first/g0.e0"});
  EXPECT_THAT(tree.out, HasSubstr("second/g0.e0.t1 "));
}

TEST(fork_command, goes_on_behind_the_last_turn_of_an_episode) {
  auto x = fork("g0.e0.t3", "longer", {"tasks.max_turns=5"});
  EXPECT_EQ(x["totals"]["episodes"], 1);
  EXPECT_EQ(stored_turns("longer"), 5u);
}

} // namespace fork_command_test
} // namespace kernelmill::test
