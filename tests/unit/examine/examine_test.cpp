// Tools that are shell scripts, in real walls; there need be no GPU.

#include "gpu/examine/examine.hpp"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/task/device_artifact.hpp"
#include "tests/unit/examine/row_sum.hpp"
#include "tests/unit/toolchain/temporary_directory.hpp"

namespace kernelmill {
namespace examine_test {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string programs() {
  return std::getenv("KERNELMILL_BIN_DIR");
}

class a_tool : public testing::Test {
protected:
  a_tool() : processes_(*spawner::launch(programs() + "/kernelmill-spawner")), walls_(processes_) {
    options_.program = programs() + "/kernelmill-candidate";
    options_.gpu_node = "/dev/none";
    options_.limit_ms = 20'000;
  }

  std::string write_tool(const std::string& name, const std::string& body) {
    auto path = folder_.path() + "/" + name;
    std::ofstream{path} << "#!/bin/sh\n" << body;
    fs::permissions(path, fs::perms{0755});
    fs::permissions(folder_.path(), fs::perms{0755});
    return path;
  }

  lone_files files() {
    what_ = row_sum();
    return *lay_out(*what_, pack_device_artifact({"// launch: f<<<1, 1>>>(x, y)\n", "cubin"}),
                    shown_cases(*what_), 1, {});
  }

  spawner processes_;
  sandbox walls_;
  temporary_directory folder_;
  examine_options options_;
  task_ptr what_;
};

TEST_F(a_tool, runs_around_the_program_inside_the_walls_and_reports_beside_what_is_printed) {
  auto tool = write_tool("tool", "echo report > $1; shift\n"
                                 "test -e /etc/passwd && echo sees the machine\n"
                                 "echo home $HOME; echo x > $HOME/file && echo writes there\n"
                                 "\"$@\"; echo ended with $?\n");
  auto x = examine(walls_, options_, {tool, report_path()}, files());
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_EQ(x->report, "report\n");
  EXPECT_FALSE(x->timed_out);
  EXPECT_THAT(x->said, AllOf(HasSubstr("home /tmp"), HasSubstr("writes there"),
                             Not(HasSubstr("sees the machine"))));
  if (!fs::exists("/dev/nvidiactl")) {
    EXPECT_THAT(x->said, AllOf(HasSubstr("kernelmill-candidate: failed to use the GPU"),
                               HasSubstr("ended with 120")));
  }
}

TEST_F(a_tool, that_does_not_end_is_ended) {
  options_.limit_ms = 3'000; // in which it must have begun, behind others on a busy machine
  auto tool = write_tool("tool", "echo begun > $1; (sleep 1000) & sleep 1000\n");
  auto x = examine(walls_, options_, {tool, report_path()}, files());
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_TRUE(x->timed_out);
  EXPECT_EQ(x->report, "begun\n");
  EXPECT_LT(x->seconds, 100);
}

TEST_F(a_tool, that_is_not_there_is_named) {
  auto x = examine(walls_, options_, {"/no/such/tool"}, files());
  ASSERT_FALSE(x);
  EXPECT_EQ(x.error().category, "tool_missing");
}

TEST_F(a_tool, that_refuses_a_metric_is_asked_without_it) {
  auto ncu = write_tool("ncu", R"(
for x; do case $x in --log-file=*) log=${x#--log-file=};; --metrics=*) metrics=$x;; esac; done
case $metrics in *dram__throughput*)
  echo "==ERROR== Failed to find metric dram__throughput.avg.pct_of_peak_sustained_elapsed" > $log
  exit 1;; esac
{ echo '"ID","Kernel Name","gpu__time_duration.sum"'; echo '"","","ns"'; echo '"0","f","2,000"'; } > $log
)");
  auto x = examine_by_ncu(walls_, options_, {ncu, metric_pack::quick, {}}, 5, files());
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_EQ(x->report.problem, ncu_problem::none) << x->run.report << x->run.said;
  EXPECT_THAT(x->refused, ElementsAre("dram__throughput.avg.pct_of_peak_sustained_elapsed"));
  ASSERT_EQ(x->report.kernels.size(), 1u);
  EXPECT_EQ(x->report.kernels[0].metrics.values[metric::time], 2);
}

TEST_F(a_tool, that_is_made_to_try_again_has_one_limit_for_all_tries) {
  options_.limit_ms = 1'500;
  // Each time another name, as device code could print them.
  auto ncu = write_tool("ncu", R"(
for x; do case $x in --metrics=*) metrics=${x#--metrics=};; esac; done
echo "==ERROR== Failed to find metric ${metrics%%,*}"
sleep 1
exit 1
)");
  auto x = examine_by_ncu(walls_, options_, {ncu, metric_pack::full, {}}, 5, files());
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_TRUE(x->run.timed_out);
  EXPECT_LE(x->refused.size(), 2u);
}

TEST_F(a_tool, that_lies_among_what_is_private_is_not_shown_with_it) {
  auto tool = write_tool("tool", "true\n");
  ::setenv("HOME", folder_.path().c_str(), 1);
  auto x = examine(walls_, options_, {tool}, files());
  ASSERT_FALSE(x);
  EXPECT_THAT(x.error().message, HasSubstr("would see all of " + folder_.path()));
}

TEST_F(a_tool, of_device_code_profiles_all_and_keeps_what_has_the_name) {
  auto ncu = write_tool("ncu", R"sh(
for x; do case $x in --log-file=*) log=${x#--log-file=};; esac; done
echo "$@"
{ echo '"ID","Kernel Name","gpu__time_duration.sum"'; echo '"","","ns"'
  echo '"0","sums(int)","2,000"'; echo '"1","total(int)","3,000"'; } > $log
)sh");
  auto x = examine_by_ncu(walls_, options_, {ncu, metric_pack::quick, "^tot"}, 5, files());
  ASSERT_TRUE(x) << render(x.error());
  ASSERT_EQ(x->report.kernels.size(), 1u);
  EXPECT_EQ(x->report.kernels[0].metrics.kernel, "total(int)");
  EXPECT_THAT(x->run.said, AllOf(HasSubstr("--launch-skip=4"), Not(HasSubstr("--kernel-name="))));
  auto none = examine_by_ncu(walls_, options_, {ncu, metric_pack::quick, "other"}, 5, files());
  EXPECT_EQ(none->report.problem, ncu_problem::no_kernels);
  auto bad = examine_by_ncu(walls_, options_, {ncu, metric_pack::quick, "(("}, 5, files());
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().category, "usage");
}

// How many kernels it launches is unknown.
TEST_F(a_tool, of_a_library_profiles_what_lies_between_its_marks) {
  auto what = row_sum(contract_kind::native);
  auto laid = lay_out_library(*what, "a library", {what->timed_cpu}, 3, {});
  ASSERT_TRUE(laid) << render(laid.error());
  EXPECT_TRUE(laid->marks_last);
  auto ncu = write_tool("ncu", "echo \"$@\"\n");
  auto x = examine_by_ncu(walls_, options_, {ncu, metric_pack::quick, "sum"}, 3, *laid);
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_THAT(x->run.said,
              AllOf(HasSubstr("--profile-from-start=off"), HasSubstr("--launch-count=64"),
                    HasSubstr("--kernel-name=regex:sum"), Not(HasSubstr("--launch-skip"))));
}

TEST_F(a_tool, that_may_not_read_counters_says_so_beside_its_report) {
  auto ncu = write_tool("ncu", "echo '==ERROR== ERR_NVGPUCTRPERM - no permission'; exit 1\n");
  auto x = examine_by_ncu(walls_, options_, {ncu, metric_pack::full, {}}, 5, files());
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_EQ(x->report.problem, ncu_problem::no_permission);
}

TEST_F(a_tool, is_not_believed_by_what_the_program_prints) {
  auto sanitizer = write_tool("compute-sanitizer", R"sh(
[ "$1 $2 $3" = "--tool racecheck --log-file" ] || exit 9
echo "========= Invalid __global__ write of size 4 bytes"
echo "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)" > $4
)sh");
  auto x = examine_by_sanitizer(walls_, options_, sanitizer, "racecheck", files());
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_EQ(x->report.problem, sanitizer_problem::none) << x->run.said;
  EXPECT_TRUE(x->report.findings.empty());
}

TEST(take_refused, takes_whole_names_alone) {
  std::vector<std::string> metrics{"a__b.sum", "a__b.sum_more", "c__d.avg"};
  EXPECT_THAT(take_refused("no metric a__b.sum here", metrics), ElementsAre("a__b.sum"));
  EXPECT_THAT(metrics, ElementsAre("a__b.sum_more", "c__d.avg"));
}

} // namespace examine_test
} // namespace kernelmill
