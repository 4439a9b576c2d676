#include <gmock/gmock.h>

#include "gpu/toolchain/torch_flags.hpp"
#include "gpu/toolchain/torch_request.hpp"
#include "gpu/toolchain/torch_sources.hpp"

namespace kernelmill {
namespace torch_parts_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using words = std::vector<std::string>;

TEST(flags_of_candidates, are_taken_when_they_can_do_no_harm) {
  auto host = choose_host_flags({"-O3", "-march=native", "-fopenmp", "-ffast-math", "-std=c++20",
                                 "-DX=1", "-Wall", "-mavx2 -mfma"});
  EXPECT_THAT(host.taken, ElementsAre("-O3", "-march=native", "-fopenmp", "-ffast-math",
                                      "-std=c++20", "-DX=1", "-Wall", "-mavx2", "-mfma"));
  EXPECT_THAT(host.ignored, IsEmpty());
  auto cuda = choose_cuda_flags({"-O3", "--use_fast_math", "-Xcompiler", "-O3,-fopenmp",
                                 "-Xptxas=-O3,-v", "-maxrregcount=64", "--expt-extended-lambda",
                                 "-U__CUDA_NO_HALF_OPERATORS__"});
  EXPECT_THAT(cuda.taken,
              ElementsAre("-O3", "--use_fast_math", "-Xcompiler=-O3", "-Xcompiler=-fopenmp",
                          "-Xptxas=-O3", "-Xptxas=-v", "-maxrregcount=64", "--expt-extended-lambda",
                          "-U__CUDA_NO_HALF_OPERATORS__"));
  EXPECT_THAT(cuda.ignored, IsEmpty());
}

TEST(flags_of_candidates, are_ignored_when_they_name_files_programs_or_other_gpus) {
  for (auto* x : {"-fplugin=x.so", "-wrapper", "@file", "-I/etc", "-include/etc/passwd", "-o/tmp/x",
                  "-Wl,-rpath,/x", "-Wa,-o,x", "-B/tmp", "-specs=x", "-fdump-tree-all",
                  "/etc/passwd", "-x", "-save-temps", "-fprofile-use=/x", "-m32"})
    EXPECT_THAT(choose_host_flags({x}).taken, IsEmpty()) << x;
  for (words x : {words{"-gencode", "arch=compute_70,code=sm_70"}, words{"-arch=sm_80"},
                  words{"-ccbin", "/tmp/x"}, words{"-Xcompiler", "-fplugin=x"},
                  words{"-Xptxas", "-o,/tmp/x"}, words{"--options-file", "x"}, words{"-keep"},
                  words{"-Xlinker", "-rpath"}, words{"-include", "/etc/passwd"}, words{"-dlto"}})
    EXPECT_THAT(choose_cuda_flags(x).taken, IsEmpty()) << x[0];
  EXPECT_THAT(choose_link_flags({"-lm", "-lcublas", "-levil", "-L/tmp", "x.o"}, {"/nowhere"}).taken,
              ElementsAre("-lm"));
}

TEST(flags_of_candidates, may_ask_for_features_of_the_present_architecture) {
  EXPECT_EQ(wanted_architecture({"-gencode=arch=compute_90a,code=sm_90a"}, "sm_90"), "sm_90a");
  EXPECT_EQ(wanted_architecture({"-arch=sm_100a"}, "sm_90"), "sm_90");
  EXPECT_EQ(wanted_architecture({}, "sm_90a"), "sm_90a");
}

std::string report_of(const std::string& request) {
  return "{\"stage\":\"compiled\",\"error\":null,\"has_model_new\":true,\"triton_problem\":\"\","
         "\"triton_files\":{\"AB/relu.cubin\":\"AP8=\"},\"requests\":[{\"key\":\"" +
         std::string(64, 'a') + "\",\"request\":" + request + "}]}\n";
}

std::string request_text(const std::string& name, const std::string& functions,
                         const std::string& file = "main.cpp") {
  return "{\"name\":\"" + name + "\",\"sources\":[{\"name\":\"" + file +
         "\",\"text\":\"int f();\"}],\"inline\":true,\"headers\":true,\"error_handling\":true,"
         "\"is_python_module\":true,\"with_cuda\":null,\"functions\":" +
         functions + ",\"cflags\":[],\"cuda_cflags\":[],\"ldflags\":[],\"include_paths\":[]}";
}

TEST(a_recording, is_read_from_its_last_whole_line) {
  EXPECT_EQ(parse_recording("")->stage, "");
  EXPECT_EQ(parse_recording("{\"half\":")->stage, "");
  auto whole = report_of(request_text("relu", "{\"f\":\"says \\\"f\\\"\"}"));
  auto read = parse_recording("{}\n" + whole + "{\"stage\":");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->triton_files.at("AB/relu.cubin"), "AP8=");
  ASSERT_EQ(read->requests.size(), 1u);
  auto text = translation_unit(read->requests[0], 0);
  EXPECT_THAT(text,
              HasSubstr("#include <torch/extension.h>\n#line 1 \"relu.cpp_sources\"\nint f();"));
  EXPECT_THAT(text, HasSubstr("m.def(\"f\", torch::wrap_pybind_function(f), \"says \\\"f\\\"\");"));
}

TEST(a_recording, is_refused_when_it_is_forged) {
  for (auto& x : {request_text("../x", "null"), request_text("a;b", "null"),
                  request_text("a", "{\"f); system(\":\"\"}"),
                  request_text("a", "null", "../main.cpp"), request_text("a", "null", "x.so"),
                  request_text("a", "null", "-o.cpp"), std::string{"{}"}, std::string{"null"}}) {
    auto read = parse_recording(report_of(x));
    ASSERT_FALSE(read) << x;
    EXPECT_EQ(read.error().cls, fault_class::candidate);
    EXPECT_EQ(read.error().category, "compile_error");
  }
}

} // namespace torch_parts_test
} // namespace kernelmill
