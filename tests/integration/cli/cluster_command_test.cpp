#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {

namespace cluster_command_test {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

std::string read(const std::string& path) {
  std::ifstream in{path};
  return {std::istreambuf_iterator<char>{in}, {}};
}

/// A few letters from the middle of a key, which must be seen nowhere.
std::string secret_of(const std::string& path) {
  auto text = read(path);
  auto begin = text.find('\n') + 1;
  return text.substr(begin, 24);
}

TEST(cluster_command, init_makes_credentials_and_says_what_to_copy) {
  auto directory = scratch() + "/init/cluster";
  auto x = kernelmill({"cluster", "init", "--dir", directory});
  EXPECT_EQ(x.code, 0) << x.err;
  EXPECT_EQ(x.out, directory + "\n");
  for (const auto* name : {"/ca.pem\n", "/node.pem\n", "/node.key\n"})
    EXPECT_THAT(x.err, HasSubstr(directory + name));
  EXPECT_THAT(x.err, Not(HasSubstr(directory + "/ca.key")));
  EXPECT_THAT(x.err, HasSubstr("do not copy ca.key"));
  EXPECT_THAT(x.err, HasSubstr("kernelmill head --listen"));
  EXPECT_THAT(x.err, HasSubstr("kernelmill node --head"));
  for (const auto* key : {"/ca.key", "/node.key"}) {
    ASSERT_TRUE(fs::is_regular_file(directory + key));
    EXPECT_THAT(x.out + x.err, Not(HasSubstr(secret_of(directory + key))));
  }
}

TEST(cluster_command, init_in_json_is_one_document_without_secrets) {
  auto directory = scratch() + "/json/cluster";
  auto x = kernelmill({"cluster", "init", "--dir", directory, "--json"});
  ASSERT_EQ(x.code, 0) << x.err;
  auto document = x.document();
  EXPECT_EQ(document["schema_version"], 1);
  EXPECT_EQ(document["directory"], directory);
  EXPECT_EQ(document["ca_sha256"].get<std::string>().size(), 64u);
  EXPECT_EQ(document["copy"].size(), 3u);
  EXPECT_EQ(document["keep"][0], directory + "/ca.key");
  EXPECT_EQ(x.err, "");
  EXPECT_THAT(x.out, Not(HasSubstr(secret_of(directory + "/node.key"))));
}

TEST(cluster_command, init_refuses_to_make_them_again_with_4) {
  auto directory = scratch() + "/again/cluster";
  ASSERT_EQ(kernelmill({"cluster", "init", "--dir", directory}).code, 0);
  auto before = read(directory + "/node.key");
  auto x = kernelmill({"cluster", "init", "--dir", directory, "--json"});
  EXPECT_EQ(x.code, 4);
  EXPECT_EQ(x.fault()["category"], "credentials_exist");
  EXPECT_THAT(x.fault()["hint"].get<std::string>(), HasSubstr("--dir"));
  EXPECT_EQ(read(directory + "/node.key"), before);
}

TEST(cluster_command, init_without_a_directory_goes_by_the_environment) {
  auto state = scratch() + "/state";
  auto x = kernelmill({"cluster", "init"}, {"", "", {"XDG_STATE_HOME=" + state}});
  EXPECT_EQ(x.code, 0) << x.err;
  EXPECT_EQ(x.out, state + "/kernelmill/cluster\n");
  auto named = scratch() + "/named";
  auto y = kernelmill({"cluster", "init"}, {"", "", {"KERNELMILL_CREDENTIALS=" + named}});
  EXPECT_EQ(y.out, named + "\n");
}

TEST(cluster_command, init_takes_a_relative_directory_and_no_words) {
  fs::create_directories(scratch() + "/here");
  auto x = kernelmill({"cluster", "init", "--dir", "mine/"}, {"", scratch() + "/here", {}});
  EXPECT_EQ(x.out, scratch() + "/here/mine\n") << x.err;
  EXPECT_EQ(kernelmill({"cluster", "init", "word"}).code, 2);
  EXPECT_EQ(kernelmill({"cluster"}).code, 2);
}

} // namespace cluster_command_test

} // namespace kernelmill::test
