#include <iterator>
#include <map>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {

namespace usage_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> words(const std::string& text) {
  std::istringstream in{text};
  return {std::istream_iterator<std::string>{in}, {}};
}

TEST(usage, no_command_prints_help_on_stderr_and_is_2) {
  auto x = kernelmill({});
  EXPECT_EQ(x.code, 2);
  EXPECT_EQ(x.out, "");
  EXPECT_THAT(x.err, HasSubstr("Usage: kernelmill"));
}

TEST(usage, a_misspelt_command_names_the_right_one) {
  auto x = kernelmill({"evla", "--task", "x"});
  EXPECT_EQ(x.code, 2);
  EXPECT_EQ(x.out, "");
  EXPECT_THAT(x.err, HasSubstr("did you mean `kernelmill eval`?"));
}

TEST(usage, a_misspelt_verb_names_the_right_one) {
  EXPECT_THAT(kernelmill({"task", "lst"}).err, HasSubstr("did you mean `kernelmill task list`?"));
  EXPECT_THAT(kernelmill({"task"}).err, HasSubstr("task check"));
}

TEST(usage, a_misspelt_option_names_the_right_one) {
  auto x = kernelmill({"eval", "--tsk", "native/row_sum", "x.cpp"});
  EXPECT_EQ(x.code, 2);
  EXPECT_THAT(x.err, HasSubstr("there is no option '--tsk'"));
  EXPECT_THAT(x.err, HasSubstr("did you mean '--task'?"));
}

TEST(usage, dashes_alone_make_no_option_alike) {
  EXPECT_THAT(kernelmill({"version", "--root"}).err,
              AllOf(HasSubstr("there is no option '--root'"), Not(HasSubstr("--json"))));
}

TEST(usage, a_setting_that_is_written_as_an_option_is_told_how_it_is_written) {
  const std::pair<const char*, const char*> mistakes[] = {
      {"--name", "run.name=VALUE"},
      {"--max-turns", "tasks.max_turns=VALUE"},
      {"--policy.model=big", "policy.model=VALUE"}};
  for (const auto& [typed, meant] : mistakes)
    EXPECT_THAT(kernelmill({"run", "quickstart", typed}).err,
                HasSubstr("settings are written without dashes: " + std::string{meant}));
  EXPECT_THAT(kernelmill({"doctor", "--name"}).err, Not(HasSubstr("run.name")));
}

TEST(usage, of_few_choices_none_is_guessed) {
  auto x = kernelmill({"eval", "--backend", "gpu", "--task", "native/row_sum", "x.cpp"});
  EXPECT_EQ(x.code, 2);
  EXPECT_THAT(x.err, AllOf(HasSubstr("one of auto, cpu, cuda, hip"), Not(HasSubstr("did you"))));
}

TEST(usage, an_option_without_a_command_is_named) {
  auto x = kernelmill({"-v"});
  EXPECT_EQ(x.code, 2);
  EXPECT_THAT(x.err, AllOf(HasSubstr("there is no option '-v'"), Not(HasSubstr("Usage:"))));
}

TEST(usage, places_where_no_run_can_be_are_told_with_a_way_out) {
  write_file("taken/manifest.json", "{}");
  auto run = [](const std::string& place) {
    return kernelmill({"run", "quickstart", "tasks.ids=[\"native/row_sum\"]", "run.dir=" + place});
  };
  auto x = run("taken");
  EXPECT_EQ(x.code, 4);
  EXPECT_THAT(x.err, HasSubstr("choose another run.name or run.dir"));
  x = run("taken/manifest.json/below");
  EXPECT_EQ(x.code, 3);
  EXPECT_THAT(x.err, HasSubstr("choose a path below a writable folder"));
  EXPECT_THAT(kernelmill({"runs", "--root", "nothing_is_here"}).err,
              HasSubstr("no runs in nothing_is_here"));
}

TEST(usage, missing_and_surplus_arguments_are_2_with_a_next_step) {
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"eval"},
           {"eval", "x.cpp"},
           {"show"},
           {"version", "surplus"},
           {"run"},
           {"completion"},
           {"completion", "csh"},
           {"eval", "--task"},
           {"eval", "--task", "a", "--task", "b", "x.cpp"},
           {"doctor", "--color", "blue"},
           {"policy", "scripted", "--script", "x", "--port", "70000"},
           {"--no-such"}}) {
    auto x = kernelmill(arguments);
    EXPECT_EQ(x.code, 2) << testing::PrintToString(arguments);
    EXPECT_EQ(x.out, "") << testing::PrintToString(arguments);
    EXPECT_FALSE(x.err.empty());
  }
}

TEST(usage, errors_under_json_are_one_document_on_stderr) {
  for (const auto& arguments :
       std::vector<std::vector<std::string>>{{"--json", "evla"},
                                             {"eval", "--json"},
                                             {"version", "--jsn", "--json"},
                                             {"--json"},
                                             {"show", "nothing", "--json"}}) {
    auto x = kernelmill(arguments);
    EXPECT_NE(x.code, 0);
    EXPECT_EQ(x.out, "");
    auto fault = x.fault();
    ASSERT_TRUE(fault.is_object()) << x.err;
    for (const auto* key : {"class", "category", "message", "hint"})
      EXPECT_TRUE(fault[key].is_string()) << key;
    EXPECT_NE(fault["hint"], "");
  }
}

// Every command of the table, as `--help` lists them: with what its usage asks for, and without.
TEST(usage, with_json_stderr_holds_one_document_or_nothing) {
  std::vector<std::string> names;
  std::istringstream overview{kernelmill({"--help"}).out};
  for (std::string line; std::getline(overview, line);)
    if (line.starts_with("  ") && !line.starts_with("  kernelmill ") && line.size() > 20)
      names.push_back(line.substr(2, line.find("  ", 2) - 2));
  ASSERT_GE(names.size(), 30u) << testing::PrintToString(names);
  auto source = write_file("json_row_sum.cpp", "int");
  auto batch =
      write_file("json.ndjson", R"({"task": "native/row_sum", "file": "json_row_sum.cpp"})");
  std::map<std::string, std::vector<std::string>> whole{
      {"run",
       {"quickstart", "tasks.ids=[\"native/row_sum\"]", "tasks.group_size=1", "tasks.max_turns=1",
        "run.dir=json_run"}},
      {"resume", {"json_run"}},
      {"eval", {"--task", "native/row_sum", source}},
      {"judge", {batch}},
      {"show", {"json_run"}},
      {"report", {"json_run"}},
      {"task show", {"native/row_sum"}},
      {"task check", {"native/row_sum", "--backend", "cpu"}},
      {"config show", {"quickstart"}},
      {"config validate", {"quickstart"}},
      {"completion", {"bash"}}};
  for (const auto& name : names)
    for (bool full : {true, false}) {
      auto more = whole.find(name);
      if (full && more == whole.end()) continue;
      // These go on until they are ended; tests of their own see to what they say.
      if (name == "head" || name == "node" || name == "serve") continue;
      if (name == "task check" && !full) continue; // all tasks, for minutes
      auto arguments = words(name);
      arguments.emplace_back("--json");
      if (full) arguments.insert(arguments.end(), more->second.begin(), more->second.end());
      auto x = kernelmill(arguments);
      if (full) {
        EXPECT_EQ(x.code, 0) << name << x.err;
      }
      bool told = x.err.empty() || x.fault().is_object();
      EXPECT_TRUE(told) << name << ": " << x.err;
    }
}

TEST(usage, control_bytes_of_arguments_do_not_reach_the_terminal) {
  EXPECT_THAT(kernelmill({"\x1b[31mred"}).err, Not(HasSubstr("\x1b")));
  EXPECT_THAT(kernelmill({"run", "--\x1b[2J"}).err, Not(HasSubstr("\x1b")));
}

TEST(usage, colours_follow_the_flag_and_the_environment) {
  EXPECT_THAT(kernelmill({"show", "nothing", "--color=always"}).err, HasSubstr("\x1b["));
  EXPECT_THAT(kernelmill({"show", "nothing"}).err, Not(HasSubstr("\x1b[")));
  program_options no_colour;
  no_colour.environment = {"CLICOLOR_FORCE=1", "NO_COLOR=1"};
  EXPECT_THAT(kernelmill({"show", "nothing"}, no_colour).err, Not(HasSubstr("\x1b[")));
  program_options forced;
  forced.environment = {"CLICOLOR_FORCE=1"};
  EXPECT_THAT(kernelmill({"show", "nothing"}, forced).err, HasSubstr("\x1b["));
}

TEST(usage, a_stdout_that_is_full_is_an_error) {
  auto x = run_program({"/bin/sh", "-c", binary() + " config schema > /dev/full"});
  EXPECT_EQ(x.code, 1);
  EXPECT_THAT(x.err, HasSubstr("failed to write to stdout"));
}

} // namespace usage_test

} // namespace kernelmill::test
