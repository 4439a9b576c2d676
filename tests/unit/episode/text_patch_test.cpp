#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include <gmock/gmock.h>
#include <unistd.h>

#include "actors/episode/patch/text_patch.hpp"

namespace kernelmill {

namespace text_patch_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::string base = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n";

std::string diff_of(const std::string& hunks, const std::string& name = "kernel.cu") {
  return "--- a/" + name + "\n+++ b/" + name + "\n" + hunks;
}

expected<std::string> applied(const std::string& diff, const std::string& to = base) {
  auto all = parse_unified_diff(diff);
  if (!all) return tl::unexpected<error>{all.error()};
  return apply_diff(all->front(), to);
}

std::string category_of(const std::string& diff, const std::string& to = base) {
  auto result = applied(diff, to);
  if (result) return "applied";
  EXPECT_EQ(result.error().cls, fault_class::policy) << diff;
  return result.error().category;
}

TEST(unified_diff, is_applied_where_its_context_is) {
  EXPECT_EQ(applied(diff_of("@@ -3,3 +3,3 @@\n three\n-four\n+FOUR\n five\n")).value(),
            "one\ntwo\nthree\nFOUR\nfive\nsix\nseven\n");
  EXPECT_EQ(applied(diff_of("@@ -5,3 +99,3 @@ name\n three\n-four\n+4\n+4.5\n five\n")).value(),
            "one\ntwo\nthree\n4\n4.5\nfive\nsix\nseven\n")
      << "lines and counts are not believed";
  EXPECT_EQ(applied(diff_of("@@ -1,2 +1,2 @@\n-one\n+1\n two\n@@ -6,2 +6,2 @@\n six\n-seven\n+7"))
                .value(),
            "1\ntwo\nthree\nfour\nfive\nsix\n7\n");
}

TEST(unified_diff, that_does_not_fit_changes_nothing) {
  EXPECT_EQ(category_of(diff_of("@@ -3,3 +3,3 @@\n three\n-Four\n+4\n five\n")), "patch_failed");
  EXPECT_EQ(category_of(diff_of("@@ -3,3 +3,3 @@\n  three\n-four\n+4\n five\n")), "patch_failed");
  EXPECT_EQ(category_of(diff_of("@@ -1,2 +1,2 @@\n-three\n+3\n four\n")), "patch_failed")
      << "what stands at the first line must be there";
  EXPECT_EQ(category_of(diff_of("@@ -4,1 +4,1 @@\n three\n-four\n+4\n")), "patch_failed")
      << "what has nothing behind it must be at the end";
  EXPECT_EQ(category_of("--- /dev/null\n+++ b/kernel.cu\n@@ -0,0 +1 @@\n+x\n"), "patch_failed");
}

TEST(unified_diff, that_is_none_is_named_with_its_line) {
  for (const auto& [text, says] : std::vector<std::pair<std::string, const char*>>{
           {"", "begins no diff"},
           {"words\n", "line 1 is no part"},
           {"@@ -1 +1 @@\n-a\n+b\n", "hunk of no file"},
           {diff_of(""), "without a hunk"},
           {diff_of("@@ somewhere @@\n-one\n+1\n"), "line 3 has no ranges"},
           {diff_of("@@ -1,1 +1,1 @@\n one\n two\n"), "changes nothing"},
           {diff_of("@@ -1,1 +1,1 @@\n-one\nplain\n+1\n"), "line 5 begins with none"},
           {"rename from a\nrename to b\n", "more than a change of lines"},
           {"--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n", "renames"},
           {"GIT binary patch\n", "more than"},
       }) {
    auto read = parse_unified_diff(text);
    ASSERT_FALSE(read) << text;
    EXPECT_THAT(read.error().message, HasSubstr(says)) << text;
    EXPECT_EQ(read.error().cls, fault_class::policy);
  }
}

TEST(unified_diff, stays_in_its_folder) {
  for (const char* name : {"../x", "/etc/passwd", "a/../../x", "a//b", "./x", ".git/config",
                           "x/.GIT/y", "a\\b", "\"quoted\"", "with blank"}) {
    auto read = parse_unified_diff(diff_of("@@ -1 +1 @@\n-a\n+b\n", name));
    ASSERT_FALSE(read) << name;
    EXPECT_THAT(read.error().message, HasSubstr("path")) << name;
  }
  auto two = parse_unified_diff(diff_of("@@ -1 +1 @@\n-a\n+b\n", "src/x.cu") +
                                "--- a/y.cu\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n" +
                                "--- /dev/null\n+++ b/z.cu\n@@ -0,0 +1 @@\n+a\n");
  ASSERT_TRUE(two) << two.error().message;
  ASSERT_EQ(two->size(), 3u);
  EXPECT_EQ((*two)[0].path, "src/x.cu");
  EXPECT_EQ((*two)[1].change, file_change::remove);
  EXPECT_EQ(apply_diff((*two)[1], "a\n").value(), "");
  EXPECT_EQ(apply_diff((*two)[2], "").value(), "a\n");
}

TEST(unified_diff, has_lines_that_editors_and_other_systems_write) {
  EXPECT_EQ(applied(diff_of("@@ -1,2 +1,2 @@\r\n-one\r\n+1\r\n two\r\n")).value(),
            "1\ntwo\nthree\nfour\nfive\nsix\nseven\n");
  EXPECT_EQ(applied(diff_of("@@ -1,3 +1,3 @@\n-a\n+b\n\n c\n"), "a\n\nc\nd\n").value(),
            "b\n\nc\nd\n")
      << "a blank line of context has lost its blank";
  EXPECT_EQ(applied(diff_of("@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n"), "a").value(),
            "b\n");
}

// -- against git --------------------------------------------------------------------------------

struct drawn {
  std::string before, after, there; ///< the diff is of the first two, and is applied to the third
};

class cases {
public:
  explicit cases(unsigned seed) : random_(seed) {}

  drawn next() {
    std::vector<std::string> lines;
    for (auto i = 0U; i < 1 + below(30); ++i) lines.push_back(word());
    auto after = edited(lines, 1 + below(4));
    auto there = lines;
    if (below(2) == 0) there = edited(lines, 1 + below(2));
    return {joined(lines), joined(after), joined(there)};
  }

private:
  unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }
  // So few words that context stands in several places.
  std::string word() { return std::string(1 + below(2), static_cast<char>('a' + below(4))); }

  std::vector<std::string> edited(std::vector<std::string> x, unsigned times) {
    for (auto i = 0U; i < times; ++i) {
      auto at = x.begin() + below(static_cast<unsigned>(x.size() + 1));
      auto what = below(3);
      if (what == 0 || at == x.end())
        x.insert(at, word());
      else if (what == 1)
        x.erase(at);
      else
        *at = word();
    }
    return x;
  }

  std::string joined(const std::vector<std::string>& x) {
    std::string result;
    for (const auto& line : x) result += line + "\n";
    if (!result.empty() && below(8) == 0) result.pop_back();
    return result;
  }

  std::mt19937 random_;
};

class git_folder : public testing::Test {
protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "patch-" + std::to_string(::getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_ + "/a");
    fs::create_directories(folder_ + "/b");
    if (run("git --version") != 0) GTEST_SKIP() << "there is no git";
  }
  void TearDown() override { fs::remove_all(folder_); }

  int run(const std::string& command) {
    return std::system(("cd " + folder_ + " && " + command + " > out.txt 2> err.txt").c_str());
  }
  void write(const std::string& name, const std::string& text) {
    std::ofstream{folder_ + "/" + name, std::ios::binary} << text;
  }
  std::string read(const std::string& name) {
    std::ostringstream text;
    text << std::ifstream{folder_ + "/" + name, std::ios::binary}.rdbuf();
    return text.str();
  }
  bool has(const std::string& name) { return fs::exists(folder_ + "/" + name); }

  std::string folder_;
};

// KERNELMILL_PATCHES: how many.
TEST_F(git_folder, random_diffs_end_as_with_git_apply) {
  const char* wanted = std::getenv("KERNELMILL_PATCHES");
  auto count = wanted != nullptr ? std::stoi(wanted) : 400;
  cases all{static_cast<unsigned>(count)};
  std::vector<drawn> kept;
  while (static_cast<int>(kept.size()) < count) {
    auto x = all.next();
    if (x.before == x.after || x.before.empty() || x.after.empty() || x.there.empty()) continue;
    // git takes a last line without its end for one that has it, and joins it to the next.
    if (!x.before.ends_with('\n') && x.there != x.before) continue;
    auto name = "f" + std::to_string(kept.size());
    write("a/" + name, x.before);
    write("b/" + name, x.after);
    write(name, x.there);
    kept.push_back(std::move(x));
  }
  run("git diff --no-index --no-prefix a b"); // its code says that there are differences
  auto diff = read("out.txt");
  // "a/f1 b/f1" are then names of one file for git apply.
  write("all.diff", diff);
  run("git init -q . && git apply --recount --reject -p1 all.diff");
  auto parsed = parse_unified_diff(diff);
  ASSERT_TRUE(parsed) << parsed.error().message;
  ASSERT_EQ(parsed->size(), kept.size());
  int applied = 0;
  for (const auto& change : *parsed) {
    auto number = std::stoul(change.path.substr(1));
    auto ours = apply_diff(change, kept[number].there);
    bool by_git = !has(change.path + ".rej");
    ASSERT_EQ(ours.has_value(), by_git) << change.path << "\n"
                                        << kept[number].there << "\n"
                                        << kept[number].before << "\n"
                                        << kept[number].after;
    if (ours) {
      ASSERT_EQ(*ours, read(change.path)) << change.path;
    }
    applied += by_git ? 1 : 0;
  }
  EXPECT_GT(applied, count / 4);
  EXPECT_LT(applied, count);
}

// -- search and replace -------------------------------------------------------------------------

std::string block(const std::string& search, const std::string& replace) {
  return "<<<<<<< SEARCH\n" + search + "=======\n" + replace + ">>>>>>> REPLACE\n";
}

TEST(search_replace, replaces_lines_that_are_there_once) {
  EXPECT_EQ(apply_search(block("two\nthree\n", "2\n") + "\n" + block("six\n", ""), base).value(),
            "one\n2\nfour\nfive\nseven\n");
  EXPECT_EQ(apply_search(block("b\n", "c\n"), "a\nb").value(), "a\nc");
  EXPECT_EQ(apply_search(block("b\r\n", "c\r\n"), "a\nb\n").value(), "a\nc\n");
  EXPECT_TRUE(looks_like_search("Here:\n" + block("a\n", "b\n")));
  EXPECT_FALSE(looks_like_search("x <<<<<<< SEARCH\n"));
}

TEST(search_replace, refuses_what_is_not_there_or_several_times) {
  for (const auto& [text, says] : std::vector<std::pair<std::string, const char*>>{
           {block("Two\n", "2\n"), "block 1: the lines of its SEARCH are not"},
           {block("wo\n", "2\n"), "are not"},
           {block("two\n", "2\n") + block("two\n", "2\n"), "block 2"},
           {block("", "2\n"), "empty"},
           {"", "no block"},
           {"text\n" + block("two\n", "2\n"), "between its blocks"},
           {"<<<<<<< SEARCH\ntwo\n>>>>>>> REPLACE\n", "block 1 has no ======="},
           {"<<<<<<< SEARCH\ntwo\n=======\n2\n", "block 1 has no end"},
       }) {
    auto result = apply_search(text, base);
    ASSERT_FALSE(result) << text;
    EXPECT_THAT(result.error().message, HasSubstr(says)) << text;
    EXPECT_EQ(result.error().cls, fault_class::policy);
  }
  auto twice = apply_search(block("a\n", "b\n"), "a\nx\na\n");
  ASSERT_FALSE(twice);
  EXPECT_THAT(twice.error().message, HasSubstr("2 times"));
}

TEST(answered_patch, is_what_stands_between_its_tags) {
  EXPECT_FALSE(patch_of_answer("<KERNEL>int a;</KERNEL>"));
  EXPECT_FALSE(patch_of_answer("<think><PATCH>a</PATCH></think> no"));
  EXPECT_FALSE(patch_of_answer("<PATCH>a"));
  EXPECT_FALSE(patch_of_answer("<PATCH>a</PATCH><PATCH>b</PATCH>"));
  EXPECT_EQ(patch_of_answer("<think>x</think>\n<PATCH>\na\n</PATCH>"), "a\n");
  EXPECT_EQ(patch_of_answer("<PATCH>\n```diff\n-a\n+b\n```\n</PATCH>"), "-a\n+b\n");
}

TEST(answered_patch, takes_both_forms_for_one_file) {
  const std::string three = "one\ntwo\nthree\n";
  const auto* diff = "--- a/x.cu\n+++ b/x.cu\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n";
  EXPECT_EQ(apply_patch(block("two\n", "2\n"), three).value(), "one\n2\nthree\n");
  EXPECT_EQ(apply_patch(diff, three).value(), "one\n2\nthree\n");
  auto created = apply_patch("--- /dev/null\n+++ b/y\n@@ -0,0 +1 @@\n+x\n", three);
  ASSERT_FALSE(created);
  EXPECT_THAT(created.error().message, HasSubstr("one file"));
}

// A compiler would read the program up to the NUL; what is stored and compared would be another.
TEST(answered_patch, leaves_a_program_and_no_nul) {
  auto with_nul = block("two\n", std::string{"2\0x\n", 4});
  EXPECT_THAT(apply_patch(with_nul, "two\n").error().message, HasSubstr("NUL"));
  EXPECT_THAT(apply_patch(block("two\n", ""), "two\n").error().message, HasSubstr("nothing"));
}

// A program of equal lines and a hunk of such: nearly each place is compared to its end.
TEST(answered_patch, takes_no_endless_time_on_equal_lines) {
  auto why_not = [](size_t lines, size_t of_hunk) {
    std::string base(lines, '\n'), hunk = "--- a/x\n+++ b/x\n@@ -9 +9 @@\n";
    hunk += std::string(of_hunk, '\n') + "-x\n y\n";
    auto patched = apply_patch(hunk, base);
    return patched ? "it was applied" : patched.error().message;
  };
  // 10^10 comparisons, of which it makes 2 * 10^7; below that, it looks everywhere.
  EXPECT_THAT(why_not(250'000, 50'000), HasSubstr("was given up"));
  EXPECT_THAT(why_not(5'000, 3'000), HasSubstr("are not in the program"));
  EXPECT_THAT(why_not(40'000, 3'000), HasSubstr("was given up"));
}

} // namespace text_patch_test

} // namespace kernelmill
