// Tasks of the contract `program`: folders of files, commands, and answers that become files.

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/task/program_answer.hpp"
#include "gpu/task/task.hpp"
#include "messages/base/json_value.hpp"

using namespace kernelmill;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

namespace program_task_test {

namespace fs = std::filesystem;

json counting() {
  return {{"schema_version", 1},
          {"id", "suite/count"},
          {"title", "Count"},
          {"verb", "synthesize"},
          {"operator_family", "other"},
          {"contract", "program"},
          {"backends", {"cpu"}},
          {"suite", "a suite"},
          {"program",
           {{"suite_id", "A/1"},
            {"build", "g++ -I include -o test.out solution.cpp test/*.cpp"},
            {"test", "./test.out"},
            {"benchmark", "./test.out --perf"},
            {"timing", {{"mode", "custom"}, {"include", nullptr}}},
            {"needs", {{"toolkit", "12.8"}}},
            {"references", {{"any", nullptr}, {"all", {"std::count"}}}},
            {"editable", {"include/count.h"}},
            {"answer_file", "solution.cpp"}}}};
}

class program_task_files : public testing::Test {
protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "kernelmill-program-task-XXXXXX";
    root_ = ::mkdtemp(name.data());
    write("task.json", counting().dump());
    write("prompt.md", "Count.\n");
    write("context/include/count.h", "int count(int);\n");
    write("context/solution.cpp", "// write here\n");
    write("tests/test/main.cpp", "int main() {}\n");
    write("baseline/solution.cpp", "int count(int x) { return x; }\n");
    write("baseline/helper.cpp", "\n");
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string path_of(const std::string& name) const { return root_ + "/suite/count/" + name; }
  void write(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path{path_of(name)}.parent_path());
    std::ofstream{path_of(name)} << text;
  }
  expected<task_ptr> load() { return load_task(root_, "suite/count"); }
  std::string trouble() {
    auto x = load();
    return x ? "none" : x.error().category + ": " + x.error().message;
  }
  std::string trouble(const json& document) {
    write("task.json", document.dump());
    return trouble();
  }

  std::string root_;
};

using program_task_loading = program_task_files;

TEST_F(program_task_loading, reads_files_and_commands) {
  auto x = load();
  ASSERT_TRUE(x) << x.error().message;
  const auto& p = (*x)->program;
  EXPECT_EQ((*x)->contract, contract_kind::program);
  EXPECT_EQ((*x)->starter, "// write here\n");
  EXPECT_EQ(p.timing.mode, program_clock::custom);
  EXPECT_EQ(p.suite, "a suite");
  EXPECT_EQ(p.suite_id, "A/1");
  EXPECT_EQ(p.needs.toolkit, "12.8");
  EXPECT_THAT(p.references.all, ElementsAre("std::count"));
  EXPECT_THAT(writable_files(p), ElementsAre("solution.cpp", "helper.cpp", "include/count.h"));
  ASSERT_EQ(p.tests.size(), 1u);
  EXPECT_EQ(p.tests[0].path, "test/main.cpp");
  EXPECT_EQ(p.context.size(), 2u);
}

TEST_F(program_task_loading, has_every_file_in_its_digest) {
  auto before = (*load())->digest;
  write("tests/test/main.cpp", "int main() { return 0; }\n");
  auto other_test = (*load())->digest;
  EXPECT_NE(other_test, before);
  write("context/include/more.h", "");
  EXPECT_NE((*load())->digest, other_test);
}

TEST_F(program_task_loading, stays_a_program_whatever_a_run_asks_for) {
  judging_terms terms;
  terms.contract = contract_kind::device;
  auto x = on_terms(**load(), terms);
  ASSERT_TRUE(x);
  EXPECT_EQ((*x)->contract, contract_kind::program);
  terms.backend = "cuda";
  EXPECT_FALSE(on_terms(**load(), terms));
}

TEST_F(program_task_loading, refuses_documents_that_are_wrong) {
  auto with = [](auto change) {
    auto x = counting();
    change(x);
    return x;
  };
  auto in_program = [&](const char* key, const json& value) {
    return trouble(with([&](json& x) { x["program"][key] = value; }));
  };
  EXPECT_THAT(trouble(with([](json& x) { x.erase("program"); })), HasSubstr("program is missing"));
  EXPECT_THAT(trouble(with([](json& x) { x["program"] = 3; })), HasSubstr("must be an object"));
  EXPECT_THAT(trouble(with([](json& x) { x["cases"] = json::array(); })), HasSubstr("cases"));
  EXPECT_THAT(trouble(with([](json& x) { x["verb"] = "port"; })), HasSubstr("verb"));
  EXPECT_THAT(trouble(with([](json& x) { x["backends"] = {"hip"}; })), HasSubstr("hip"));
  EXPECT_THAT(in_program("tests", "x"), HasSubstr("program.tests"));
  EXPECT_THAT(in_program("test", ""), HasSubstr("program.test is missing"));
  EXPECT_THAT(in_program("test", std::string(9000, 'x')), HasSubstr("8192"));
  EXPECT_THAT(in_program("test", std::string("a\0b", 3)), HasSubstr("NUL"));
  EXPECT_THAT(in_program("build", 7), HasSubstr("program.build must be a string"));
  EXPECT_THAT(in_program("timeout_s", 1e300), HasSubstr("timeout_s"));
  EXPECT_THAT(in_program("timeout_s", "60"), HasSubstr("timeout_s"));
  EXPECT_THAT(in_program("timing", {{"mode", "sundial"}}), HasSubstr("program.timing.mode"));
  EXPECT_THAT(in_program("timing", {{"mode", "region"}}), HasSubstr("cpu"));
  EXPECT_THAT(in_program("timing", {{"clock", "wall"}}), HasSubstr("clock"));
  EXPECT_THAT(in_program("timing", {{"include", {"x"}}}), HasSubstr("include"));
  EXPECT_THAT(in_program("needs", {{"toolkit", "new"}}), HasSubstr("program.needs.toolkit"));
  EXPECT_THAT(in_program("references", {{"all", {1}}}), HasSubstr("program.references.all"));
  EXPECT_THAT(in_program("answer_file", "../solution.cpp"), HasSubstr("answer_file"));
  EXPECT_THAT(in_program("answer_file", "/etc/passwd"), HasSubstr("answer_file"));
  EXPECT_THAT(in_program("editable", {"include/other.h"}), HasSubstr("include/other.h"));
  EXPECT_THAT(in_program("editable", {"test/main.cpp"}), HasSubstr("test/main.cpp"));
}

TEST_F(program_task_loading, reads_nothing_outside_of_its_folder) {
  write("../secret.h", "secret");
  fs::create_symlink("../../../secret.h", path_of("context/link.h"));
  EXPECT_THAT(trouble(), HasSubstr("bad_task"));
  fs::remove(path_of("context/link.h"));
  fs::create_directory_symlink("/etc", path_of("context/etc"));
  EXPECT_THAT(trouble(), HasSubstr("bad_task"));
  fs::remove(path_of("context/etc"));
  fs::rename(path_of("context"), root_ + "/away");
  fs::create_directory_symlink(root_ + "/away", path_of("context"));
  EXPECT_THAT(trouble(), HasSubstr("no folder"));
}

TEST_F(program_task_loading, refuses_folders_that_contradict_each_other) {
  write("tests/include/count.h", "");
  EXPECT_THAT(trouble(), HasSubstr("include/count.h"));
  fs::remove(path_of("tests/include/count.h"));
  write("tests/solution.cpp", "");
  EXPECT_THAT(trouble(), HasSubstr("solution.cpp"));
  fs::remove(path_of("tests/solution.cpp"));
  write("tests/a b.cpp", "");
  EXPECT_THAT(trouble(), HasSubstr("a b.cpp"));
  fs::remove(path_of("tests/a b.cpp"));
  fs::remove_all(path_of("baseline"));
  EXPECT_THAT(trouble(), HasSubstr("baseline"));
}

// -- answers --------------------------------------------------------------------------------------

class program_answers : public program_task_files {
protected:
  std::string taken(const std::string& answer) {
    auto files = files_of_answer((*load())->program, answer);
    if (!files) return files.error().category + ": " + files.error().message;
    std::string result;
    for (const auto& file : *files) result += "[" + file.path + "]" + file.text;
    return result;
  }
};

TEST_F(program_answers, are_one_file_several_or_a_diff) {
  EXPECT_EQ(taken("int x;\n"), "[solution.cpp]int x;\n");
  EXPECT_EQ(taken("\n// file: solution.cpp\nint x;\n# file: helper.cpp\nint y;\n"),
            "[solution.cpp]int x;\n[helper.cpp]int y;\n");
  EXPECT_EQ(taken("--- a/solution.cpp\n+++ b/solution.cpp\n@@ -1 +1 @@\n-// write here\n+int x;\n"),
            "[solution.cpp]int x;\n");
  EXPECT_EQ(taken("--- /dev/null\n+++ b/helper.cpp\n@@ -0,0 +1 @@\n+int y;\n"),
            "[helper.cpp]int y;\n");
}

TEST_F(program_answers, write_only_what_they_may) {
  for (const char* path : {"test/main.cpp", "../x", "/etc/passwd", "include/cassert",
                           "solution.cpp/..", "", "other.h"})
    EXPECT_THAT(taken(std::string{"// file: "} + path + "\nint x;\n"), HasSubstr("bad_answer"))
        << path;
  EXPECT_THAT(taken("// file: solution.cpp\n// file: solution.cpp\n"), HasSubstr("twice"));
  EXPECT_THAT(taken(" \n\t\n"), HasSubstr("bad_answer"));
  EXPECT_THAT(taken("--- a/../x\n+++ b/../x\n@@ -1 +1 @@\n-a\n+b\n"), HasSubstr("bad_answer"));
  EXPECT_THAT(taken("--- a/solution.cpp\n+++ b/solution.cpp\n@@ -1 +1 @@\n-no\n+b\n"),
              HasSubstr("bad_answer"));
  EXPECT_THAT(taken("--- a/solution.cpp\n+++ /dev/null\n@@ -1 +0,0 @@\n-// write here\n"),
              HasSubstr("bad_answer"));
}

TEST_F(program_answers, use_what_the_task_asks_for_in_code) {
  auto loaded = load();
  ASSERT_TRUE(loaded);
  const auto& p = (*loaded)->program;
  auto category = [&](const std::string& text) {
    auto ok = check_references(p, {{"solution.cpp", text}});
    return ok ? std::string{"ok"} : ok.error().category;
  };
  EXPECT_EQ(category("int a = std::count(b, e, 1);"), "ok");
  for (const char* text :
       {"// std::count", "/* std::count */", "auto x = \"std::count\";", "my_std::counter",
        "std::count_if(a, b, c)", "R\"(std::count)\"", "char q = '\\'', z[] = \"std::count\";"})
    EXPECT_EQ(category(text), "missing_reference") << text;
  EXPECT_EQ(category("int n = 1'000; std::count(b, e, '\"');"), "ok");
}

TEST(program_code, of_python_ends_at_its_own_comments) {
  EXPECT_EQ(code_alone("a # b\nc", true), "a  \nc");
  EXPECT_THAT(code_alone("x = '''one\ntwo''' + y", true), Not(HasSubstr("two")));
  EXPECT_THAT(code_alone("x // 2", true), HasSubstr("// 2"));
}

} // namespace program_task_test
