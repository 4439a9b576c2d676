// The GPU code of a Python module. Tools are scripts that print what nvdisasm and cuobjdump do;
// where the real ones are installed, they are asked, too.

#include "gpu/inspect/module_listing.hpp"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "messages/base/base64.hpp"
#include "tests/unit/inspect/golden_listing.hpp"
#include "tests/unit/toolchain/temporary_directory.hpp"
#include "tests/unit/toolchain/toolchain_fixture.hpp"

namespace kernelmill {
namespace module_listing_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* nvdisasm_script = R"(#!/bin/sh
case "$*" in
*-lrm*)
  echo '             // | GPR   |'
  echo '.text._Z4reluPf: // |       |'
  echo '/*0000*/ LDG.E R2, desc[UR4][R2.64] ; // |   3   |'
  ;;
*)
  echo '.text._Z4reluPf:'
  echo '//## File "relu_mod.cuda_sources", line 2'
  echo '/*0000*/ LDG.E R2, desc[UR4][R2.64] ;'
  ;;
esac
)";

constexpr const char* cuobjdump_script = R"(#!/bin/sh
case "$*" in
*--dump-resource-usage*) echo ' Function relu_kernel:'; echo '  REG:16 STACK:0 SHARED:512 LOCAL:0' ;;
*) echo 'Function : relu_kernel'; echo '/*0000*/ EXIT ;' ;;
esac
)";

class module_listing : public testing::Test {
protected:
  module_listing() : processes_(*spawner::launch(spawner_program())), walls_(processes_) {}

  std::string script(const char* name, const char* text) {
    auto path = folder_.path() + "/" + name;
    std::ofstream{path} << text;
    std::filesystem::permissions(path, std::filesystem::perms{0755});
    return path;
  }

  std::vector<listed_code> codes(const listing_tools& tools, const listed_module& x) {
    missing_.clear();
    return code_of_module(walls_, tools, x, "def relu(): pass\n", missing_);
  }

  static listed_module with_triton(const std::string& cubin) {
    listed_module x;
    x.triton_files = {{"HASH/relu_kernel.ptx", to_base64(".version 9.0\n")},
                      {"HASH/relu_kernel.ttir", to_base64("module {}")},
                      {"HASH/relu_kernel.llir", to_base64("; ModuleID")},
                      {"HASH/relu_kernel.json", to_base64("{}")},
                      {"OTHER/no_ptx.ttir", to_base64("module {}")},
                      {"BAD/not_base64.ptx", "!"},
                      {"no dot", to_base64("x")}};
    if (!cubin.empty()) x.triton_files["HASH/relu_kernel.cubin"] = to_base64(cubin);
    return x;
  }

  temporary_directory folder_;
  spawner processes_;
  sandbox walls_;
  std::vector<std::string> missing_;
};

TEST_F(module_listing, has_each_cuda_source_with_its_listings_and_live_registers) {
  listed_module x;
  x.extensions = {{"relu_mod.cuda_sources", "// one\nx[i];\n", "ptx text", "cubin bytes",
                   "ptxas info    : Compiling entry function '_Z4reluPf' for 'sm_90'\n"
                   "ptxas info    : Used 10 registers, used 0 barriers\n"}};
  listing_tools tools{"", script("nvdisasm", nvdisasm_script), ""};
  auto found = codes(tools, x);
  EXPECT_THAT(missing_, IsEmpty());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].name, "relu_mod.cuda_sources");
  EXPECT_EQ(found[0].file, found[0].name) << "the table of lines calls the text so";
  EXPECT_EQ(found[0].ptx, "ptx text");
  ASSERT_EQ(found[0].kernels.size(), 1u);
  EXPECT_EQ(found[0].kernels[0].registers, 10u);
  auto sass = read_sass(found[0].sass, found[0].file);
  ASSERT_EQ(sass.size(), 1u) << found[0].sass;
  EXPECT_EQ(sass[0].name, "relu(float*)");
  EXPECT_EQ(sass[0].lines[0].source_line, 2u);
  add_live_registers(life_ranges(walls_, tools, found[0].cubin, missing_), sass);
  EXPECT_EQ(sass[0].lines[0].live, 3u);
}

TEST_F(module_listing, has_each_kernel_of_triton_with_its_stages) {
  listing_tools tools{"", "", script("cuobjdump", cuobjdump_script)};
  auto found = codes(tools, with_triton("cubin bytes"));
  ASSERT_EQ(found.size(), 1u) << "what has no PTX was not compiled";
  EXPECT_EQ(found[0].name, "relu_kernel");
  EXPECT_EQ(found[0].file, "candidate.py");
  EXPECT_EQ(found[0].source, "def relu(): pass\n");
  EXPECT_THAT(found[0].stages,
              ElementsAre(testing::Pair("ttir", "module {}"), testing::Pair("llir", "; ModuleID")));
  ASSERT_EQ(found[0].kernels.size(), 1u);
  EXPECT_EQ(found[0].kernels[0].registers, 16u);
  EXPECT_EQ(found[0].kernels[0].shared_bytes, 512u);
  EXPECT_THAT(found[0].sass, HasSubstr("EXIT"));
  EXPECT_THAT(missing_, ElementsAre(HasSubstr("cuobjdump knows none")));
}

TEST_F(module_listing, says_once_what_is_missing_and_why) {
  listed_module x = with_triton("cubin bytes");
  x.extensions = {
      {"one", "text", "ptx", "cubin bytes", ""},
      {"two", "text", "ptx", "", "in file included\none.cu(3): error: no such thing\n"}};
  x.triton_problem = "TypeError: no";
  auto found = codes({}, x);
  EXPECT_EQ(found.size(), 3u);
  EXPECT_THAT(missing_, ElementsAre(HasSubstr("neither nvdisasm nor cuobjdump"),
                                    "Triton kernels, not all of them: TypeError: no",
                                    "two: nvcc made no cubin: one.cu(3): error: no such thing"));
}

TEST_F(module_listing, says_which_tool_failed_by_its_own_error) {
  auto fails = script("nvdisasm", "#!/bin/sh\necho 'nvdisasm warning : old format'\n"
                                  "echo 'nvdisasm error   : Cannot print life ranges'\nexit 1\n");
  listing_tools tools{"", fails, ""};
  EXPECT_EQ(disassemble(walls_, tools, "cubin bytes", missing_), "");
  EXPECT_EQ(life_ranges(walls_, tools, "cubin bytes", missing_), "");
  EXPECT_THAT(missing_,
              ElementsAre("SASS: nvdisasm: nvdisasm error   : Cannot print life ranges",
                          "live registers: nvdisasm: nvdisasm error   : Cannot print life ranges"));
}

TEST_F(module_listing, says_of_a_listing_that_was_cut_that_the_rest_is_not_counted) {
  auto talks = script("nvdisasm", "#!/bin/sh\nhead -c 9000000 /dev/zero | tr '\\0' 'x'\n");
  EXPECT_EQ(disassemble(walls_, {"", talks, ""}, "cubin bytes", missing_).size(), 8u << 20);
  EXPECT_THAT(missing_, ElementsAre(HasSubstr("behind its first 8 MiB")));
}

TEST_F(module_listing, says_of_live_registers_that_were_cut_that_they_are) {
  auto talks = script("nvdisasm", "#!/bin/sh\nhead -c 9000000 /dev/zero | tr '\\0' 'x'\n");
  life_ranges(walls_, {"", talks, ""}, "cubin bytes", missing_);
  EXPECT_THAT(missing_, ElementsAre(HasSubstr("live registers: what lies behind")));
}

TEST_F(module_listing, of_more_modules_than_fit_keeps_sixty_four) {
  listed_module x;
  for (int i = 0; i < 70; ++i) x.extensions.push_back({std::to_string(i), "text", "ptx", "", ""});
  EXPECT_EQ(codes({}, x).size(), 64u);
}

// -- with the real tools --------------------------------------------------------------------------

TEST_F(module_listing, of_a_real_cubin_is_what_the_tools_here_print) {
  auto tools = find_listing_tools();
  if (tools.nvcc.empty() || tools.nvdisasm.empty()) GTEST_SKIP() << "no nvcc, or no nvdisasm";
  auto source = read_golden("kernels_sm90.cu");
  auto built = build_listing(walls_, tools, source, "sm_90");
  ASSERT_TRUE(built && built->compiled);
  listed_module x;
  x.extensions = {{listed_source_name, source, built->ptx, built->cubin, ""}};
  auto found = codes(tools, x);
  ASSERT_EQ(found.size(), 1u);
  auto sass = read_sass(found[0].sass, found[0].file);
  EXPECT_EQ(sass.size(), 5u);
  for (const auto& line : kernel_of(sass, "multiplied").lines)
    if (line.text.starts_with("HMMA")) {
      EXPECT_EQ(line.source_line, 50u) << "the header's line says nothing to the author";
    }
  auto life = life_ranges(walls_, tools, found[0].cubin, missing_);
  if (life.empty()) GTEST_SKIP() << "this nvdisasm prints no life ranges: " << missing_.back();
  add_live_registers(life, sass);
  for (const auto& kernel : sass)
    for (const auto& line : kernel.lines)
      EXPECT_EQ(line.live.has_value(), !line.text.ends_with(":")) << line.text;
}

} // namespace module_listing_test
} // namespace kernelmill
