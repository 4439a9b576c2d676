#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {

namespace {

using testing::HasSubstr;

TEST(doctor, every_finding_that_is_not_ok_says_what_it_costs_and_what_helps) {
  auto x = kernelmill({"doctor", "--json"});
  auto document = x.document();
  ASSERT_TRUE(document.is_object()) << x.err;
  EXPECT_EQ(document["schema_version"], 1);
  EXPECT_EQ(x.code, document["ok"] == true ? 0 : 1);
  std::string names;
  for (const auto& f : document["findings"]) {
    names += f["name"].get<std::string>() + "\n";
    if (f["state"] == "ok") continue;
    EXPECT_NE(f["cost"], "") << f;
    EXPECT_NE(f["detail"], "") << f;
  }
  for (const auto* name : {"cores", "compiler", "bwrap", "sandbox: namespaces", "sandbox: seccomp",
                           "perf events", "runs directory", "disk space", "cuda", "python3"})
    EXPECT_THAT(names, HasSubstr(name));
}

TEST(doctor, a_runs_directory_that_does_not_exist_yet_is_judged_by_the_one_above) {
  auto x = kernelmill({"doctor", "--json", "--dir", "not/yet/there"});
  auto document = x.document();
  for (const auto& f : document["findings"])
    if (f["name"] == "runs directory") {
      EXPECT_EQ(f["state"], "ok");
    }
}

TEST(doctor, runs_on_proc_are_refused) {
  auto x = kernelmill({"doctor", "--json", "--dir", "/proc"});
  auto document = x.document();
  for (const auto& f : document["findings"])
    if (f["name"] == "disk space") {
      EXPECT_NE(f["state"], "ok");
    }
}

} // namespace

} // namespace kernelmill::test
