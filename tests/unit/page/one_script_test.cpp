#include "launch/server/page/stored_page.hpp"

#include <gtest/gtest.h>

using namespace kernelmill;

TEST(OneScript, PutsAModuleBehindThoseThatItNeeds) {
  auto text = page::one_script({{"app.js", "import {get, put} from './api.js';\nget();\n"},
                                {"api.js", "const mine = 1;\nexport function get(x) { return x; }\n"
                                           "export const put = mine;\n"}});
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(*text, "'use strict';\n"
                   "const module_api = (() => {\n"
                   "const mine = 1;\nfunction get(x) { return x; }\nconst put = mine;\n"
                   "return {get, put};\n})();\n"
                   "const module_app = (() => {\n"
                   "const {get, put} = module_api;\n"
                   "get();\n"
                   "return {};\n})();\n");
}

TEST(OneScript, RefusesACircleAndWhatIsMissing) {
  auto circle = page::one_script({{"a.js", "import {b} from './b.js';\nexport const a = 1;\n"},
                                  {"b.js", "import {a} from './a.js';\nexport const b = 1;\n"}});
  ASSERT_FALSE(circle);
  EXPECT_EQ(circle.error().category, "config_inconsistent");
  EXPECT_FALSE(page::one_script({{"a.js", "import {b} from './b.js';\n"}}));
}
