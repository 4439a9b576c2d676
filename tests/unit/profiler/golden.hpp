#pragma once

// Reports as tools wrote them: the files of golden/.

#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace kernelmill {

inline std::string golden(const std::string& name) {
  std::ifstream in{KERNELMILL_TREE "/tests/unit/profiler/golden/" + name, std::ios::binary};
  EXPECT_TRUE(in) << name;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

} // namespace kernelmill
