// The bundle of a command is that of a turn, in a folder that is whole or absent.

#include "launch/analysis/bundle/command_bundle.hpp"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/unit/bundle/made_turn.hpp"
#include "tests/unit/storage/fixtures.hpp"

namespace kernelmill::bundle_documents_test {

using fixtures::temporary_folder;

bundles::command_material made_command() {
  bundles::command_material x;
  x.command = "eval";
  x.facts = build<wire::TurnFacts>([](wire::TurnFacts::Builder out) {
    out.setTask("native/row_sum");
    out.setCandidateSha256(std::string(64, 'b'));
  });
  x.source = "int x;";
  x.of = {"eval", json::object(), json::object(), "0.1.0", {{"command", {"kernelmill", "eval"}}}};
  x.tools.output = {{"outcome", "accepted"}};
  return x;
}

json read_json_file(const std::string& path) {
  std::ifstream in{path};
  return json::parse(in, nullptr, false);
}

TEST(command_bundle, has_the_files_of_a_turn_and_the_commands_own_document) {
  temporary_folder folder;
  auto out = folder / "new/found";
  ASSERT_TRUE(bundles::leave_command_bundle(made_command(), out));
  for (const auto& [path, ignored] : files_of(made_turn({})))
    EXPECT_TRUE(std::filesystem::exists(out + "/" + path)) << path;
  EXPECT_EQ(read_json_file(out + "/command/output.json")["outcome"], "accepted");
  EXPECT_EQ(read_json_file(out + "/manifest.json")["mode"], "command");
  EXPECT_EQ(read_json_file(out + "/replay/command.json")["command"][1], "eval");
  auto read = bundles::read(out, {}, nullptr, {});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(read->damaged.empty());
  EXPECT_EQ(read->list["form"], "command");
}

TEST(command_bundle, takes_no_folder_that_holds_something) {
  temporary_folder folder;
  std::filesystem::create_directory(folder / "empty");
  EXPECT_TRUE(bundles::leave_command_bundle(made_command(), folder / "empty"));
  auto again = bundles::leave_command_bundle(made_command(), folder / "empty");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().category, "directory_not_empty");
  // What could not be written leaves nothing behind.
  size_t entries = 0;
  for (const auto& ignored : std::filesystem::directory_iterator{folder.path()}) {
    (void)ignored;
    ++entries;
  }
  EXPECT_EQ(entries, 1u);
}

} // namespace kernelmill::bundle_documents_test
