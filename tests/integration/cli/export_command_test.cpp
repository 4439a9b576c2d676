#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/commands/store/left_out_words.hpp"
#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {

namespace export_command_test {

using testing::HasSubstr;

std::vector<nlohmann::json> lines(const std::string& text) {
  std::istringstream in{text};
  std::vector<nlohmann::json> result;
  for (std::string line; std::getline(in, line);) result.push_back(nlohmann::json::parse(line));
  return result;
}

/// One task, two members, two turns: at first wrong or slow, then right.
const std::string& small_run() {
  static const std::string name = [] {
    auto ran = kernelmill({"run", source_file("configs/quickstart.json"),
                           "tasks.ids=[\"native/row_sum\"]", "tasks.group_size=2", "tasks.groups=1",
                           "tasks.max_turns=2", "evaluation.timing.enabled=false",
                           "profile.enabled=false", "run.dir=exported", "--json"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    return std::string{"exported"};
  }();
  return name;
}

TEST(export_command, writes_a_folder_and_streams_the_same_rows) {
  auto x =
      kernelmill({"export", small_run(), "--form", "trajectories", "--out", "whole", "--json"});
  ASSERT_EQ(x.code, 0) << x.err;
  EXPECT_EQ(x.document()["rows"], 2);
  for (const auto* file : {"whole/README.md", "whole/PROVENANCE.json"})
    EXPECT_TRUE(std::filesystem::exists(scratch() + "/" + file)) << file;
  auto path = x.document()["files"][0]["path"].get<std::string>();
  std::ifstream in{scratch() + "/whole/" + path};
  std::stringstream text;
  text << in.rdbuf();
  auto streamed = kernelmill({"export", small_run(), "--form", "trajectories", "--out", "-"});
  EXPECT_EQ(streamed.out, text.str());
  auto rows = lines(streamed.out);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["turns"].size(), 2u);
  EXPECT_THAT(rows[0]["turns"][1]["messages"][0]["content"].get<std::string>(), HasSubstr("ompile"))
      << "the feedback on the turn before";
}

TEST(export_command, refuses_a_folder_that_is_not_empty) {
  ASSERT_EQ(kernelmill({"export", small_run(), "--form", "rl", "--out", "twice"}).code, 0);
  auto x = kernelmill({"export", small_run(), "--form", "rl", "--out", "twice", "--json"});
  EXPECT_EQ(x.code, 4);
  EXPECT_EQ(x.fault()["category"], "directory_not_empty");
  EXPECT_EQ(kernelmill({"export", small_run(), "--form", "rl", "--out", "twice", "--force"}).code,
            0);
}

TEST(export_command, filters) {
  auto count = [](std::vector<std::string> more) {
    std::vector<std::string> all{"export",
                                 small_run(),
                                 "--form",
                                 "sft",
                                 "--out",
                                 "-",
                                 "--governance",
                                 "usable_positive_sft,usable_negative_debug,"
                                 "usable_negative_transition,benchmark_only,unusable"};
    all.insert(all.end(), more.begin(), more.end());
    auto x = kernelmill(all);
    auto rows = lines(x.out).size();
    EXPECT_EQ(x.code, rows > 0 ? 0 : 5) << x.err;
    return rows;
  };
  EXPECT_EQ(count({}), 4u);
  EXPECT_EQ(count({"--best-of-episode"}), 2u);
  EXPECT_EQ(count({"--verb", "debug"}), 0u);
  EXPECT_EQ(count({"--split", "train"}) + count({"--split", "dev"}), 4u);
  EXPECT_EQ(count({"--min-reward", "1000"}), 0u);
  EXPECT_EQ(count({"--kind", "synthesized"}), 2u);
}

TEST(export_command, says_what_is_wrong_with_its_words) {
  struct {
    std::vector<std::string> words;
    const char* said;
  } cases[] = {{{"--form", "sft", "--kind", "patched"}, "there are: synthesized, repaired"},
               {{"--form", "rl", "--accepted"}, "leave the other filters out"},
               {{"--form", "kernelbench", "--split", "dev"}, "leave the filters out"},
               {{"--form", "sft", "--min-reward", "much"}, "--min-reward 0.5"},
               {{"--form", "sfd"}, "did you mean 'sft'?"},
               {{"--form", "rl", "--on-contamination", "ignore"}, "report"}};
  for (const auto& [words, said] : cases) {
    std::vector<std::string> all{"export", small_run(), "--out", "never"};
    all.insert(all.end(), words.begin(), words.end());
    auto x = kernelmill(all);
    EXPECT_EQ(x.code, 2) << x.err;
    EXPECT_THAT(x.err, HasSubstr(said));
  }
  EXPECT_FALSE(std::filesystem::exists(scratch() + "/never"));
}

TEST(export_command, mixes_no_splits_in_a_stream_whose_rows_do_not_tell_them) {
  for (const auto* form :
       {"trl", "verl", "prime-rl", "skyrl", "tinker", "nemo-gym", "megatron", "harbor"})
    for (const auto& split : {std::vector<std::string>{}, {"--split", "train,dev"}}) {
      std::vector<std::string> words{"export", small_run(), "--form", form, "--out", "-"};
      words.insert(words.end(), split.begin(), split.end());
      auto x = kernelmill(words);
      EXPECT_EQ(x.code, 2) << form;
      EXPECT_THAT(x.err, HasSubstr("add --split train or --split dev")) << form;
      EXPECT_EQ(x.out, "");
    }
  for (const auto* form : {"sft", "trajectories", "preference", "rl"}) {
    auto x = kernelmill({"export", small_run(), "--form", form, "--out", "-"});
    EXPECT_EQ(x.code, x.out.empty() ? 5 : 0) << form;
  }
}

TEST(export_command, names_what_a_form_lacks) {
  auto x = kernelmill({"export", small_run(), "--form", "verl", "--split", "dev", "--out", "-"});
  EXPECT_EQ(x.code, 5);
  EXPECT_THAT(x.err, HasSubstr("token ids"));
  EXPECT_EQ(kernelmill({"export", small_run(), "--form", "kernelbench", "--out", "kb"}).code, 3);
}

// Of the same turns: what show, runs, query and rows say of evidence and quality agrees.
TEST(export_command, has_the_evidence_that_other_commands_show) {
  auto shown = kernelmill({"show", small_run(), "--json"}).document();
  ASSERT_TRUE(shown["evidence"].is_number()) << shown;
  // Whether it is eligible depends on the sandbox of this machine.
  const auto& use = shown["readiness"]["rl_reward_trace"];
  ASSERT_TRUE(use["eligible"].is_boolean()) << shown;
  for (const auto& e : shown["episodes"]) {
    EXPECT_EQ(e["evidence"]["quality"], "positive");
    EXPECT_TRUE(e["evidence"]["sft"]["eligible"].get<bool>());
    // Right, deterministic and built; neither timed nor profiled.
    EXPECT_NEAR(e["evidence"]["score"].get<double>(), 0.35 + 0.20 + 0.10 + 0.05, 1e-9);
  }
  EXPECT_THAT(kernelmill({"show", small_run()}).out,
              HasSubstr(use["eligible"] ? "usable for RL: yes" : "usable for RL: no; "));
  EXPECT_THAT(kernelmill({"show", small_run() + "/g0.e0"}).out,
              HasSubstr("evidence 0.70, positive"));
  double sum = 0;
  auto turns = lines(
      kernelmill({"query", "", small_run(), "--fields", "evidence,quality,turn", "--json"}).out);
  ASSERT_EQ(turns.size(), 4u);
  for (const auto& x : turns) sum += x["evidence"].get<double>();
  auto runs = kernelmill({"runs", "--root", scratch(), "--where", "run=exported", "--json"});
  EXPECT_NEAR(runs.document()["runs"][0]["evidence"].get<double>(), sum / 4, 1e-9) << runs.out;
  for (const auto& row :
       lines(kernelmill({"export", small_run(), "--form", "trajectories", "--out", "-"}).out))
    for (const auto& t : row["turns"]) {
      bool found = false;
      for (const auto& x : turns)
        found = found || (x["turn"] == t["turn"] && x["quality"] == t["quality"] &&
                          x["evidence"] == t["evidence_score"]);
      EXPECT_TRUE(found) << t["quality"];
    }
}

TEST(export_command, ends_when_its_reader_goes_away) {
  auto x = run_program({"/bin/bash", "-c",
                        "set -o pipefail; '" + binary() + "' export " + small_run() +
                            " --form trajectories --out - | head -c 100 > /dev/null"});
  EXPECT_EQ(x.err, "");
}

TEST(left_out_words, have_every_reason_in_words) {
  EXPECT_EQ(commands::left_out_words("open_episodes", 1), "1 episode that has not ended");
  EXPECT_EQ(commands::left_out_words("open_episodes", 3), "3 episodes that have not ended");
  EXPECT_EQ(commands::left_out_words("of_a_later_version", 2), "2 of a later version");
}

} // namespace export_command_test

} // namespace kernelmill::test
