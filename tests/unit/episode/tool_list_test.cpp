#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "actors/episode/tools/tool_list.hpp"

namespace kernelmill {
namespace tool_list_test {

using nlohmann::json;
using testing::HasSubstr;

std::string why_not(std::string_view name, std::string_view arguments) {
  auto read = read_arguments(*find_tool(name), arguments);
  return read ? "it was taken" : read.error().message;
}

TEST(tool_list, each_kind_has_its_row) {
  for (size_t i = 0; i < all_tools().size(); ++i)
    EXPECT_EQ(static_cast<size_t>(all_tools()[i].kind), i) << all_tools()[i].name;
  EXPECT_EQ(tool_of(tool_kind::submit).name, "submit");
  EXPECT_EQ(find_tool("fly"), nullptr);
}

TEST(tool_list, a_schema_says_what_the_check_of_arguments_wants) {
  for (const auto& x : all_tools()) {
    auto schema = json::parse(schema_of(x));
    EXPECT_EQ(schema["type"], "object");
    EXPECT_EQ(schema["additionalProperties"], false);
    json given = json::object();
    for (auto name : schema.value("required", json::array())) {
      const auto& field = schema["properties"][name.get<std::string>()];
      given[name.get<std::string>()] = field.contains("enum")       ? field["enum"][0]
                                       : field["type"] == "string"  ? json("x")
                                       : field["type"] == "boolean" ? json(true)
                                                                    : json(1);
    }
    EXPECT_TRUE(read_arguments(x, given.dump())) << x.name << " " << given;
    given["surplus"] = 1;
    EXPECT_THAT(why_not(x.name, given.dump()), HasSubstr("surplus"));
  }
}

TEST(tool_arguments, what_is_wrong_is_named) {
  EXPECT_THAT(why_not("eval", "{"), HasSubstr("no JSON"));
  EXPECT_THAT(why_not("eval", "[1]"), HasSubstr("no JSON object"));
  EXPECT_THAT(why_not("eval", R"({"candidate": 3})"),
              HasSubstr("\"candidate\" is to be of type string"));
  EXPECT_THAT(why_not("inspect", R"({"section": "sauce"})"), HasSubstr("one of source, diff"));
  EXPECT_THAT(why_not("inspect", "{}"), HasSubstr("lacks the argument \"section\""));
  EXPECT_THAT(why_not("inspect", R"({"section": "source", "lines": 2.5})"), HasSubstr("integer"));
  EXPECT_THAT(why_not("revert", R"({"candidate": null})"), HasSubstr("string"));
}

TEST(tool_arguments, what_may_be_left_out_may_be_null_or_missing) {
  for (auto given : {"", "{}", "null", R"({"candidate": null})"}) {
    auto read = read_arguments(*find_tool("eval"), given);
    ASSERT_TRUE(read) << given;
    EXPECT_FALSE(read->has("candidate"));
    EXPECT_EQ(read->text("candidate"), "");
    EXPECT_EQ(read->number("lines", 7), 7);
  }
  EXPECT_TRUE(read_arguments(*find_tool("submit"), R"({"confirm": true})")->flag("confirm"));
}

// As Qwen3-Coder's calls have it.
TEST(tool_arguments, numbers_and_flags_may_be_texts) {
  auto read = read_arguments(*find_tool("inspect"), R"({"section": "source", "lines": "12"})");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->number("lines", 0), 12);
  EXPECT_TRUE(read_arguments(*find_tool("submit"), R"({"confirm": "true"})")->flag("confirm"));
  EXPECT_FALSE(read_arguments(*find_tool("submit"), R"({"confirm": "false"})")->flag("confirm"));
  for (auto given : {R"("twelve")", R"("1.5")", R"("")", R"("[12]")", R"("1e3")"})
    EXPECT_THAT(why_not("inspect", fmt::format(R"({{"section": "source", "lines": {}}})", given)),
                HasSubstr("integer"));
  EXPECT_THAT(why_not("submit", R"({"confirm": "yes"})"), HasSubstr("boolean"));
  // A text stays one.
  EXPECT_EQ(read_arguments(*find_tool("note_strategy"), R"({"name": "7", "state": "failed"})")
                ->text("name"),
            "7");
}

// Nothing that a model writes as arguments may take the stack or the time of the node.
TEST(tool_arguments, deep_and_odd_json_is_refused) {
  auto deep = std::string(200'000, '[') + std::string(200'000, ']');
  EXPECT_THAT(why_not("eval", deep), HasSubstr("nested"));
  EXPECT_THAT(why_not("eval", "{\"candidate\": \"\xff\"}"), HasSubstr("no JSON"));
  EXPECT_THAT(why_not("eval", "{\"candidate\": 1e999}"), HasSubstr("no JSON"));
}

} // namespace tool_list_test
} // namespace kernelmill
