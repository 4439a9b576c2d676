#include "actors/episode/patch/make_diff.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <vector>

#include <gtest/gtest.h>

#include "messages/base/files.hpp"

namespace kernelmill {
namespace make_diff_test {

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> result;
  for (size_t at = 0; at < text.size();) {
    auto end = std::min(text.find('\n', at), text.size() - 1) + 1;
    result.push_back(text.substr(at, end - at));
    at = end;
  }
  return result;
}

/// What `patch` does, by the numbers of each hunk; fails when a line that should be there is not.
std::string patched(const std::string& a, const std::string& diff) {
  auto from = split(a);
  auto lines = split(diff);
  std::string result;
  size_t at = 0;
  for (size_t i = 2; i < lines.size(); ++i) {
    if (lines[i].starts_with("@@")) {
      size_t start = 0, count = 1;
      std::sscanf(lines[i].c_str(), "@@ -%zu,%zu", &start, &count);
      auto first = count == 0 ? start : start - 1;
      while (at < first) result += from.at(at++);
      continue;
    }
    if (lines[i].starts_with("\\")) continue;
    auto text = lines[i].substr(1);
    bool cut = i + 1 < lines.size() && lines[i + 1].starts_with("\\");
    if (cut) text.pop_back();
    if (lines[i][0] != '+') {
      EXPECT_EQ(from.at(at++), text) << diff;
    }
    if (lines[i][0] != '-') result += text;
  }
  while (at < from.size()) result += from[at++];
  return result;
}

size_t changes(const std::string& diff) {
  size_t result = 0;
  for (const auto& line : split(diff))
    result +=
        (line[0] == '+' || line[0] == '-') && !line.starts_with("+++") && !line.starts_with("---");
  return result;
}

TEST(unified_diff, of_equal_texts_is_empty) {
  EXPECT_EQ(unified_diff("", "", "a", "b"), "");
  EXPECT_EQ(unified_diff("x\ny", "x\ny", "a", "b"), "");
}

TEST(unified_diff, is_what_diff_writes) {
  std::string a = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n";
  std::string b = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16";
  EXPECT_EQ(unified_diff(a, b, "a", "b"), "--- a\n+++ b\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n"
                                          " 6\n 7\n 8\n@@ -13,3 +13,4 @@\n 13\n 14\n 15\n+16\n"
                                          "\\ No newline at end of file\n");
  EXPECT_EQ(unified_diff("", "x\n", "a", "b"), "--- a\n+++ b\n@@ -0,0 +1 @@\n+x\n");
  EXPECT_EQ(unified_diff("x\n", "", "a", "b"), "--- a\n+++ b\n@@ -1 +0,0 @@\n-x\n");
}

TEST(unified_diff, leads_from_one_text_to_the_other_by_few_lines) {
  std::mt19937 random{7};
  for (int round = 0; round < 300; ++round) {
    std::string a, b;
    size_t edits = 0;
    auto line = [&] { return std::string(1, static_cast<char>('a' + random() % 4)) + "\n"; };
    for (size_t i = random() % 60; i > 0; --i) {
      auto x = line();
      a += x;
      switch (random() % 8) {
        case 0: ++edits; break; // removed
        case 1: b += x + line(), ++edits; break;
        case 2: b += line(), edits += 2; break;
        default: b += x;
      }
    }
    if (random() % 4 == 0 && !b.empty()) b.pop_back(), edits += 2;
    auto diff = unified_diff(a, b, "a", "b", random() % 4);
    if (a == b) continue;
    EXPECT_EQ(patched(a, diff), b) << "round " << round << "\n" << diff;
    EXPECT_LE(changes(diff), edits) << diff;
  }
}

TEST(unified_diff, of_long_texts_without_a_line_in_common_is_one_change) {
  std::string a, b;
  for (int i = 0; i < 20'000; ++i) {
    a += "a" + std::to_string(i) + "\n";
    b += "b" + std::to_string(i) + "\n";
  }
  auto diff = unified_diff(a, b, "a", "b");
  EXPECT_EQ(changes(diff), 40'000u);
  EXPECT_EQ(patched(a, diff), b);
}

TEST(unified_diff, of_long_texts_of_one_line_over_and_over_is_bounded) {
  std::string a, b;
  for (int i = 0; i < 300'000; ++i) {
    a += i % 5 == 0 ? "x\n" : "\n";
    b += i % 7 == 0 ? "x\n" : "\n";
  }
  EXPECT_EQ(patched(a, unified_diff(a, b, "a", "b")), b);
}

TEST(unified_diff, leads_git_apply_to_the_same_text) {
  if (std::system("git --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "git is not installed";
  std::string folder = (std::filesystem::temp_directory_path() / "make_diff_XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::mt19937 random{11};
  const std::vector<std::string> words{"a\n",    "b\n",    "\n",    "\r\n",
                                       "-- c\n", "++ d\n", "a b\n", " \n"};
  auto text = [&](size_t most) {
    std::string x;
    for (size_t i = random() % most; i > 0; --i) x += words[random() % words.size()];
    if (random() % 4 == 0 && !x.empty()) x.pop_back();
    return x;
  };
  std::string patch;
  std::vector<std::pair<std::string, std::string>> after; // by file
  for (int round = 0; round < 1000; ++round) {
    auto from = text(40);
    auto to = random() % 3 == 0 ? text(40) : from;
    for (size_t i = random() % 4; i > 0; --i) to.insert(random() % (to.size() + 1), text(3));
    auto name = "f" + std::to_string(round) + ".cu";
    std::ofstream{folder + "/" + name} << from;
    patch += unified_diff(from, to, name);
    after.emplace_back(name, to);
  }
  std::ofstream{folder + "/all.patch"} << patch;
  auto command = "cd '" + folder + "' && git apply --whitespace=nowarn all.patch";
  EXPECT_EQ(std::system(command.c_str()), 0);
  for (const auto& [name, to] : after) {
    auto made = read_whole(folder + "/" + name);
    EXPECT_TRUE(made && *made == to) << name;
  }
  std::filesystem::remove_all(folder);
}

} // namespace make_diff_test
} // namespace kernelmill
