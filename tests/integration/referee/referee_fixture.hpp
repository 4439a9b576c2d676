#pragma once

// Real processes: a spawner, a referee with its sandboxed candidates, and candidates built here.
// Building is all that happens to them outside the sandbox.

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/referee/referee_client.hpp"

namespace kernelmill {

class referee_fixture : public testing::Test {
protected:
  static void SetUpTestSuite();
  static void TearDownTestSuite();

  using request_change = std::function<void(wire::EvaluateRequest::Builder)>;

  /// Builds the source and has it evaluated for native/row_sum, without timing unless changed.
  Message<wire::EvaluateResult> evaluate(const std::string& source,
                                         const request_change& change = {});

  /// Writes the files of row_sum with the given ones replaced, into a folder of its own.
  std::string changed_task(const std::vector<std::pair<std::string, std::string>>& files);

  /// What the referee's check says against a task.
  std::vector<std::string> problems_of(const std::string& directory);

  static std::string task_directory();
  static std::string build_library(const std::string& source);

  struct world;
  static world* world_;
};

/// The rule names of all findings with severity critical.
std::vector<std::string> critical_rules(wire::EvaluateResult::Reader x);

/// Fault, findings and note in one text, for failing tests.
std::string summary(const Message<wire::EvaluateResult>& x);

/// A solve() for row_sum with this body.
std::string row_sum(const std::string& body, const std::string& before = "");

/// The honest body.
extern const char* const honest_body;

} // namespace kernelmill
