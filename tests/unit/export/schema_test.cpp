// The schemas that are shipped say what rows are, and the page says what the tables say.

#include <gtest/gtest.h>

#include <filesystem>

#include "golden.hpp"
#include "material.hpp"
#include "storage/files.hpp"

namespace kernelmill::exports {
namespace export_schema_test {

using namespace row_fixtures;

std::string schema_path(form as) {
  return source_file("configs/schemas/export-" + std::string{to_string(as)} + ".schema.json");
}

TEST(reference_page, of_the_fields_is_up_to_date) {
  auto path = source_file("docs/reference/exports.md");
  auto page = text_of_file(path);
  auto start = page.find("\n## sft\n");
  ASSERT_NE(start, std::string::npos);
  if (std::getenv("KERNELMILL_WRITE_GOLDEN")) {
    ASSERT_TRUE(write_file(path, page.substr(0, start) + fields_page()));
    return;
  }
  EXPECT_EQ(page.substr(start), fields_page())
      << "KERNELMILL_WRITE_GOLDEN=1 build/tests/storage_tests writes it anew";
}

// What leaves the store has a name and a version by which a reader knows it again.
TEST(schemas, that_are_shipped_have_an_id_with_a_version) {
  size_t seen = 0;
  for (const auto& file : std::filesystem::directory_iterator{source_file("configs/schemas")}) {
    auto name = file.path().filename().string();
    ASSERT_TRUE(name.ends_with(".schema.json")) << name;
    auto prefix = "urn:kernelmill:schema:" + name.substr(0, name.find('.')) + ":";
    auto id = nlohmann::json::parse(text_of_file(file.path())).value("$id", std::string{});
    ASSERT_TRUE(id.starts_with(prefix)) << name << " has the $id \"" << id << "\"";
    auto version = id.substr(prefix.size());
    EXPECT_TRUE(!version.empty() && version.find_first_not_of("0123456789") == std::string::npos)
        << id;
    ++seen;
  }
  EXPECT_GE(seen, all_forms.size() + 13);
}

class schema : public ::testing::TestWithParam<form> {};

TEST_P(schema, file_is_up_to_date) {
  if (std::getenv("KERNELMILL_WRITE_GOLDEN")) {
    ASSERT_TRUE(write_file(schema_path(GetParam()), json_schema(GetParam())));
  }
  EXPECT_EQ(text_of_file(schema_path(GetParam())), json_schema(GetParam()))
      << "KERNELMILL_WRITE_GOLDEN=1 build/tests/storage_tests writes it anew";
}

TEST_P(schema, holds_for_every_row) {
  auto document = nlohmann::json::parse(json_schema(GetParam()));
  auto rows = rows_of(GetParam(), make_group()).rows;
  ASSERT_FALSE(rows.empty());
  for (const auto& row : rows) expect_valid(document, nlohmann::json::parse(row.dump()));
}

TEST_P(schema, has_the_fields_in_the_order_of_the_rows) {
  auto row = rows_of(GetParam(), make_group()).rows.at(0);
  std::vector<std::string> written, listed;
  for (const auto& [key, value] : row.items()) written.push_back(key);
  for (const auto& x : fields_of(GetParam())) listed.push_back(x.name);
  EXPECT_EQ(written, listed);
}

INSTANTIATE_TEST_SUITE_P(each_form, schema, ::testing::ValuesIn(all_forms), [](const auto& x) {
  auto name = std::string{to_string(x.param)};
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

} // namespace export_schema_test
} // namespace kernelmill::exports
