#pragma once

// Real processes: a referee with its two Python processes, judging modules written here. The first
// of $KERNELMILL_PYTHON, python3 and /usr/bin/python3 that has torch is used; without any, tests
// skip. What a candidate does, it does behind the walls.

#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/referee/referee_client.hpp"

namespace kernelmill {

class torch_fixture : public testing::Test {
protected:
  static void SetUpTestSuite();
  static void TearDownTestSuite();
  void SetUp() override;

  using request_change = std::function<void(wire::EvaluateRequest::Builder)>;

  /// Has a module judged for a problem, without timing unless changed.
  Message<wire::EvaluateResult> evaluate(const std::string& problem, const std::string& source,
                                         const request_change& change = {});

  /// What `task check` says of a problem: problems first, then notes.
  std::vector<std::string> check(const std::string& problem);

  std::string keys_; ///< more of task.json: ", \"mutates\": [1]"

  struct world;
  static world* world_;
};

/// relu(x @ W + b) on 64 x 96 floats, and 32 outputs a row.
extern const char* const linear_problem;

/// The same as a ModelNew; `body` is that of forward, with x and self.linear.
std::string linear_answer(const std::string& body, const std::string& before = "");

std::vector<std::string> rules_of(const Message<wire::EvaluateResult>& x);

/// Fault, findings and output in one text, for failing tests.
std::string summary(const Message<wire::EvaluateResult>& x);

} // namespace kernelmill
