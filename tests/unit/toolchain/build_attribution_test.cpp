#include "gpu/toolchain/build_attribution.hpp"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "gpu/toolchain/control_source.hpp"
#include "gpu/toolchain/header_stamp.hpp"
#include "tests/unit/toolchain/temporary_directory.hpp"

namespace kernelmill {
namespace build_attribution_test {

using testing::HasSubstr;
using testing::Not;

compiler_outcome failed_with(const std::string& text) {
  compiler_outcome x;
  x.status = {1, 0};
  x.text = text;
  return x;
}

build_evidence evidence(const std::string& text) {
  return evidence_of(failed_with(text), {"kernel.cpp", "relu.cpp_sources"});
}

TEST(evidence, of_the_source_is_an_error_in_its_own_lines) {
  for (const auto* text :
       {"kernel.cpp:2:10: error: 'z' was not declared in this scope\n",
        "/build/kernel.cpp:2:10: error: expected ';'\n",
        "relu.cpp_sources:2:1: error: expected ';'\n", "kernel.cpp(2): error: expected a \";\"\n",
        "kernel.cpp:1:10: fatal error: cutlass/gemm.h: No such file or directory\n",
        "kernel.cpp:1:10: fatal error: 'cutlass/gemm.h' file not found\n",
        // A line that is quoted says nothing.
        "kernel.cpp:2:3: error: expected ';'\n    2 | // Permission denied, License\n"})
    EXPECT_EQ(evidence(text), build_evidence::source) << text;
  EXPECT_EQ(evidence("/usr/include/c++/12/bits/stl_algo.h:9:1: error: no match for 'operator<'\n"
                     "kernel.cpp:7:3:   required from here\n"),
            build_evidence::source);
}

TEST(evidence, of_a_machine_are_its_words_or_none) {
  for (const auto* text :
       {"", "kernel.cpp: In function 'f':\n",
        "g++: fatal error: cannot execute 'cc1plus': vfork: Resource temporarily unavailable\n",
        "kernel.cpp:1:10: fatal error: omp.h: No such file or directory\n",
        "relu.cpp_sources:1:10: fatal error: torch/extension.h: No such file or directory\n",
        "/usr/include/c++/12/cmath:3:1: fatal error: made/up.h: No such file or directory\n",
        "/usr/include/stdio.h:5:1: error: expected ';'\n",
        "kernel.cpp:9:1: internal compiler error: Segmentation fault\n",
        "kernel.cpp(1): catastrophic error: cannot open source file \"cuda_fp16.h\"\n",
        "as: fatal error: /tmp/x.o: No space left on device\n",
        "cc1plus: out of memory allocating 65536 bytes\n", "ld: cannot find -lgomp\n",
        "kernel.cpp:1:10: fatal error: cannot read header: Input/output error\n"})
    EXPECT_EQ(evidence(text), build_evidence::machine) << text;
}

TEST(evidence, is_unclear_where_the_linker_says_it) {
  EXPECT_EQ(evidence("/usr/bin/ld: /tmp/x.o: undefined reference to `missing()'\n"),
            build_evidence::unclear);
}

struct tries {
  int builds = 0, controls = 0;
  expected<void> run(build_evidence says, int fails, int control_fails_at = 0) {
    return attribute({[&, fails]() -> std::optional<build_evidence> {
                        if (++builds > fails) return std::nullopt;
                        return says;
                      },
                      [&, control_fails_at]() -> expected<void> {
                        if (++controls == control_fails_at)
                          return infrastructure_error("toolchain_failed", "no");
                        return {};
                      }});
  }
};

TEST(evidence, is_unclear_where_the_time_was_over_and_no_core_was_wanted) {
  auto late = [](double worked, bool wants_more) {
    auto x = failed_with("");
    x.timed_out = true;
    x.seconds = 5;
    x.cores = {worked, wants_more, false};
    return evidence_of(x, std::vector<std::string>{"kernel.cpp"});
  };
  EXPECT_EQ(late(0.1, false), build_evidence::unclear); // it waits for a process, say
  EXPECT_EQ(late(4.9, true), build_evidence::source);
  EXPECT_EQ(late(4.9, false), build_evidence::source);
  EXPECT_EQ(late(0.1, true), build_evidence::source); // told apart as machine_busy
}

TEST(attribution, asks_no_control_where_the_source_says_it) {
  tries x;
  EXPECT_TRUE(x.run(build_evidence::source, 100));
  EXPECT_EQ(x.builds, 1);
  EXPECT_EQ(x.controls, 0);
}

TEST(attribution, of_a_machine_that_fails_at_a_control_is_the_machines) {
  for (int at : {1, 3}) {
    tries x;
    auto whose = x.run(build_evidence::machine, 100, at);
    ASSERT_FALSE(whose);
    EXPECT_EQ(whose.error().cls, fault_class::infrastructure);
    EXPECT_EQ(x.controls, at);
  }
}

TEST(attribution, of_a_fault_that_has_gone_leaves_a_library) {
  tries x;
  EXPECT_TRUE(x.run(build_evidence::machine, 2));
  EXPECT_EQ(x.builds, 3);
}

TEST(attribution, is_the_sources_after_controls_that_all_were_built) {
  tries words, linker;
  EXPECT_TRUE(words.run(build_evidence::machine, 100));
  EXPECT_EQ(words.builds, 6);
  EXPECT_EQ(words.controls, 5);
  EXPECT_TRUE(linker.run(build_evidence::unclear, 100));
  EXPECT_EQ(linker.builds, 2);
  EXPECT_EQ(linker.controls, 1);
}

TEST(a_control_that_fails, names_what_to_install_or_what_is_wrong) {
  auto fault = [](const char* text) { return fault_of_control(failed_with(text), "ours"); };
  auto torch = fault("kernelmill_control.cpp_sources:1:10: fatal error: torch/extension.h: No such "
                     "file or directory\ncompilation terminated.\n");
  EXPECT_EQ(torch.cls, fault_class::infrastructure);
  EXPECT_EQ(torch.category, "toolchain_missing");
  EXPECT_THAT(torch.hint, HasSubstr("libtorch-dev"));
  EXPECT_THAT(torch.message, HasSubstr("torch/extension.h"));
  EXPECT_THAT(fault("x.cu:1:10: fatal error: cuda_fp16.h: No such file or directory\n").hint,
              HasSubstr("CUDA toolkit"));
  EXPECT_THAT(fault("/usr/bin/ld: cannot find -lgomp: No such file or directory\n").hint,
              HasSubstr("libgomp1"));
  auto full = fault("as: /tmp/x.o: No space left on device\n");
  EXPECT_EQ(full.category, "toolchain_failed");
  EXPECT_THAT(full.message, HasSubstr("No space left on device"));
  EXPECT_EQ(fault("g++: fatal error: Killed signal terminated program cc1plus\n").category,
            "compiler_killed");
}

TEST(a_control_source, has_the_headers_of_the_toolchain_that_the_source_has) {
  auto text = control_source(control_kind::host, "#include <vector>\n # include \"omp.h\"\n"
                                                 "#include <cutlass/gemm.h>\n#define int float\n");
  EXPECT_THAT(text, HasSubstr("#include <vector>\n#include <omp.h>\n"));
  EXPECT_THAT(text, Not(HasSubstr("cutlass")));
  EXPECT_THAT(text, Not(HasSubstr("#define")));
  EXPECT_THAT(control_source(control_kind::cuda, "#include <mma.h>\n"), HasSubstr("<<<1, 32>>>"));
  EXPECT_THAT(
      control_source(control_kind::device, "#include <vector>\n#include <mma.h>\n"),
      testing::AllOf(HasSubstr("<mma.h>"), Not(HasSubstr("vector")), Not(HasSubstr("<<<"))));
}

TEST(a_stamp, is_another_after_an_installation) {
  temporary_directory place;
  std::filesystem::create_directories(place.path() + "/torch");
  std::ofstream{place.path() + "/torch/types.h"} << "old";
  auto before = stamp_of({place.path()});
  EXPECT_EQ(stamp_of({place.path()}), before);
  std::ofstream{place.path() + "/torch/extension.h"} << "new";
  auto installed = stamp_of({place.path()});
  EXPECT_NE(installed, before);
  std::filesystem::last_write_time(place.path() + "/torch/types.h",
                                   std::filesystem::file_time_type{});
  EXPECT_NE(stamp_of({place.path()}), installed);
  EXPECT_EQ(stamp_of({place.path() + "/none"}), stamp_of({}));
}

} // namespace build_attribution_test
} // namespace kernelmill
