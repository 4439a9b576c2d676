#pragma once

// A folder of made-up problems, an importer that reads it, and what becomes of them.

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/task/task.hpp"
#include "launch/import/suites.hpp"
#include "launch/import/task_writer.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::test {

class suite_folder : public testing::Test {
protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "kernelmill-suite-XXXXXX";
    root_ = ::mkdtemp(name.data());
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  /// Writes a file below the suite's folder.
  std::string write(const std::string& name, const std::string& text) {
    auto path = root_ + "/suite/" + name;
    std::filesystem::create_directories(std::filesystem::path{path}.parent_path());
    std::ofstream{path, std::ios::binary} << text;
    return path;
  }

  expected<suite_reading> read(const char* suite, const suite_options& options = {}) {
    return suite_of(suite).read(root_ + "/suite", options);
  }

  /// Why a problem was refused; "imported" where it was not, "" where it is unknown.
  static std::string fate_of(const suite_reading& reading, const std::string& problem) {
    for (const auto& x : reading.refused)
      if (x.place == problem) return x.reason;
    for (const auto& x : reading.tasks)
      if (x.id.ends_with("/" + problem)) return "imported";
    return {};
  }

  /// The task as the lanes see it, after it was written.
  task_ptr load(const suite_task& x) {
    auto writer = task_writer::open(root_ + "/tasks");
    EXPECT_TRUE(writer);
    EXPECT_TRUE(writer->write(x.id, x.files, true));
    auto loaded = load_task(root_ + "/tasks", x.id);
    EXPECT_TRUE(loaded) << render(loaded.error());
    return loaded ? *loaded : nullptr;
  }

  static std::string file_of(const suite_task& x, const std::string& name) {
    for (const auto& file : x.files)
      if (file.name == name) return file.text;
    return {};
  }

  static nlohmann::json document_of(const suite_task& x) {
    return nlohmann::json::parse(file_of(x, "task.json"));
  }

  std::string root_;
};

} // namespace kernelmill::test
