#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include <gtest/gtest.h>

namespace kernelmill {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream in{path};
  return {std::istreambuf_iterator<char>{in}, {}};
}

// Returns the string literal that follows at `at`, blanks passed over; empty when there is none.
std::string literal(const std::string& text, size_t at) {
  while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at]))) ++at;
  if (at >= text.size() || text[at] != '"') return {};
  auto end = text.find('"', at + 1);
  return end == std::string::npos ? std::string{} : text.substr(at + 1, end - at - 1);
}

void collect(const fs::path& file, std::map<std::string, std::string>& found) {
  auto text = read(file);
  auto take = [&](size_t at) {
    auto category = literal(text, at);
    if (!category.empty()) found.emplace(category, file.string());
  };
  for (size_t at = text.find("_error("); at != std::string::npos; at = text.find("_error(", at)) {
    at += 7;
    for (std::string name : {"configuration", "infrastructure", "candidate", "policy"})
      if (at >= 7 + name.size() && text.compare(at - 7 - name.size(), name.size(), name) == 0)
        take(at);
  }
  for (size_t at = text.find("fault_class::"); at != std::string::npos;
       at = text.find("fault_class::", at + 1))
    if (auto comma = text.find_first_of(",;)}", at);
        comma != std::string::npos && text[comma] == ',')
      take(comma + 1);
}

TEST(errors_page, lists_every_category_of_the_sources) {
  const char* root = std::getenv("KERNELMILL_SOURCE_DIR");
  if (root == nullptr) GTEST_SKIP() << "KERNELMILL_SOURCE_DIR is not set";
  std::map<std::string, std::string> found;
  for (auto folder : {"actors", "gpu", "launch", "messages", "retrieval", "storage"})
    for (const auto& entry : fs::recursive_directory_iterator{fs::path{root} / folder})
      if (entry.path().extension() == ".cpp" || entry.path().extension() == ".hpp")
        collect(entry.path(), found);
  EXPECT_GT(found.size(), 50u);
  auto page = read(fs::path{root} / "docs/reference/errors.md");
  for (const auto& [category, file] : found)
    EXPECT_NE(page.find("| `" + category + "` |"), std::string::npos)
        << "docs/reference/errors.md lacks " << category << " of " << file;
}

} // namespace
} // namespace kernelmill
