// What tools leave for the share of turns that keeps it. The tools are shell scripts in real walls;
// there need be no GPU.

#include "gpu/examine/kept_reports.hpp"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/referee/clock.hpp"
#include "gpu/task/device_artifact.hpp"
#include "messages/base/files.hpp"
#include "tests/unit/examine/row_sum.hpp"
#include "tests/unit/toolchain/temporary_directory.hpp"

namespace kernelmill {
namespace kept_reports_test {

namespace fs = std::filesystem;

using testing::ElementsAre;
using testing::StartsWith;

class kept_reports : public testing::Test {
protected:
  kept_reports()
      : processes_(*spawner::launch(std::string{std::getenv("KERNELMILL_BIN_DIR")} +
                                    "/kernelmill-spawner")),
        walls_(processes_) {
    fs::permissions(folder_.path(), fs::perms{0755});
    std::ofstream{artifact()} << pack_device_artifact({"// launch: f<<<1, 1>>>(x, y)\n", "cubin"});
  }

  std::string artifact() const { return folder_.path() + "/artifact"; }

  std::string write_tool(const std::string& name, const std::string& body) {
    auto path = folder_.path() + "/" + name;
    std::ofstream{path} << "#!/bin/sh\n" << body;
    fs::permissions(path, fs::perms{0755});
    return path;
  }

  /// What both steps of a slot make of a right candidate of the backend cuda.
  Message<wire::EvaluateResult> run(const std::string& sanitizer, const std::string& ncu,
                                    bool reports = true, bool correct = true) {
    auto request = build<wire::EvaluateRequest>([&](wire::EvaluateRequest::Builder x) {
      x.setLibraryPath(artifact());
      x.setSanitize(sanitizer.empty() ? "" : "on_accept");
      x.setSanitizeMs(20'000);
      x.setDeadlineMs(40'000);
      x.setReports(reports);
    });
    auto judged = build<wire::EvaluateResult>([&](wire::EvaluateResult::Builder x) {
      x.setCorrect(correct);
      x.setDeterministic(true);
      x.initSpans(1)[0].setName("correctness");
    });
    examine_options options;
    options.program = std::string{std::getenv("KERNELMILL_BIN_DIR")} + "/kernelmill-candidate";
    options.gpu_node = "/dev/none";
    memory_checker by{walls_, options, sanitizer, {}, {}, ncu};
    auto what = row_sum();
    auto view = request.open();
    auto checked = with_memory_checks(by, *what, *view, judged, now_seconds());
    return with_ncu_report(by, *what, *view, checked, now_seconds());
  }

  spawner processes_;
  sandbox walls_;
  temporary_directory folder_;
};

constexpr const char* every_check = "echo '========= ERROR SUMMARY: 0 errors' > $4\n";

TEST_F(kept_reports, are_those_of_each_sanitizer_and_of_ncu) {
  auto csv = read_whole(std::string{std::getenv("KERNELMILL_SOURCE_DIR")} +
                        "/tests/unit/profiler/golden/ncu_two_kernels_by_format.csv");
  ASSERT_TRUE(csv);
  // ncu is told the path of its report as --log-file=PATH.
  auto ncu =
      write_tool("ncu", "for x; do case $x in --log-file=*) out=${x#--log-file=};; esac; done\n"
                        "cat > $out <<'END_OF_REPORT'\n" +
                            *csv + "\nEND_OF_REPORT\n");
  auto result = run(write_tool("compute-sanitizer", every_check), ncu);
  auto x = result.open();
  EXPECT_TRUE(x->getMemory().getComplete());
  std::vector<std::string> names;
  for (auto one : x->getMemory().getReports()) names.emplace_back(one.getName());
  EXPECT_THAT(names, ElementsAre("racecheck.txt", "initcheck.txt", "memcheck.txt", "synccheck.txt",
                                 "ncu.csv"));
  EXPECT_STREQ(x->getMemory().getReports()[0].getText().cStr(),
               "========= ERROR SUMMARY: 0 errors\n");
  ASSERT_EQ(x->getSpans().size(), 3u);
  EXPECT_STREQ(x->getSpans()[2].getName().cStr(), "ncu");
}

TEST_F(kept_reports, are_none_of_other_turns_and_of_wrong_answers) {
  auto sanitizer = write_tool("compute-sanitizer", every_check);
  EXPECT_EQ(run(sanitizer, "/bin/false", false).open()->getMemory().getReports().size(), 0u);
  EXPECT_EQ(run(sanitizer, "/bin/false", true, false).open()->getMemory().getReports().size(), 0u);
}

TEST_F(kept_reports, of_an_ncu_that_fails_say_so_and_change_nothing) {
  for (const auto& ncu : {std::string{}, write_tool("ncu", "echo no GPU here; exit 1\n")}) {
    auto result = run({}, ncu);
    auto x = result.open();
    ASSERT_EQ(x->getMemory().getReports().size(), 1u);
    EXPECT_STREQ(x->getMemory().getReports()[0].getName().cStr(), "ncu.txt");
    EXPECT_THAT(x->getMemory().getReports()[0].getText().cStr(), StartsWith("no report of ncu: "));
    EXPECT_EQ(x->getMemory().getProblems().size(), 0u);
    EXPECT_EQ(x->getFault().getClass(), wire::FaultClass::NONE);
    EXPECT_TRUE(x->getCorrect());
  }
}

TEST(kept_text, has_no_control_bytes_and_an_end) {
  EXPECT_EQ(kept_text("a\tb\n\x1b[31m\xff"), "a\tb\n?[31m?");
  EXPECT_EQ(kept_text(std::string(1 << 20, 'x')).size(), 256u << 10);
}

} // namespace kept_reports_test
} // namespace kernelmill
