#pragma once

// A task of the contract `program`, made here, with the real compiler, sandbox and referee.

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "messages/build.capnp.h"
#include "messages/error.hpp"
#include "messages/evaluate.capnp.h"
#include "messages/message.hpp"

namespace kernelmill {

/// What became of an answer.
struct program_verdict {
  bool compiled = false;
  bool correct = false;
  std::string category; ///< of the first fault; empty: none
  fault_class whose = fault_class::none;
  std::string message;
  std::string log;
  Message<wire::BuildResult> built;
  Message<wire::EvaluateResult> evaluated;
};

class program_fixture : public testing::Test {
protected:
  static void SetUpTestSuite();
  static void TearDownTestSuite();

  void SetUp() override;
  void TearDown() override;

  /// Writes a file of the task.
  void write(const std::string& name, const std::string& text) const;
  /// The task's document, with `key` of its part "program" set to JSON.
  void write_task(const std::string& key = {}, const std::string& value = {}) const;

  program_verdict judge(const std::string& answer, bool timed = false) const;
  /// What the referee's check says against the task.
  std::string problems() const;

  struct world;
  static world* world_;
  std::string root_;
};

} // namespace kernelmill
