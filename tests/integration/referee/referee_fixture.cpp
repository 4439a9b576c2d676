#include "referee_fixture.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "messages/base/digest.hpp"

namespace kernelmill {

namespace fs = std::filesystem;

struct referee_fixture::world {
  std::string directory;
  spawner processes;
  std::optional<referee_client> referee;
  std::map<std::string, std::string> libraries;
  int tasks = 0;
};

referee_fixture::world* referee_fixture::world_ = nullptr;

const char* const honest_body = R"(
  for (int i = 0; i < rows; ++i) {
    float sum = 0;
    for (int j = 0; j < cols; ++j) sum += x[(long)i * cols + j];
    y[i] = sum;
  })";

namespace {

constexpr int patience_ms = 500'000; // below ctest's own limit

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr)
    throw std::runtime_error(std::string{name} + " is not set; run this by ctest");
  return value;
}

} // namespace

std::string row_sum(const std::string& body, const std::string& before) {
  return before + "\nextern \"C\" void solve(const float* x, float* y, int rows, int cols) {" +
         body + "}\n";
}

std::vector<std::string> critical_rules(wire::EvaluateResult::Reader x) {
  std::vector<std::string> result;
  for (auto finding : x.getFindings())
    if (finding.getSeverity() == wire::Severity::CRITICAL) result.push_back(finding.getRule());
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

void referee_fixture::SetUpTestSuite() {
  auto programs = from_environment("KERNELMILL_BIN_DIR");
  std::string directory = testing::TempDir() + "kernelmill-referee-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  auto processes = spawner::launch(programs + "/kernelmill-spawner");
  ASSERT_TRUE(processes) << render(processes.error());
  world_ = new world{directory, std::move(*processes), {}, {}, 0};
  auto referee = referee_client::launch(world_->processes, programs + "/kernelmill-referee",
                                        {{}, directory + "/cache", 1});
  ASSERT_TRUE(referee) << render(referee.error());
  world_->referee.emplace(std::move(*referee));
}

void referee_fixture::TearDownTestSuite() {
  if (world_ == nullptr) return;
  fs::remove_all(world_->directory);
  delete world_;
  world_ = nullptr;
}

std::string referee_fixture::task_directory() {
  return from_environment("KERNELMILL_SOURCE_DIR") + "/configs/tasks/native/row_sum";
}

std::string referee_fixture::build_library(const std::string& source) {
  auto& known = world_->libraries[source];
  if (!known.empty()) return known;
  auto path = world_->directory + "/candidate-" + std::to_string(world_->libraries.size());
  std::ofstream{path + ".cpp"} << source;
  process_spec spec;
  spec.argv = {"/usr/bin/g++", "-std=c++20", "-O2", "-march=native", "-fopenmp",   "-shared",
               "-fPIC",        "-w",         "-o",  path + ".so",    path + ".cpp"};
  spec.environment = {"PATH=/usr/bin:/bin"};
  auto compiler = world_->processes.start(spec);
  if (!compiler) throw std::runtime_error(render(compiler.error()));
  auto status = compiler->wait(patience_ms);
  if (!status || status->code != 0)
    throw std::runtime_error("the test's candidate does not compile:\n" + source);
  return known = path + ".so";
}

Message<wire::EvaluateResult> referee_fixture::evaluate(const std::string& source,
                                                        const request_change& change) {
  auto library = build_library(source);
  auto request = build<wire::EvaluateRequest>([&](wire::EvaluateRequest::Builder x) {
    x.setTaskDir(task_directory());
    x.setLibraryPath(library);
    x.setDeadlineMs(120'000); // of all calls; who hangs in one of them is ended by that call's own
    x.initTiming().setEnabled(false);
    if (change) change(x);
  });
  auto result = world_->referee->evaluate(request, patience_ms);
  if (!result) throw std::runtime_error(render(result.error()));
  return *result;
}

std::vector<std::string> referee_fixture::problems_of(const std::string& directory) {
  auto request =
      build<wire::CheckRequest>([&](wire::CheckRequest::Builder x) { x.setTaskDir(directory); });
  auto result = world_->referee->check(request, patience_ms);
  if (!result) throw std::runtime_error(render(result.error()));
  auto open = result->open();
  std::vector<std::string> problems;
  for (auto problem : open->getProblems()) problems.emplace_back(problem);
  EXPECT_EQ(open->getOk(), problems.empty());
  return problems;
}

std::string
referee_fixture::changed_task(const std::vector<std::pair<std::string, std::string>>& files) {
  auto folder = world_->directory + "/tasks-" + std::to_string(world_->tasks++) + "/native/row_sum";
  fs::create_directories(folder);
  fs::copy(task_directory(), folder, fs::copy_options::recursive);
  for (const auto& [name, text] : files) std::ofstream{folder + "/" + name} << text;
  return folder;
}

} // namespace kernelmill
