#pragma once

#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "messages/base/json_value.hpp"
#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {

/// A head and a node with one compiler and one slot.
class small_cluster {
public:
  explicit small_cluster(const std::string& root) : root_(root) { start_head("127.0.0.1:0"); }

  void kill_and_restart_head() {
    head_->stop(SIGKILL);
    start_head(address_);
  }

  void start_node() {
    node_.emplace(std::vector<std::string>{"node", "--head", address_, "--insecure-loopback",
                                           "--name", "worker", "--compilers", "1",
                                           "evaluation.python=/bin/false", "evaluation.slots=1"});
    node_->wait_for_error("joined the head");
  }

  program_result ask(std::vector<std::string> words) {
    words.insert(words.end(), {"--head", address_, "--insecure-loopback"});
    return kernelmill(words);
  }

  program_result submit(std::vector<std::string> words) {
    words.insert(words.begin(),
                 {"submit", "quickstart", "tasks.ids=[\"native/row_sum\"]", "tasks.max_turns=1",
                  "evaluation.timing.enabled=false", "profile.enabled=false", "--json"});
    return ask(std::move(words));
  }

  /// Submits a run that lasts; returns its state when its first episode has ended.
  nlohmann::json begin_long_run(const std::string& name, int group_size) {
    auto x = submit({"run.name=" + name, "tasks.ids=[\"native/*\"]",
                     "tasks.group_size=" + std::to_string(group_size)});
    EXPECT_EQ(x.code, 0) << x.err;
    auto state = state_of(name);
    while (state["state"] == "running" && state["ended"] == 0) state = state_of(name);
    return state;
  }

  void kill_node() { node_.reset(); }
  const std::string& address() const { return address_; }

  nlohmann::json state_of(const std::string& run) { return states_of({run})[0]; }

  /// Those of several runs at one moment.
  std::vector<nlohmann::json> states_of(const std::vector<std::string>& runs) {
    auto status = ask({"status", "--json"}).document();
    std::vector<nlohmann::json> result;
    for (auto& run : runs) {
      result.push_back({{"state", "unknown"}, {"ended", -1}});
      for (auto& x : status["runs"])
        if (x["run"] == run) result.back() = x;
    }
    return result;
  }

  int node_number() const { return node_->number(); }
  bool node_runs() const { return node_->running(); }
  int stop_node() { return node_->stop(0).code; }

  program_result stop() { return head_->stop(SIGTERM); }

private:
  void start_head(const std::string& at) {
    head_.emplace(
        std::vector<std::string>{"head", "--listen", at, "--insecure-loopback", "--root", root_});
    address_ = head_->first_line();
    while (!address_.empty() && address_.back() == '\n') address_.pop_back();
    EXPECT_THAT(address_, testing::HasSubstr("127.0.0.1:"));
  }

  std::string root_;
  std::optional<running_program> head_;
  std::string address_;
  std::optional<running_program> node_;
};

} // namespace kernelmill::test
