#pragma once

// Files that a test holds byte for byte, and the schemas that are shipped.

#include <cstdlib>
#include <sstream>

#include <gtest/gtest.h>

#include "material.hpp"
#include "storage/files.hpp"
#include "valijson/adapters/nlohmann_json_adapter.hpp"
#include "valijson/schema.hpp"
#include "valijson/schema_parser.hpp"
#include "valijson/validation_results.hpp"
#include "valijson/validator.hpp"

namespace kernelmill::exports::row_fixtures {

/// KERNELMILL_WRITE_GOLDEN=1 writes the file anew; look at the difference.
inline void expect_golden(const std::string& name, const std::string& text) {
  auto path = source_file("tests/unit/export/golden/" + name);
  if (std::getenv("KERNELMILL_WRITE_GOLDEN")) {
    ASSERT_TRUE(write_file(path, text));
    return;
  }
  EXPECT_EQ(text_of_file(path), text) << path;
}

inline void expect_valid(const nlohmann::json& document, const nlohmann::json& value) {
  valijson::Schema rule;
  valijson::SchemaParser{}.populateSchema(valijson::adapters::NlohmannJsonAdapter{document}, rule);
  valijson::ValidationResults wrong;
  valijson::Validator{}.validate(rule, valijson::adapters::NlohmannJsonAdapter{value}, &wrong);
  for (valijson::ValidationResults::Error e; wrong.popError(e);) {
    std::string where;
    for (const auto& part : e.context) where += part;
    ADD_FAILURE() << where << ": " << e.description;
  }
}

/// Each line against a schema of configs/schemas.
inline void expect_valid(const std::string& schema, const std::string& lines) {
  auto document = nlohmann::json::parse(
      text_of_file(source_file("configs/schemas/" + schema + ".schema.json")));
  std::istringstream in{lines};
  for (std::string line; std::getline(in, line);)
    expect_valid(document, nlohmann::json::parse(line));
}

} // namespace kernelmill::exports::row_fixtures
