#include "launch/config/schema.hpp"
#include "messages/base/json_value.hpp"

#include <filesystem>

#include <gtest/gtest.h>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "launch/config/json_text.hpp"
#include "launch/config/keys.hpp"
#include "launch/config/load.hpp"
#include "tests/unit/config/support.hpp"

namespace kernelmill {

namespace schema_test {

using adapter = valijson::adapters::NlohmannJsonAdapter;

bool conforms(const nlohmann::json& document) {
  auto text = nlohmann::json::parse(config_schema().dump());
  valijson::Schema schema;
  valijson::SchemaParser parser;
  parser.populateSchema(adapter{text}, schema);
  valijson::Validator validator;
  return validator.validate(schema, adapter{document}, nullptr);
}

TEST(config_schema, accepts_the_defaults_and_refuses_what_loading_refuses) {
  auto defaults = nlohmann::json::parse(to_json(run_config{}).dump());
  EXPECT_TRUE(conforms(defaults));
  EXPECT_FALSE(conforms({{"policy", {{"base_ulr", "x"}}}}));
  EXPECT_FALSE(conforms({{"tasks", {{"group_size", 0}}}}));
  EXPECT_FALSE(conforms({{"tasks", {{"group_size", "4"}}}}));
  EXPECT_FALSE(conforms({{"policy", {{"kind", "tgi"}}}}));
  EXPECT_FALSE(conforms({{"policy", {{"sampling", {{"top_p", 0}}}}}}));
}

TEST(config_schema, every_shipped_configuration_conforms_and_loads) {
  size_t count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator{test::source_directory() + "/configs"}) {
    if (entry.path().extension() != ".json" || entry.path().filename() == "kernelmill.schema.json")
      continue;
    ++count;
    auto text = read_json_file(entry.path().string());
    ASSERT_TRUE(text) << render(text.error());
    EXPECT_TRUE(conforms(text->value)) << entry.path();
    config_sources sources;
    sources.files = {entry.path().string()};
    auto loaded = load_config(sources);
    EXPECT_TRUE(loaded) << render(loaded.error());
  }
  EXPECT_GE(count, 1u);
}

TEST(config_schema, the_file_in_configs_is_up_to_date) {
  EXPECT_TRUE(test::read_file(test::source_directory() + "/configs/kernelmill.schema.json") ==
              config_schema().dump(2) + "\n")
      << "run: build/bin/kernelmill config schema > configs/kernelmill.schema.json";
}

TEST(config_reference, the_page_is_up_to_date) {
  EXPECT_TRUE(test::read_file(test::source_directory() + "/docs/reference/configuration.md") ==
              config_reference())
      << "run: build/bin/kernelmill config schema --markdown > docs/reference/configuration.md";
}

} // namespace schema_test

} // namespace kernelmill
