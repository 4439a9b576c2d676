#include "gpu/task/launch_plan.hpp"

#include <ctime>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/task/device_artifact.hpp"

using namespace kernelmill;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

namespace launch_plan_test {

using kind = bound_argument::kind;

// -- reading --------------------------------------------------------------------------------------

launch_plan plan_of(const std::string& source) {
  auto plan = parse_launch_plan(source);
  if (!plan) throw std::runtime_error(render(plan.error()));
  return *plan;
}

// The only launch of a source.
launch_line launch_of(const std::string& line) {
  auto plan = plan_of(line);
  if (plan.launches.size() != 1) throw std::runtime_error("not one launch: " + line);
  return plan.launches[0];
}

std::string problem_of(const std::string& source) {
  auto plan = parse_launch_plan(source);
  if (plan) return {};
  EXPECT_EQ(plan.error().cls, fault_class::candidate) << source;
  EXPECT_EQ(plan.error().category, "bad_launch") << source;
  EXPECT_THAT(plan.error().hint, HasSubstr("write // ")) << source;
  return plan.error().message;
}

std::vector<int64_t> values_of(const std::array<expression, 3>& from,
                               const scalar_values& scalars) {
  std::vector<int64_t> result;
  for (const auto& x : from) result.push_back(x.evaluate(scalars).value());
  return result;
}

const scalar_values shape{{"rows", 5}, {"cols", 100}};

TEST(launch_plan, has_scratch_and_launches_in_the_order_of_the_lines) {
  auto plan = plan_of("#include <cuda_fp16.h>\n"
                      "// scratch: partial[4 * rows * 8]\n"
                      "// launch: sums<<<dim3(8, rows), 256>>>(x, partial, rows, cols)\n"
                      "\n"
                      "// launch: total<<<ceil_div(rows, 128), 128, 64>>>(partial, y, rows)\n"
                      "extern \"C\" __global__ void sums() {}\n");
  ASSERT_EQ(plan.scratch.size(), 1u);
  EXPECT_EQ(plan.scratch[0].line, 2u);
  EXPECT_EQ(plan.scratch[0].name, "partial");
  EXPECT_EQ(plan.scratch[0].bytes.evaluate(shape).value(), 160);
  ASSERT_EQ(plan.launches.size(), 2u);
  EXPECT_EQ(plan.launches[0].line, 3u);
  EXPECT_EQ(plan.launches[0].kernel, "sums");
  EXPECT_THAT(values_of(plan.launches[0].grid, shape), ElementsAre(8, 5, 1));
  EXPECT_THAT(values_of(plan.launches[0].block, shape), ElementsAre(256, 1, 1));
  EXPECT_EQ(plan.launches[0].shared.evaluate({}).value(), 0);
  EXPECT_THAT(plan.launches[0].arguments, ElementsAre("x", "partial", "rows", "cols"));
  EXPECT_EQ(plan.launches[1].line, 5u);
  EXPECT_EQ(plan.launches[1].kernel, "total");
  EXPECT_EQ(plan.launches[1].shared.evaluate({}).value(), 64);
}

TEST(launch_plan, dimensions_are_one_to_three) {
  EXPECT_THAT(values_of(launch_of("// launch: f<<<rows, 1>>>()").grid, shape),
              ElementsAre(5, 1, 1));
  auto x = launch_of("// launch: f<<<dim3(rows), dim3(32, 4, 2)>>>()");
  EXPECT_THAT(values_of(x.grid, shape), ElementsAre(5, 1, 1));
  EXPECT_THAT(values_of(x.block, shape), ElementsAre(32, 4, 2));
  EXPECT_THAT(problem_of("// launch: f<<<dim3(1, 2, 3, 4), 32>>>()"),
              AllOf(HasSubstr("4 dimensions"), HasSubstr("dim3(1, 2, 3, 4)")));
  EXPECT_THAT(problem_of("// launch: f<<<1, dim3()>>>()"), HasSubstr("0 dimensions"));
  EXPECT_THAT(problem_of("// launch: f<<<1, dim3(,)>>>()"), HasSubstr("ends too early"));
  EXPECT_THAT(problem_of("// launch: f<<<dim3(1) + (2), 1>>>()"), HasSubstr("unexpected"));
  EXPECT_THAT(problem_of("// launch: f<<<dim4(1), 1>>>()"), HasSubstr("no function 'dim4'"));
}

TEST(launch_plan, a_comma_within_parentheses_parts_nothing) {
  auto x = launch_of("// launch: f<<<dim3(min(rows, ceil_div(cols, 32)), (rows + 1) * 2), "
                     "max(32, 64), 4 * min(rows, 8)>>>(x, max(rows, min(cols, 7)), (cols))");
  EXPECT_THAT(values_of(x.grid, shape), ElementsAre(4, 12, 1));
  EXPECT_THAT(values_of(x.block, shape), ElementsAre(64, 1, 1));
  EXPECT_EQ(x.shared.evaluate(shape).value(), 20);
  EXPECT_THAT(x.arguments, ElementsAre("x", "max(rows, min(cols, 7))", "(cols)"));
}

TEST(launch_plan, blanks_and_a_semicolon_say_nothing) {
  for (auto* line : {"// launch: f<<<dim3(8, rows), 256, 0>>>(x, rows)",
                     "//launch:f<<<dim3(8,rows),256,0>>>(x,rows)",
                     "\t //\tlaunch:\tf\t<<<\tdim3 ( 8 ,\trows ) , 256 , 0 >>> ( x ,\trows )\t;\t",
                     "// launch: f<<<dim3(8, rows), 256, 0>>>(x, rows);\r",
                     "  // launch: f <<<dim3(8, rows), 256>>> (x, rows) ; "}) {
    auto x = launch_of(line);
    EXPECT_EQ(x.kernel, "f") << line;
    EXPECT_THAT(values_of(x.grid, shape), ElementsAre(8, 5, 1)) << line;
    EXPECT_THAT(values_of(x.block, shape), ElementsAre(256, 1, 1)) << line;
    EXPECT_THAT(x.arguments, ElementsAre("x", "rows")) << line;
  }
  auto x = plan_of("//\tscratch:\tpart [\t4 * rows ] \n// launch: f<<<1, 1>>>(part)").scratch[0];
  EXPECT_EQ(x.name, "part");
  EXPECT_EQ(x.bytes.evaluate(shape).value(), 20);
}

TEST(launch_plan, lines_may_end_as_on_windows_and_the_last_need_not_end) {
  auto plan = plan_of("int x;\r\n// scratch: s[8]\r\n\r\n// launch: f<<<1, 32>>>(s)\r\n"
                      "// launch: g<<<1, 32>>>(s)");
  ASSERT_EQ(plan.launches.size(), 2u);
  EXPECT_EQ(plan.scratch[0].line, 2u);
  EXPECT_EQ(plan.launches[0].line, 4u);
  EXPECT_EQ(plan.launches[1].line, 5u);
}

TEST(launch_plan, a_kernel_may_take_nothing) {
  EXPECT_THAT(launch_of("// launch: f<<<1, 32>>>()").arguments, IsEmpty());
  EXPECT_THAT(launch_of("// launch: f<<<1, 32>>>( \t)").arguments, IsEmpty());
}

TEST(launch_plan, only_a_comment_that_begins_so_is_a_line_of_it) {
  const std::string good = "// launch: f<<<1, 32>>>()\n";
  for (auto* other : {"// launches: g<<<\n", "// We launch: once\n", "/// launch: g<<<\n",
                      "int x; // launch: g<<<\n", "/* launch: g<<< */\n", "// Launch: g<<<\n",
                      "// scratchy: s\n", "launch: g<<<\n"})
    EXPECT_EQ(plan_of(other + good).launches.size(), 1u) << other;
}

TEST(launch_plan, a_source_without_one_is_told_how_to_write_one) {
  for (auto* source : {"", "\n", "extern \"C\" __global__ void f() {}\n", "// scratch: s[4]\n",
                       "// launch:\n", "// launch: \t\r\n"}) {
    EXPECT_EQ(problem_of(source), "the source has no launch line") << source;
    EXPECT_FALSE(has_launch_lines(source)) << source;
  }
}

TEST(launch_plan, the_line_of_a_problem_is_named) {
  const std::string good = "// launch: f<<<1, 32>>>()\n";
  EXPECT_THAT(problem_of("// launch: f\n"), StartsWith("line 1: "));
  EXPECT_THAT(problem_of(good + "\n\n" + "// launch: g<<<2>>>()\n" + good), StartsWith("line 4: "));
  EXPECT_THAT(problem_of(good + "\r\n// scratch: s[4\r\n"), StartsWith("line 3: "));
}

TEST(launch_plan, the_geometry_stands_between_three_angles) {
  for (auto* line :
       {"// launch: f", "// launch: f(x)", "// launch: f<<1, 32>>(x)", "// launch: f<<<1, 32(x)",
        "// launch: f 1, 32>>>(x)", "// launch: f>>>1, 32<<<(x)"})
    EXPECT_THAT(problem_of(line), HasSubstr("no <<<grid, block>>>")) << line;
  EXPECT_THAT(problem_of("// launch: f<<<>>>(x)"), HasSubstr("stand 0 parts"));
  EXPECT_THAT(problem_of("// launch: f<<<rows>>>(x)"), HasSubstr("stand 1 parts"));
  EXPECT_THAT(problem_of("// launch: f<<<1, 32, 0, stream>>>(x)"), HasSubstr("stand 4 parts"));
}

TEST(launch_plan, parentheses_must_be_balanced) {
  for (auto* line :
       {"// launch: f<<<dim3(8, rows, 256>>>(x)", "// launch: f<<<8, (256>>>(x)",
        "// launch: f<<<8, 256)>>>(x)", "// launch: f<<<8, 256>>>x", "// launch: f<<<8, 256>>>(x",
        "// launch: f<<<8, 256>>>x)", "// launch: f<<<8, 256>>>(", "// launch: f<<<8, 256>>>",
        "// launch: f<<<8, 256>>>((x)", "// launch: f<<<8, 256>>>(x))",
        "// launch: f<<<8, 256>>>(x)(y)", "// launch: f<<<8, 256>>>(x) y",
        "// launch: f<<<8, 256>>>(x);;", "// launch: f<<<8, 256>>>(x) // twice"})
    EXPECT_THAT(problem_of(line), StartsWith("line 1: ")) << line;
}

TEST(launch_plan, an_argument_is_a_name_or_an_expression) {
  for (auto* list : {"x,", ",x", "x,,y", "&x", "x[0]", "rows << 1", "1.5f", "\"x\"", "log2(rows)"})
    EXPECT_THAT(problem_of("// launch: f<<<1, 32>>>(" + std::string{list} + ")"),
                HasSubstr("failed to read expression"))
        << list;
}

TEST(launch_plan, a_kernel_has_a_name_of_at_most_63_letters) {
  auto launch = [](const std::string& name) { return "// launch: " + name + "<<<1, 32>>>()"; };
  EXPECT_EQ(launch_of(launch(std::string(63, 'k'))).kernel.size(), 63u);
  EXPECT_EQ(launch_of(launch("_k9")).kernel, "_k9");
  for (const auto& name :
       {std::string(64, 'k'), std::string{}, std::string{"9k"}, std::string{"a::b"},
        std::string{"f<4>"}, std::string{"f g"}, std::string{"caf\xc3\xa9"}})
    EXPECT_THAT(problem_of(launch(name)), HasSubstr("no name of a kernel")) << name;
}

TEST(launch_plan, a_scratch_line_has_a_name_and_bytes) {
  const std::string launch = "// launch: f<<<1, 32>>>()\n";
  for (auto* line : {"none", "s", "s[4", "s 4]", "[4]", "9s[4]", "float s[4]", "]s[", "s[4];"})
    EXPECT_THAT(problem_of("// scratch: " + std::string{line} + "\n" + launch),
                HasSubstr("is no scratch buffer"))
        << line;
  for (auto* line : {"s[]", "s[rows", "s[4][4]", "s[4 +]", "s[sizeof(float)]"})
    EXPECT_THAT(problem_of("// scratch: " + std::string{line} + "\n" + launch),
                StartsWith("line 1"))
        << line;
}

TEST(launch_plan, a_scratch_buffer_has_a_name_of_its_own) {
  EXPECT_THAT(problem_of("// scratch: s[4]\n// scratch: t[4]\n// scratch: s[8]\n"
                         "// launch: f<<<1, 1>>>(s)\n"),
              AllOf(StartsWith("line 3: "), HasSubstr("\"s\" is there already")));
}

std::string repeated(size_t times, const std::string& begin, const std::string& end) {
  std::string result;
  for (size_t i = 0; i < times; ++i) result += begin + std::to_string(i) + end;
  return result;
}

TEST(launch_plan, there_are_at_most_8_launches_of_16_arguments_and_8_scratch_buffers) {
  auto launches = [](size_t n) { return repeated(n, "// launch: f", "<<<1, 32>>>()\n"); };
  auto scratch = [](size_t n) { return repeated(n, "// scratch: s", "[4]\n"); };
  auto arguments = [](size_t n) {
    auto list = repeated(n, ", ", "");
    return "// launch: f<<<1, 32>>>(" + list.substr(std::min<size_t>(2, list.size())) + ")\n";
  };
  auto most = plan_of(scratch(8) + launches(7) + arguments(16));
  EXPECT_EQ(most.launches.size(), 8u);
  EXPECT_EQ(most.launches[7].arguments.size(), 16u);
  EXPECT_EQ(most.scratch.size(), 8u);
  EXPECT_THAT(problem_of(launches(10)),
              AllOf(StartsWith("line 9: "), HasSubstr("at most 8 launch lines")));
  EXPECT_THAT(problem_of(launches(1) + scratch(9) + launches(1)),
              AllOf(StartsWith("line 10: "), HasSubstr("at most 8 scratch lines")));
  EXPECT_THAT(problem_of(arguments(17)), HasSubstr("more than 16 arguments"));
}

TEST(launch_plan, a_megabyte_of_lines_is_read_at_once_and_little_is_said_of_it) {
  auto started = std::clock(); // of this process: what others take of the machine does not count
  auto flood = repeated(50'000, "// scratch: s", "[4]\n");
  EXPECT_THAT(problem_of(flood), StartsWith("line 9: "));
  const std::string much(1 << 20, 'k');
  for (const auto& line :
       {much, much + "<<<1, 1>>>()", "f<<<" + much + ", 1>>>()", "f<<<1, 1>>>(" + much + ")",
        "f<<<1, dim3(1, 1, 1, " + much + ")>>>()", std::string{"f<<<1, 1>>>"} + much})
    EXPECT_LT(problem_of("// launch: " + line).size(), 1000u) << line.substr(0, 30);
  EXPECT_LT(problem_of("// scratch: " + much).size(), 1000u);
  auto seconds = static_cast<double>(std::clock() - started) / CLOCKS_PER_SEC;
  EXPECT_LT(seconds, 2); // quadratic work took far longer
}

TEST(launch_plan, what_is_cut_ends_with_a_whole_character) {
  std::string name = "k";
  for (int i = 0; i < 60; ++i) name += "\xc3\xa9";
  auto message = problem_of("// launch: " + name + "<<<1, 1>>>()");
  EXPECT_THAT(message, HasSubstr("\xc3\xa9...\""));
  EXPECT_THAT(message, Not(HasSubstr("\xc3.")));
}

TEST(has_launch_lines, looks_for_the_lines_and_not_for_what_they_say) {
  EXPECT_TRUE(has_launch_lines("int x;\n//launch: nonsense"));
  EXPECT_TRUE(has_launch_lines("\t// launch: f<<<1, 1>>>()\r\n"));
  EXPECT_FALSE(has_launch_lines("// scratch: s[4]\nf<<<1, 1>>>();\n"));
  EXPECT_FALSE(has_launch_lines("// how we launch: f<<<1, 1>>>()\n"));
}

// -- binding --------------------------------------------------------------------------------------

// x[rows, cols] -> y[rows]
task row_sum() {
  task result;
  result.id = "native/row_sum";
  auto add = [&](const char* name, argument_role role) {
    argument x;
    x.name = name;
    x.role = role;
    result.arguments.push_back(x);
  };
  add("x", argument_role::input);
  add("y", argument_role::output);
  add("rows", argument_role::scalar);
  add("cols", argument_role::scalar);
  result.timed.scalars = shape;
  return result;
}

std::string unbound(const std::string& source) {
  auto bound = bind_arguments(plan_of(source), row_sum());
  if (bound) return {};
  EXPECT_EQ(bound.error().cls, fault_class::candidate);
  EXPECT_EQ(bound.error().category, "bad_launch");
  return bound.error().message;
}

TEST(bind_arguments, finds_tensors_scratch_and_values) {
  auto bound = bind_arguments(plan_of("// scratch: s[4]\n// scratch: t[4]\n"
                                      "// launch: f<<<1, 1>>>(y, t, rows, x, 2 * rows * cols)\n"
                                      "// launch: g<<<1, 1>>>()\n"
                                      "// launch: h<<<1, 1>>>(s)\n"),
                              row_sum());
  ASSERT_TRUE(bound) << render(bound.error());
  ASSERT_EQ(bound->size(), 3u);
  const auto& f = (*bound)[0];
  ASSERT_EQ(f.size(), 5u);
  EXPECT_EQ(f[0].what, kind::tensor);
  EXPECT_EQ(f[0].index, 1u);
  EXPECT_EQ(f[1].what, kind::scratch);
  EXPECT_EQ(f[1].index, 1u);
  EXPECT_EQ(f[2].what, kind::value);
  EXPECT_EQ(f[2].value.evaluate(shape).value(), 5);
  EXPECT_EQ(f[3].what, kind::tensor);
  EXPECT_EQ(f[3].index, 0u);
  EXPECT_EQ(f[4].what, kind::value);
  EXPECT_EQ(f[4].value.evaluate(shape).value(), 1000);
  EXPECT_THAT((*bound)[1], IsEmpty());
  ASSERT_EQ((*bound)[2].size(), 1u);
  EXPECT_EQ((*bound)[2][0].what, kind::scratch);
  EXPECT_EQ((*bound)[2][0].index, 0u);
}

TEST(bind_arguments, names_the_line_and_the_name_that_there_is_not) {
  EXPECT_THAT(
      unbound("\n// launch: f<<<1, 1>>>(x, z)\n"),
      AllOf(StartsWith("line 2: "), HasSubstr("\"z\" of f"), HasSubstr("no scalar is named 'z'")));
  EXPECT_THAT(unbound("// launch: f<<<1, 1>>>(x + 4)\n"), HasSubstr("no scalar is named 'x'"));
  EXPECT_THAT(unbound("// scratch: s[4]\n// launch: f<<<1, 1>>>(s + 4)\n"),
              HasSubstr("no scalar is named 's'"));
  EXPECT_THAT(unbound("// launch: f<<<1, 1>>>(rows / 0)\n"), HasSubstr("division by zero"));
}

TEST(bind_arguments, scratch_may_not_be_named_like_an_argument) {
  for (auto* name : {"x", "y", "rows"})
    EXPECT_THAT(unbound("// launch: f<<<1, 1>>>(x)\n// scratch: " + std::string{name} + "[4]\n"),
                AllOf(StartsWith("line 2: "), HasSubstr("has the name of an argument")))
        << name;
}

// -- artifacts ------------------------------------------------------------------------------------

TEST(device_artifact, comes_back_as_it_went) {
  const std::string binary{"\x7f"
                           "ELF\0\n\xff 17\n",
                           11};
  for (const auto& x :
       {device_artifact{"// launch: f<<<1, 1>>>()\n", binary},
        device_artifact{binary, "kernelmill-device-1\n4\nabcd"}, device_artifact{"", binary},
        device_artifact{"x", ""}, device_artifact{"", ""}}) {
    auto back = unpack_device_artifact(pack_device_artifact(x));
    ASSERT_TRUE(back);
    EXPECT_EQ(back->source, x.source);
    EXPECT_EQ(back->cubin, x.cubin);
  }
}

TEST(device_artifact, damaged_is_none) {
  const std::string magic = device_artifact_magic;
  for (const auto& bytes : {std::string{},
                            std::string{"\n"},
                            std::string{"\x7f"
                                        "ELF"},
                            magic.substr(0, magic.size() - 1),
                            magic,
                            magic + "3",
                            magic + "3 abc",
                            magic + "\nabc",
                            magic + "4\nabc",
                            magic + "-1\nabc",
                            magic + "+3\nabc",
                            magic + " 3\nabc",
                            magic + "0x3\nabc",
                            magic + "999999999\nabc",
                            magic + "1000000000\nabc",
                            magic + "18446744073709551616\nabc",
                            magic + std::string(1000, '9') + "\nabc",
                            "K" + magic.substr(1) + "3\nabc",
                            std::string{"kernelmill-device-2\n3\nabc"},
                            "x" + magic + "3\nabc"})
    EXPECT_FALSE(unpack_device_artifact(bytes)) << bytes.substr(0, 60);
  EXPECT_TRUE(unpack_device_artifact(magic + "3\nabc"));
}

TEST(device_artifact, cut_anywhere_is_none_or_lacks_the_end_of_the_cubin) {
  const auto whole = pack_device_artifact({"source", "cubin"});
  for (size_t n = 0; n < whole.size(); ++n) {
    auto x = unpack_device_artifact(whole.substr(0, n));
    if (n < whole.size() - 5)
      EXPECT_FALSE(x) << n;
    else
      EXPECT_EQ(x->source, "source") << n;
  }
}

} // namespace launch_plan_test
