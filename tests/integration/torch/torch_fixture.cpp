#include "torch_fixture.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

namespace kernelmill {

namespace fs = std::filesystem;

struct torch_fixture::world {
  std::string directory;
  spawner processes;
  std::string python;
  std::optional<referee_client> referee;
  std::map<std::string, std::string> tasks;
  int sources = 0;
};

torch_fixture::world* torch_fixture::world_ = nullptr;

const char* const linear_problem = R"(
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, n, m):
        super().__init__()
        self.linear = nn.Linear(n, m)

    def forward(self, x):
        return torch.relu(self.linear(x))


def get_inputs():
    return [torch.rand(64, 96)]


def get_init_inputs():
    return [96, 32]
)";

std::string linear_answer(const std::string& body, const std::string& before) {
  std::string text = "import os\nimport torch\nimport torch.nn as nn\n" + before +
                     "\n\nclass ModelNew(nn.Module):\n    def __init__(self, n, m):\n"
                     "        super().__init__()\n        self.linear = nn.Linear(n, m)\n"
                     "        self.calls = 0\n\n    def forward(self, x):\n";
  size_t at = 0;
  while (at < body.size()) {
    auto end = std::min(body.find('\n', at), body.size());
    text += "        " + body.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return text;
}

std::vector<std::string> rules_of(const Message<wire::EvaluateResult>& x) {
  std::vector<std::string> result;
  for (auto finding : x.open()->getFindings()) result.emplace_back(finding.getRule());
  return result;
}

std::string summary(const Message<wire::EvaluateResult>& result) {
  auto x = result.open();
  std::string text = std::string{x->getFault().getCategory()} + ": " +
                     x->getFault().getMessage().cStr() + " | " + x->getTiming().getNote().cStr() +
                     " | printed: " + x->getOutput().cStr();
  for (auto finding : x->getFindings())
    text += std::string{" | "} + finding.getRule().cStr() + ": " + finding.getEvidence().cStr();
  return text;
}

namespace {

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool has_torch(spawner& processes, const std::string& python) {
  process_spec spec;
  spec.argv = {python, "-c", "import torch"};
  spec.environment = {"PATH=/usr/bin:/bin", "HOME=/tmp"};
  auto started = processes.start(spec);
  if (!started) return false;
  auto status = started->wait(120'000);
  return status && status->code == 0;
}

} // namespace

void torch_fixture::SetUpTestSuite() {
  auto programs = from_environment("KERNELMILL_BIN_DIR");
  if (programs.empty())
    throw std::runtime_error("KERNELMILL_BIN_DIR is not set; run this by ctest");
  auto processes = spawner::launch(programs + "/kernelmill-spawner");
  ASSERT_TRUE(processes) << render(processes.error());
  std::string directory = testing::TempDir() + "kernelmill-torch-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  world_ = new world{directory, std::move(*processes), {}, {}, {}, 0};
  for (const auto& python :
       {from_environment("KERNELMILL_PYTHON"), std::string{"/usr/bin/python3"}})
    if (world_->python.empty() && !python.empty() && has_torch(world_->processes, python))
      world_->python = python;
  if (world_->python.empty()) return;
  referee_options options;
  options.cache_directory = directory + "/cache";
  options.pool = 1;
  options.python = world_->python;
  auto referee =
      referee_client::launch(world_->processes, programs + "/kernelmill-referee", options);
  ASSERT_TRUE(referee) << render(referee.error());
  world_->referee.emplace(std::move(*referee));
}

void torch_fixture::TearDownTestSuite() {
  if (world_ == nullptr) return;
  fs::remove_all(world_->directory);
  delete world_;
  world_ = nullptr;
}

void torch_fixture::SetUp() {
  if (world_->python.empty())
    GTEST_SKIP() << "no Python here has torch: apt install python3-torch, or set KERNELMILL_PYTHON";
}

namespace {

std::string folder_of(const std::string& directory, size_t number, const std::string& problem,
                      const std::string& keys) {
  auto id = "torch/p" + std::to_string(number);
  auto folder = directory + "/tasks/" + id;
  fs::create_directories(folder);
  std::ofstream{folder + "/task.json"}
      << R"({"id": ")" << id
      << R"(", "title": "A problem", "verb": "optimize", "operator_family": "fusion", "contract": "torch",
             "difficulty": "easy", "backends": ["cpu", "cuda"])"
      << keys << "}";
  std::ofstream{folder + "/prompt.md"} << "Make it fast.\n";
  std::ofstream{folder + "/problem.py"} << problem;
  return folder;
}

} // namespace

Message<wire::EvaluateResult> torch_fixture::evaluate(const std::string& problem,
                                                      const std::string& source,
                                                      const request_change& change) {
  auto& folder = world_->tasks[problem + keys_];
  if (folder.empty()) folder = folder_of(world_->directory, world_->tasks.size(), problem, keys_);
  auto path = world_->directory + "/source-" + std::to_string(world_->sources++);
  std::ofstream{path} << source;
  auto request = build<wire::EvaluateRequest>([&](wire::EvaluateRequest::Builder x) {
    x.setTaskDir(folder);
    x.setLibraryPath(path);
    x.setContract("torch");
    x.setDeadlineMs(60'000);
    x.initTiming().setEnabled(false);
    if (change) change(x);
  });
  auto result = world_->referee->evaluate(request, 300'000);
  if (!result) throw std::runtime_error(render(result.error()));
  return *result;
}

std::vector<std::string> torch_fixture::check(const std::string& problem) {
  auto folder = folder_of(world_->directory, world_->tasks.size() + 1000, problem, keys_);
  world_->tasks["check " + problem + keys_] = folder;
  auto request =
      build<wire::CheckRequest>([&](wire::CheckRequest::Builder x) { x.setTaskDir(folder); });
  auto result = world_->referee->check(request, 300'000);
  if (!result) throw std::runtime_error(render(result.error()));
  auto open = result->open();
  std::vector<std::string> words;
  for (auto x : open->getProblems()) words.emplace_back(x);
  EXPECT_EQ(open->getOk(), words.empty());
  for (auto x : open->getNotes()) words.emplace_back(x);
  return words;
}

} // namespace kernelmill
