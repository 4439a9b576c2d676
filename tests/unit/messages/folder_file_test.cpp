#include "messages/folder_file.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

namespace kernelmill {
namespace folder_file_test {

using testing::HasSubstr;

class folder_file : public testing::Test {
protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "kernelmill-folder-XXXXXX";
    root_ = ::mkdtemp(name.data());
    std::filesystem::create_directories(root_ + "/task/parts");
    std::ofstream{root_ + "/secret"} << "of another\n";
    std::ofstream{root_ + "/task/text"} << "mine\n";
    std::ofstream{root_ + "/task/parts/text"} << "deeper\n";
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  // What is read through a link to `target`, or the error's category and words.
  std::string through(const std::string& target) {
    std::filesystem::remove(root_ + "/task/link");
    std::filesystem::create_symlink(target, root_ + "/task/link");
    auto text = read_in_folder(root_ + "/task", "link");
    return text ? *text : text.error().category + " " + text.error().message;
  }

  std::string root_;
};

TEST_F(folder_file, what_lies_in_it_is_read) {
  EXPECT_EQ(read_in_folder(root_ + "/task", "text").value_or(""), "mine\n");
  EXPECT_EQ(read_in_folder(root_ + "/task", "parts/text").value_or(""), "deeper\n");
  EXPECT_EQ(through("text"), "mine\n");
  EXPECT_EQ(through("parts/../text"), "mine\n");
  std::filesystem::create_symlink(root_ + "/task", root_ + "/other");
  EXPECT_EQ(read_in_folder(root_ + "/other", "text").value_or(""), "mine\n");
}

TEST_F(folder_file, links_that_lead_out_of_it_are_refused_by_name) {
  for (const std::string& target :
       {root_ + "/secret", std::string{"../secret"}, std::string{"/etc/shadow"},
        std::string{"/proc/self/environ"}, std::string{"/dev/zero"}})
    EXPECT_THAT(through(target), testing::AllOf(HasSubstr("bad_task"), HasSubstr("/task/link"),
                                                HasSubstr("leads out")))
        << target;
  std::filesystem::create_directory_symlink(root_, root_ + "/task/up");
  EXPECT_FALSE(read_in_folder(root_ + "/task", "up/secret"));
  EXPECT_FALSE(read_in_folder(root_ + "/task", "../secret"));
  EXPECT_FALSE(read_in_folder(root_ + "/task", root_ + "/secret"));
}

TEST_F(folder_file, what_is_no_file_is_refused_and_not_waited_for) {
  ASSERT_EQ(::mkfifo((root_ + "/task/pipe").c_str(), 0600), 0);
  EXPECT_EQ(read_in_folder(root_ + "/task", "pipe").error().category, "bad_task");
  EXPECT_EQ(read_in_folder(root_ + "/task", "parts").error().category, "bad_task");
  EXPECT_EQ(read_in_folder(root_ + "/task", "text", 2).error().category, "bad_task");
  EXPECT_EQ(read_in_folder(root_ + "/task", "none").error().category, "missing_file");
  EXPECT_EQ(read_in_folder(root_ + "/none", "text").error().category, "missing_file");
}

TEST_F(folder_file, a_link_that_leads_nowhere_is_there) {
  std::filesystem::create_symlink("nowhere", root_ + "/task/link");
  EXPECT_TRUE(is_in_folder(root_ + "/task", "link"));
  EXPECT_FALSE(is_in_folder(root_ + "/task", "nowhere"));
}

} // namespace folder_file_test
} // namespace kernelmill
