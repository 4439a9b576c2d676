#include "messages/base/source_text.hpp"

#include <gmock/gmock.h>

namespace kernelmill {
namespace source_text_test {

using namespace std::string_literals;

TEST(a_source, is_the_same_however_an_editor_saved_it) {
  const auto wanted = "int f() {\n  return 1; // na\xc3\xafve \xe2\x82\xac\n}\n"s;
  EXPECT_EQ(normal_source(wanted), wanted);
  EXPECT_EQ(normal_source("\xef\xbb\xbf" + wanted), wanted);
  EXPECT_EQ(normal_source("int f() {\r\n  return 1; // na\xc3\xafve \xe2\x82\xac\r\n}\r\n"),
            wanted);
  EXPECT_EQ(normal_source("a\rb\r"), "a\nb\n");
  EXPECT_EQ(normal_source(""), "");
}

TEST(a_source, in_utf16_is_known_by_its_mark) {
  EXPECT_EQ(normal_source("\xff\xfe"
                          "a\0\xac\x20\x3d\xd8\x00\xde\r\0\n\0"s),
            "a\xe2\x82\xac\xf0\x9f\x98\x80\n");
  EXPECT_EQ(normal_source("\xfe\xff\0a\x20\xac"s), "a\xe2\x82\xac");
  EXPECT_EQ(normal_source("\xff\xfe\x00\xd8"s), "\xef\xbf\xbd"); // half of a pair
}

TEST(a_source, that_is_no_utf8_is_latin1_where_it_is_none) {
  EXPECT_EQ(normal_source("// na\xefve \xc3\xa9"), "// na\xc3\xafve \xc3\xa9");
}

} // namespace source_text_test
} // namespace kernelmill
