#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {

namespace config_command_test {

using testing::HasSubstr;
using testing::Not;

const std::string quickstart = source_file("configs/quickstart.json");

TEST(config_command, shows_the_resolved_configuration_with_origins) {
  auto x = kernelmill(
      {"config", "show", "--resolved", "--origin", "--json", quickstart, "tasks.groups=3"});
  ASSERT_EQ(x.code, 0) << x.err;
  auto document = x.document();
  EXPECT_EQ(document["schema_version"], 1);
  EXPECT_EQ(document["config"]["tasks"]["groups"], 3);
  EXPECT_EQ(document["origins"]["tasks.groups"], "the command line");
  EXPECT_EQ(document["origins"]["storage.durable"], "default");
  EXPECT_THAT(document["origins"]["policy.kind"].get<std::string>(), HasSubstr("quickstart.json:"));
}

TEST(config_command, shows_only_what_was_said_without_resolved) {
  auto x = kernelmill({"config", "show", quickstart});
  ASSERT_EQ(x.code, 0) << x.err;
  EXPECT_FALSE(x.document().contains("storage"));
  EXPECT_TRUE(x.document().contains("policy"));
}

TEST(config_command, a_preset_is_found_by_its_name) {
  EXPECT_EQ(kernelmill({"config", "validate", "quickstart"}).code, 0);
}

TEST(config_command, broken_json_names_line_and_column) {
  auto file = write_file("broken.json", "{\n  \"tasks\": {\n    \"groups\": 1,,\n  }\n}\n");
  auto x = kernelmill({"config", "validate", file});
  EXPECT_EQ(x.code, 2);
  EXPECT_THAT(x.err, HasSubstr("broken.json: line 3, column 17"));
  EXPECT_THAT(x.err, HasSubstr("\"groups\": 1,,"));
  EXPECT_EQ(kernelmill({"run", file}).code, 2);
}

TEST(config_command, unknown_keys_are_refused_with_a_suggestion_and_nothing_is_written) {
  auto file = write_file("typo/typo.json", R"({"polcy": {"kind": "scripted"}})");
  program_options there;
  there.directory = scratch() + "/typo";
  auto x = kernelmill({"run", "--json", file}, there);
  EXPECT_EQ(x.code, 2);
  EXPECT_EQ(x.fault()["category"], "config_unknown_key");
  EXPECT_THAT(x.fault()["hint"].get<std::string>(), HasSubstr("did you mean 'policy'?"));
  EXPECT_NE(run_program({"/bin/ls", scratch() + "/typo/runs"}).code, 0);
}

TEST(config_command, a_missing_file_is_3_and_says_which) {
  auto x = kernelmill({"run", "no-such.json"});
  EXPECT_EQ(x.code, 3);
  EXPECT_THAT(x.err, HasSubstr("no-such.json"));
}

TEST(config_command, validate_lists_every_problem) {
  auto x = kernelmill({"config", "validate", "--json", quickstart, "tasks.groups=0",
                       "episode.gama=1", "log.level=loud"});
  EXPECT_EQ(x.code, 2);
  EXPECT_EQ(x.document()["valid"], false);
  EXPECT_EQ(x.document()["problems"].size(), 3u);
}

TEST(config_command, a_list_on_the_command_line_is_shown_as_it_must_be_written) {
  auto x = kernelmill({"config", "validate", "quickstart", "tasks.ids=native/row_sum"});
  EXPECT_EQ(x.code, 2);
  EXPECT_THAT(x.err, HasSubstr(R"('tasks.ids=["native/row_sum"]')"));
  // A shell has taken the quotes.
  x = kernelmill({"config", "validate", "quickstart", "tasks.ids=[native/row_sum, native/gelu]"});
  EXPECT_THAT(x.err, HasSubstr(R"('tasks.ids=["native/row_sum","native/gelu"]')"));
}

TEST(config_command, validate_ends_as_run_does_when_a_file_is_missing) {
  EXPECT_EQ(kernelmill({"config", "validate", "no-such.json"}).code, 3);
}

TEST(config_command, validate_ends_as_run_does_where_a_task_is_not_there) {
  const std::string ids = R"(tasks.ids=["native/row_summ"])";
  auto said = kernelmill({"config", "validate", "quickstart", ids});
  auto run = kernelmill({"run", "quickstart", ids});
  EXPECT_EQ(said.code, run.code);
  EXPECT_EQ(said.err, run.err);
  EXPECT_THAT(said.err, HasSubstr("did you mean 'native/row_sum'?"));
}

TEST(config_command, a_file_of_the_source_that_is_missing_here_names_its_preset) {
  auto x = kernelmill({"run", "configs/quickstart.json"});
  EXPECT_EQ(x.code, 3);
  EXPECT_THAT(x.err, HasSubstr("the preset 'quickstart'"));
}

TEST(config_command, a_wrong_name_of_a_run_is_told_what_names_are_made_of) {
  auto x = kernelmill({"config", "validate", "quickstart", "run.name=a b"});
  EXPECT_EQ(x.code, 2);
  EXPECT_THAT(x.err, HasSubstr("use letters, digits"));
}

TEST(config_command, environment_counts_and_its_mistakes_are_named) {
  program_options options;
  options.environment = {"KERNELMILL_TASKS__GROUPS=6"};
  EXPECT_EQ(kernelmill({"config", "show", quickstart}, options).document()["tasks"]["groups"], 6);
  options.environment = {"KERNELMILL_TASKS__GRUPS=6"};
  auto x = kernelmill({"config", "show", quickstart}, options);
  EXPECT_EQ(x.code, 2);
  EXPECT_THAT(x.err, HasSubstr("KERNELMILL_TASKS__GRUPS"));
}

TEST(config_command, a_pasted_key_is_never_repeated) {
  for (const auto* text : {"policy.api_key_env=sk-TOPSECRET", "policy.api_key=sk-TOPSECRET",
                           "policy.base_url=http://u:TOPSECRET@h"}) {
    auto x = kernelmill({"config", "validate", quickstart, text});
    EXPECT_EQ(x.code, 2);
    EXPECT_THAT(x.err + x.out, Not(HasSubstr("TOPSECRET")));
  }
}

TEST(config_command, the_schema_is_a_document_in_both_forms) {
  EXPECT_TRUE(kernelmill({"config", "schema"}).document().contains("properties"));
  auto wrapped = kernelmill({"config", "schema", "--json"}).document();
  EXPECT_EQ(wrapped["schema_version"], 1);
  EXPECT_TRUE(wrapped["schema"].contains("properties"));
}

TEST(config_command, a_dry_run_prints_what_would_be_run_and_runs_nothing) {
  auto x = kernelmill({"run", "--dry-run", quickstart, "run.dir=dry/one"});
  ASSERT_EQ(x.code, 0) << x.err;
  EXPECT_EQ(x.document()["run"]["name"], "one");
  EXPECT_EQ(x.document()["run"]["dir"], scratch() + "/dry/one");
  EXPECT_NE(run_program({"/bin/ls", scratch() + "/dry"}).code, 0);
}

TEST(config_command, a_preset_that_there_is_not_is_told_with_the_near_one) {
  auto x = kernelmill({"run", "quickstrat", "--json"});
  EXPECT_EQ(x.code, 3);
  EXPECT_THAT(x.err, testing::HasSubstr("did you mean 'quickstart'?"));
  x = kernelmill({"run", "nothing_like_it", "--json"});
  EXPECT_EQ(x.code, 3);
  EXPECT_THAT(x.err, testing::HasSubstr("kernelmill config list"));
}

TEST(config_command, a_setting_without_a_value_is_told_so) {
  auto x = kernelmill({"run", "quickstart", "run.name", "first"});
  EXPECT_EQ(x.code, 3);
  EXPECT_THAT(x.err, testing::HasSubstr("a setting has a value: run.name=VALUE"));
}

TEST(config_command, lists_the_presets_and_each_can_be_used_by_its_name) {
  auto presets = kernelmill({"config", "list", "--json"}).document()["presets"];
  ASSERT_GE(presets.size(), 3u);
  for (const auto& x : presets)
    EXPECT_EQ(kernelmill({"config", "validate", x["name"]}).code, 0) << x["name"];
}

} // namespace config_command_test

} // namespace kernelmill::test
