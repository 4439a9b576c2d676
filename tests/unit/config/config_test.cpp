#include "launch/config/load.hpp"
#include "messages/base/json_value.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/config/json_text.hpp"
#include "launch/config/keys.hpp"
#include "tests/unit/config/support.hpp"

namespace kernelmill {

namespace config_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const std::string base = R"({
  // a policy that needs nothing
  "policy": {"kind": "scripted", "script": "script.json"},
  "tasks": {"ids": ["native/row_sum", "native/softmax"], "group_size": 8}
})";

class config : public testing::Test {
protected:
  config() { sources_.files = {scratch_.write("base.json", base)}; }

  resolved_config load() {
    auto x = load_config(sources_);
    if (!x) ADD_FAILURE() << render(x.error());
    return x ? *x : resolved_config{};
  }
  error failure() {
    auto x = load_config(sources_);
    if (x) ADD_FAILURE() << "accepted";
    return x ? error{} : x.error();
  }

  test::scratch_directory scratch_;
  config_sources sources_;
};

TEST(config_keys, those_of_the_machine_are_no_strangers_to_set) {
  std::vector<std::string> of_machine;
  for (const auto& key : config_keys())
    if (key.of_machine) of_machine.push_back(key.name);
  EXPECT_THAT(of_machine,
              testing::UnorderedElementsAre(
                  "run.dir", "tasks.root", "policy.script", "policy.api_key_env",
                  "policy.api_key_file", "policy.ca_file", "retrieval.index", "retrieval.corpus",
                  "retrieval.embedder.api_key_env", "retrieval.embedder.api_key_file",
                  "compile.cache_dir", "compile.compiler", "evaluation.python",
                  "evaluation.determinism_runs", "evaluation.best_kernels", "storage.store",
                  "hooks.url", "hooks.url_env", "hooks.command", "hooks.token_env",
                  "hooks.token_file", "otlp.endpoint", "otlp.headers_env", "otlp.content"))
      << "a new key that names a file, a program, a variable or an address must not be one that an "
         "order over HTTP sets";
}

TEST_F(config, defaults_hold_where_nothing_is_said) {
  auto x = load();
  EXPECT_EQ(x.config.tasks.group_size, 8u);
  EXPECT_EQ(x.config.tasks.max_turns, 4u);
  EXPECT_EQ(x.config.episode.gamma, 0.4);
  EXPECT_EQ(x.origins["tasks.max_turns"], "default");
  EXPECT_THAT(x.origins["tasks.group_size"], HasSubstr("base.json:4"));
}

TEST_F(config, later_files_win_objects_merge_and_lists_replace) {
  sources_.files.push_back(
      scratch_.write("more.json", R"({"tasks": {"ids": ["native/gelu"], "groups": 3}})"));
  auto x = load().config;
  EXPECT_THAT(x.tasks.ids, ElementsAre("native/gelu"));
  EXPECT_EQ(x.tasks.groups, 3u);
  EXPECT_EQ(x.tasks.group_size, 8u);
}

TEST_F(config, overrides_win_over_environment_and_that_over_files) {
  sources_.environment = {{"KERNELMILL_TASKS__GROUP_SIZE", "16"},
                          {"KERNELMILL_TASKS__GROUPS", "5"}};
  sources_.overrides = {"tasks.groups=7"};
  auto x = load();
  EXPECT_EQ(x.config.tasks.group_size, 16u);
  EXPECT_EQ(x.config.tasks.groups, 7u);
  EXPECT_EQ(x.origins["tasks.group_size"], "environment KERNELMILL_TASKS__GROUP_SIZE");
  EXPECT_EQ(x.origins["tasks.groups"], "the command line");
}

TEST_F(config, overrides_take_json_or_plain_text) {
  sources_.overrides = {"tasks.ids=[\"a\",\"b\"]", "policy.model=Qwen/Qwen3-8B", "run.name=7",
                        "+policy.stream=true", "reward.speed=null"};
  auto x = load().config;
  EXPECT_THAT(x.tasks.ids, ElementsAre("a", "b"));
  EXPECT_EQ(x.policy.model, "Qwen/Qwen3-8B");
  EXPECT_EQ(x.run.name, "7");
  EXPECT_TRUE(x.policy.stream);
  EXPECT_FALSE(x.reward.speed);
}

TEST_F(config, a_tilde_takes_a_key_or_a_section_back_to_its_default) {
  sources_.overrides = {"~tasks.group_size"};
  EXPECT_EQ(load().config.tasks.group_size, 4u);
  sources_.overrides = {"~tasks"};
  EXPECT_THAT(load().config.tasks.ids, ElementsAre("*"));
}

TEST_F(config, an_unknown_key_names_file_line_and_the_key_that_was_meant) {
  sources_.files.push_back(
      scratch_.write("typo.json", "{\n \"policy\": {\n  \"base_ulr\": \"x\"}}"));
  auto e = failure();
  EXPECT_EQ(e.category, "config_unknown_key");
  EXPECT_THAT(e.message, HasSubstr("typo.json:3: unknown key 'policy.base_ulr'"));
  EXPECT_THAT(e.hint, HasSubstr("did you mean 'policy.base_url'?"));
}

TEST_F(config, unknown_overrides_and_variables_are_refused) {
  sources_.overrides = {"group_size=2"};
  EXPECT_THAT(failure().hint, HasSubstr("tasks.group_size"));
  sources_.overrides.clear();
  sources_.environment = {{"KERNELMILL_POLICY__MODLE", "x"}};
  EXPECT_THAT(failure().message, HasSubstr("KERNELMILL_POLICY__MODLE"));
}

TEST_F(config, variables_of_other_purposes_are_left_alone) {
  sources_.environment = {{"KERNELMILL_HOME", "/x"}, {"KERNELMILL_SOURCE_DIR", "/y"}};
  load();
}

TEST_F(config, a_number_that_no_double_holds_is_named_with_its_place) {
  auto x = parse_json_text("run.json", "{\n  \"episode\": {\"gamma\": 1e999}\n}");
  ASSERT_FALSE(x);
  EXPECT_EQ(x.error().category, "config_syntax");
  EXPECT_THAT(x.error().message, HasSubstr("run.json: line 2, column 24: the number 1e999"));
}

TEST_F(config, wrong_types_and_ranges_are_refused_with_the_place) {
  for (const auto* text :
       {"tasks.group_size=0", "tasks.group_size=2.5", "tasks.group_size=many",
        "tasks.group_size=true", "tasks.group_size=1e99", "tasks.ids=7", "tasks.ids=[1]",
        "policy.sampling.top_p=0", "policy.stream=1", "policy.kind=tgi", "episode.gamma=1.5",
        "run.name=../x", "evaluation.seed=abc", "evaluation.required_layers=[\"seccom\"]",
        "reward.format=\"x\""}) {
    sources_.overrides = {text};
    auto e = failure();
    EXPECT_EQ(e.category, "config_invalid_value") << text;
    EXPECT_THAT(e.message, HasSubstr("the command line")) << text;
  }
}

TEST_F(config, a_wrong_choice_names_the_closest_one) {
  sources_.overrides = {"policy.kind=sglan"};
  EXPECT_THAT(failure().message, HasSubstr("did you mean 'sglang'?"));
}

TEST_F(config, a_section_given_as_a_value_is_refused) {
  sources_.overrides = {"policy=3"};
  EXPECT_EQ(failure().category, "config_wrong_type");
  sources_.overrides.clear();
  sources_.files.push_back(scratch_.write("flat.json", R"({"policy": 3})"));
  EXPECT_EQ(failure().category, "config_wrong_type");
}

TEST_F(config, an_address_that_a_script_would_not_ask_is_refused) {
  sources_.overrides = {"policy.base_url=http://127.0.0.1:8000/v1"};
  auto e = failure();
  EXPECT_EQ(e.category, "config_inconsistent");
  EXPECT_THAT(e.message, HasSubstr("policy.kind is scripted"));
}

TEST_F(config, timeouts_nest) {
  sources_.overrides = {"episode.turn_deadline_ms=60000"};
  auto e = failure();
  EXPECT_EQ(e.category, "config_inconsistent");
  EXPECT_THAT(e.message, HasSubstr("policy.timeout_ms"));
  sources_.overrides = {"episode.deadline_ms=900000"};
  EXPECT_THAT(failure().message, HasSubstr("episode.turn_deadline_ms"));
}

TEST_F(config, a_policy_kind_without_what_it_needs_is_refused) {
  sources_.overrides = {"policy.kind=vllm"};
  EXPECT_THAT(failure().message, HasSubstr("policy.base_url"));
  sources_.overrides = {"~policy.script"};
  EXPECT_THAT(failure().message, HasSubstr("policy.script"));
}

TEST_F(config, a_key_pasted_as_a_value_never_shows_in_a_message) {
  for (const auto* text :
       {"policy.api_key_env=sk-SECRET-1", "policy.base_url=http://me:SECRET@h/v1",
        "policy.base_url=SECRET", "policy.api_key=SECRET"}) {
    sources_.overrides = {text};
    EXPECT_THAT(render(failure()), Not(HasSubstr("SECRET"))) << text;
  }
}

TEST_F(config, all_problems_are_reported_together) {
  sources_.overrides = {"tasks.group_size=0", "episode.gamma=2", "nothing.like_it=1"};
  EXPECT_EQ(examine_config(sources_).problems.size(), 3u);
  EXPECT_THAT(failure().hint, HasSubstr("2 more problems"));
}

TEST_F(config, paths_start_at_the_file_that_says_them) {
  sources_.directory = "/work/dir";
  sources_.overrides = {"run.dir=out/x", "tasks.root=/abs/./tasks"};
  auto x = load().config;
  EXPECT_EQ(x.policy.script, scratch_.path() + "/script.json");
  EXPECT_EQ(x.run.dir, "/work/dir/out/x");
  EXPECT_EQ(x.tasks.root, "/abs/tasks");
}

TEST_F(config, what_is_written_reads_back_as_the_same) {
  sources_.overrides = {"reward.correct=0.7", "policy.sampling.stop=[\"</KERNEL>\"]",
                        "run.seed=9007199254740991"};
  auto x = load().config;
  auto written = to_json(x).dump(2);
  config_sources again;
  again.files = {scratch_.write("saved/config.json", written)};
  auto y = load_config(again);
  ASSERT_TRUE(y) << render(y.error());
  EXPECT_EQ(to_json(y->config).dump(2), written);
}

TEST_F(config, lists_grow_and_values_come_from_files) {
  sources_.overrides = {"tasks.ids+=native/gelu", "tasks.ids+=[\"a\", \"b\"]", "tasks.ids+=c,d"};
  EXPECT_THAT(load().config.tasks.ids,
              ElementsAre("native/row_sum", "native/softmax", "native/gelu", "a", "b", "c", "d"));
  auto ids = scratch_.write("ids.txt", "# mine\nnative/gelu\n\n  native/matmul \r\n");
  sources_.overrides = {"tasks.ids=@" + ids, "policy.model=@" + scratch_.write("model", "big\n")};
  auto x = load().config;
  EXPECT_THAT(x.tasks.ids, ElementsAre("native/gelu", "native/matmul"));
  EXPECT_EQ(x.policy.model, "big");
  sources_.overrides = {"tasks.ids+=@" + ids, "policy.model=\"@here\""};
  EXPECT_EQ(load().config.tasks.ids.size(), 4u);
  EXPECT_EQ(load().config.policy.model, "@here");
  sources_.overrides = {"tasks.ids=@/nowhere"};
  EXPECT_THAT(render(load_config(sources_).error()), HasSubstr("/nowhere"));
  sources_.overrides = {"tasks.groups+=2"};
  EXPECT_THAT(render(load_config(sources_).error()), HasSubstr("is no list"));
}

TEST_F(config, of_the_user_lies_below_all_files) {
  sources_.user_file = scratch_.write("own.json", R"({"tasks": {"group_size": 2, "groups": 3}})");
  auto x = load();
  EXPECT_EQ(x.config.tasks.group_size, 8u);
  EXPECT_EQ(x.config.tasks.groups, 3u);
  EXPECT_THAT(x.origins["tasks.groups"], HasSubstr("own.json"));
}

TEST_F(config, the_digest_ignores_only_the_name_and_place_of_the_run) {
  auto x = load().config;
  auto digest = config_digest(x);
  x.run.name = "other";
  x.run.dir = "/elsewhere";
  EXPECT_EQ(config_digest(x), digest);
  x.tasks.groups = 9;
  EXPECT_NE(config_digest(x), digest);
}

TEST(overrides, are_told_from_files) {
  for (const auto* text : {"a.b=c", "+a.b=c", "~a.b", "a=", "a.b=c/d.json", "a.b+=c", "a.b=@c"})
    EXPECT_TRUE(is_override(text)) << text;
  for (const auto* text : {"a.json", "./a=b.json", "a/b=c", "", "+", "=x", "+=x", "configs/x.json"})
    EXPECT_FALSE(is_override(text)) << text;
}

TEST(keys, every_default_passes_its_own_check) {
  for (const auto& key : config_keys())
    EXPECT_EQ(check_value(key, key.default_value()), "") << key.name;
}

TEST(keys, names_are_unique_documented_and_snake_case) {
  std::set<std::string> seen;
  for (const auto& key : config_keys()) {
    EXPECT_TRUE(seen.insert(key.name).second) << key.name;
    EXPECT_GT(key.doc.size(), 10u) << key.name;
    EXPECT_EQ(key.doc.back(), '.') << key.name;
    EXPECT_EQ(key.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_."),
              std::string::npos);
    EXPECT_EQ(key.choices.size() != 1 || key.name == "evaluation.contract", true) << key.name;
  }
}

} // namespace config_test

} // namespace kernelmill
