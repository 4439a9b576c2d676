#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "messages/base/files.hpp"
#include "messages/categories.hpp"

namespace kernelmill {
namespace categories_test {

namespace fs = std::filesystem;

constexpr fault_class classes[] = {fault_class::none, fault_class::policy, fault_class::candidate,
                                   fault_class::configuration, fault_class::infrastructure};

// Where the sources name a class with a category, as `configuration_error("usage", ...)`.
using places = std::map<std::pair<std::string, std::string>, std::string>;

void collect(const fs::path& file, places& found) {
  static const std::regex named{
      R"re((?:(\w+)_error\(|fault_class::(\w+),|Fault\(\s*"(\w+)",)\s*"([a-z_0-9]+)")re"};
  auto text = read_whole(file.string()).value_or("");
  for (std::sregex_iterator x{text.begin(), text.end(), named}, end; x != end; ++x) {
    auto cls = (*x)[1].str() + (*x)[2].str() + (*x)[3].str();
    for (auto known : classes)
      if (to_string(known) == cls) found.emplace(std::pair{cls, (*x)[4].str()}, file.string());
  }
}

TEST(categories, have_every_one_of_the_sources_with_its_class) {
  const char* root = std::getenv("KERNELMILL_SOURCE_DIR");
  if (root == nullptr) GTEST_SKIP() << "KERNELMILL_SOURCE_DIR is not set";
  places found;
  for (auto folder : {"actors", "gpu", "launch", "messages", "retrieval", "storage"})
    for (const auto& entry : fs::recursive_directory_iterator{fs::path{root} / folder})
      if (auto kind = entry.path().extension(); kind == ".cpp" || kind == ".hpp" || kind == ".py")
        collect(entry.path(), found);
  EXPECT_GT(found.size(), 150u);
  for (const auto& [name, file] : found) {
    auto known = std::find_if(std::begin(classes), std::end(classes),
                              [&](auto cls) { return to_string(cls) == name.first; });
    if (*known == fault_class::none) continue; // "cancelled" and the like: no error
    EXPECT_NE(find_category(*known, name.second), nullptr)
        << "messages/categories*.cpp lacks " << name.first << ' ' << name.second << " of " << file;
  }
}

TEST(categories, are_each_named_once_in_a_class_and_say_what_to_do) {
  for (auto cls : classes) {
    std::set<std::string_view> names;
    for (const auto& x : categories_of(cls)) {
      EXPECT_TRUE(names.insert(x.name).second) << x.name << " is there twice";
      EXPECT_FALSE(x.meaning.empty()) << x.name;
      EXPECT_FALSE(x.next.empty()) << x.name;
    }
  }
}

TEST(categories, of_candidates_tell_a_policy_what_to_do) {
  for (auto cls : {fault_class::none, fault_class::candidate})
    for (const auto& x : categories_of(cls)) EXPECT_FALSE(x.advice.empty()) << x.name;
  EXPECT_EQ(advice_of("exited"), "Return from the function; never end the process.");
  EXPECT_EQ(advice_of("disk_full"), "");
}

TEST(categories, rules_of_findings_are_told_in_words) {
  for (const auto& x : finding_rules()) EXPECT_FALSE(x.told.empty()) << x.name;
  EXPECT_EQ(find_rule("no_such_rule"), nullptr);
}

} // namespace categories_test
} // namespace kernelmill
