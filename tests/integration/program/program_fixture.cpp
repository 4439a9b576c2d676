#include "tests/integration/program/program_fixture.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gpu/process/process.hpp"
#include "gpu/referee/referee_client.hpp"
#include "gpu/task/task.hpp"
#include "gpu/toolchain/toolchain.hpp"
#include "messages/base/json_value.hpp"
#include "messages/fault.hpp"

namespace kernelmill {

namespace fs = std::filesystem;

namespace {

constexpr int program_patience_ms = 400'000;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr)
    throw std::runtime_error(std::string{name} + " is not set; run this by ctest");
  return value;
}

} // namespace

struct program_fixture::world {
  std::string directory;
  spawner processes;
  std::unique_ptr<sandbox> walls;
  std::unique_ptr<native_toolchain> toolchain;
  std::unique_ptr<referee_client> referee;
};

program_fixture::world* program_fixture::world_ = nullptr;

void program_fixture::SetUpTestSuite() {
  auto programs = variable("KERNELMILL_BIN_DIR");
  std::string directory = testing::TempDir() + "kernelmill-program-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  auto processes = spawner::launch(programs + "/kernelmill-spawner");
  ASSERT_TRUE(processes) << render(processes.error());
  world_ = new world{directory, std::move(*processes), {}, {}, {}};
  world_->walls = std::make_unique<sandbox>(world_->processes);
  toolchain_options options;
  options.cache_directory = directory + "/builds";
  world_->toolchain = std::make_unique<native_toolchain>(*world_->walls, options);
  auto referee = referee_client::launch(world_->processes, programs + "/kernelmill-referee",
                                        {{}, directory + "/cache", 1});
  ASSERT_TRUE(referee) << render(referee.error());
  world_->referee = std::make_unique<referee_client>(std::move(*referee));
}

void program_fixture::TearDownTestSuite() {
  if (world_ == nullptr) return;
  fs::remove_all(world_->directory);
  delete world_;
  world_ = nullptr;
}

void program_fixture::SetUp() {
  ASSERT_NE(world_, nullptr);
  std::string name = world_->directory + "/tasks-XXXXXX";
  ASSERT_NE(::mkdtemp(name.data()), nullptr);
  root_ = name;
  write_task();
  write("prompt.md", "Add two numbers, and work.\n");
  write("context/include/add.h", "#pragma once\nint add(int, int);\nint work(int);\n");
  write("context/src/helper.cpp", "int helper() { return 3; }\n");
  write("tests/test/main.cpp", R"(#include <cassert>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include "add.h"
int main(int argc, char** argv) {
  for (int a = -3; a < 3; ++a)
    for (int b = 0; b < 40; ++b)
      if (add(a, b) != a + b) {
        std::printf("the secret case %d %d is wrong\n", a, b);
        std::exit(1);
      }
  assert(add(1 << 20, 1) == (1 << 20) + 1);
  if (argc > 1 && std::strcmp(argv[1], "--perf") == 0) {
    auto begin = std::chrono::steady_clock::now();
    if (work(400) != 400) return 2;
    std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - begin;
    std::printf("COMPUTE_EVAL_TIME_MS: %f\n", ms.count());
  }
  return 0;
}
)");
  write("baseline/solution.cpp", R"(#include "add.h"
#include <unistd.h>
int add(int a, int b) { return a + b; }
int work(int n) { usleep(100 * n); return n; }
)");
}

void program_fixture::TearDown() {
  std::error_code ignored;
  fs::remove_all(root_, ignored);
}

void program_fixture::write(const std::string& name, const std::string& text) const {
  auto path = fs::path{root_} / "own" / "add" / name;
  fs::create_directories(path.parent_path());
  std::ofstream{path} << text;
}

void program_fixture::write_task(const std::string& key, const std::string& value) const {
  nlohmann::json x = {
      {"schema_version", 1},
      {"id", "own/add"},
      {"title", "Add"},
      {"verb", "optimize"},
      {"operator_family", "other"},
      {"contract", "program"},
      {"backends", {"cpu"}},
      {"program",
       {{"build", "g++ -O1 -I include -o test.out solution.cpp src/*.cpp test/*.cpp"},
        {"test", "./test.out"},
        {"benchmark", "./test.out --perf"},
        {"timing", {{"mode", "custom"}}},
        {"timeout_s", 30},
        {"editable", {"src/helper.cpp"}},
        {"answer_file", "solution.cpp"}}}};
  if (!key.empty()) x["program"][key] = nlohmann::json::parse(value);
  write("task.json", x.dump());
}

program_verdict program_fixture::judge(const std::string& answer, bool timed) const {
  program_verdict result;
  auto loaded = load_task(root_, "own/add");
  if (!loaded) {
    result.category = loaded.error().category;
    result.message = loaded.error().message;
    return result;
  }
  const auto& what = **loaded;
  auto note = [&](wire::Fault::Reader fault) {
    auto x = fault_of(fault);
    result.category = x.category;
    result.whose = x.cls;
    result.message = x.message;
  };
  auto build_request = build<wire::BuildRequest>([&](wire::BuildRequest::Builder out) {
    out.setTask(what.id);
    out.setContract("program");
    out.setBackend("cpu");
    out.setSource(answer);
    out.setTaskDir(what.directory);
    out.setTaskDigest(what.digest);
  });
  result.built = world_->toolchain->build(*build_request.open());
  auto built = result.built.open();
  result.compiled = built->getCompiled();
  result.log = built->getLog().cStr();
  note(built->getFault());
  if (!result.compiled) return result;
  auto request = build<wire::EvaluateRequest>([&](wire::EvaluateRequest::Builder out) {
    out.setTaskDir(what.directory);
    out.setTaskDigest(what.digest);
    out.setTaskId(what.id);
    out.setContract("program");
    out.setCandidateSha256(built->getLibrarySha256());
    out.setLibraryPath(built->getLibraryPath());
    out.setLibrarySha256(built->getLibrarySha256());
    out.initTiming().setEnabled(timed);
    out.setDeadlineMs(program_patience_ms / 2);
  });
  auto evaluated = world_->referee->evaluate(request, program_patience_ms);
  if (!evaluated) {
    result.category = evaluated.error().category;
    result.whose = evaluated.error().cls;
    result.message = evaluated.error().message;
    return result;
  }
  result.evaluated = std::move(*evaluated);
  result.correct = result.evaluated.open()->getCorrect();
  note(result.evaluated.open()->getFault());
  return result;
}

std::string program_fixture::problems() const {
  auto request = build<wire::CheckRequest>(
      [&](wire::CheckRequest::Builder out) { out.setTaskDir(root_ + "/own/add"); });
  auto answer = world_->referee->check(request, program_patience_ms);
  if (!answer) return render(answer.error());
  std::string result;
  for (auto x : answer->open()->getProblems()) result += std::string{x.cStr()} + "\n";
  return result;
}

} // namespace kernelmill
