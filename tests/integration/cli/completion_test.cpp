#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {

namespace completion_test {

using testing::HasSubstr;
using testing::Not;

std::string script(const std::string& shell) {
  auto x = kernelmill({"completion", shell});
  EXPECT_EQ(x.code, 0) << x.err;
  return x.out;
}

/// What bash offers after these words.
std::string offered(const std::string& typed) {
  auto file = write_file("complete.bash", script("bash"));
  auto count = std::count(typed.begin(), typed.end(), ' ');
  auto x =
      run_program({"/bin/bash", "-c",
                   "PATH=" + binary().substr(0, binary().rfind('/')) + ":$PATH; . " + file +
                       "; COMP_WORDS=(" + typed + " ''); COMP_CWORD=" + std::to_string(count + 1) +
                       "; _kernelmill; printf '%s\\n' \"${COMPREPLY[@]}\""});
  EXPECT_EQ(x.err, "");
  return x.out;
}

TEST(completion, scripts_parse_in_their_shells) {
  auto bash = run_program({"/bin/bash", "-n", write_file("a.bash", script("bash"))});
  EXPECT_EQ(bash.code, 0) << bash.err;
  for (const auto* shell : {"zsh", "fish"}) {
    auto path = std::string{"/usr/bin/"} + shell;
    if (::access(path.c_str(), X_OK) != 0) continue; // not part of the test packages
    auto x = run_program({path, "-n", write_file(std::string{"a."} + shell, script(shell))});
    EXPECT_EQ(x.code, 0) << x.err;
  }
  EXPECT_THAT(script("zsh"), HasSubstr("#compdef kernelmill"));
  EXPECT_THAT(script("fish"), HasSubstr("complete -c kernelmill"));
}

TEST(completion, bash_offers_nouns_verbs_options_choices_and_tasks) {
  EXPECT_THAT(offered("kernelmill"), HasSubstr("doctor"));
  EXPECT_THAT(offered("kernelmill task"), HasSubstr("check"));
  EXPECT_THAT(offered("kernelmill eval --task"), HasSubstr("native/row_sum"));
  EXPECT_THAT(offered("kernelmill eval --backend"), HasSubstr("cpu"));
  EXPECT_THAT(offered("kernelmill completion"), HasSubstr("fish"));
  EXPECT_THAT(offered("kernelmill run"), HasSubstr("gpu_quickstart"));
  EXPECT_THAT(script("zsh"), HasSubstr(":_kernelmill_configs'"));
  EXPECT_THAT(script("fish"), HasSubstr("-F -a '(kernelmill __complete preset"));
  EXPECT_THAT(offered("kernelmill task show"), HasSubstr("native/softmax"));
  std::filesystem::create_directories(scratch() + "/runs/a_run_of_yesterday");
  EXPECT_THAT(offered("kernelmill show"), HasSubstr("a_run_of_yesterday"));
  EXPECT_THAT(offered("kernelmill eval --task"), Not(HasSubstr("a_run_of_yesterday")));
}

} // namespace completion_test

} // namespace kernelmill::test
