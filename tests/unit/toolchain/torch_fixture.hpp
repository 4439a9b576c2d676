#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include <gmock/gmock.h>

#include "gpu/python/python_files.hpp"
#include "gpu/task/torch_artifact.hpp"
#include "gpu/toolchain/build_cache.hpp"
#include "gpu/toolchain/compiler_facts.hpp"
#include "gpu/toolchain/toolchain.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/files.hpp"
#include "messages/base/json_value.hpp"
#include "tests/unit/toolchain/temporary_directory.hpp"
#include "tests/unit/toolchain/toolchain_fixture.hpp"

namespace kernelmill {

inline constexpr const char* plain_model = R"(
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
)";

/// The parts of an artifact, as kernelmill_torch/artifact.py would read them.
inline torch_artifact unpack(const std::string& bytes) {
  torch_artifact result;
  std::string magic = torch_artifact_magic;
  if (!bytes.starts_with(magic)) return result;
  auto line = bytes.find('\n', magic.size());
  auto size = std::stoul(bytes.substr(magic.size(), line - magic.size()));
  auto header = nlohmann::json::parse(bytes.substr(line + 1, size));
  auto at = line + 1 + size;
  result.source = bytes.substr(at, header["source_bytes"].get<size_t>());
  result.triton_files = header["triton_files"];
  at += result.source.size();
  for (auto& x : header["extensions"]) {
    result.extensions.push_back({x["key"], x["name"], bytes.substr(at, x["bytes"].get<size_t>())});
    at += result.extensions.back().library.size();
  }
  return result;
}

/// A toolchain for Python candidates: Debian's torch on a CPU, or the torch of KERNELMILL_PYTHON
/// with nvcc. Skips where that is missing. Candidates run in the sandbox alone.
class torch_fixture : public testing::Test {
protected:
  explicit torch_fixture(const char* backend = "cpu")
      : backend_(backend), processes_(*spawner::launch(spawner_program())), walls_(processes_) {}

  std::string interpreter() const {
    auto* named = std::getenv("KERNELMILL_PYTHON");
    if (named && *named) return named;
    return backend_ == "cpu" ? "/usr/bin/python3" : "";
  }

  void SetUp() override {
    if (interpreter().empty()) GTEST_SKIP() << "KERNELMILL_PYTHON names no interpreter";
    auto python = ask_python(processes_, interpreter());
    if (!python) GTEST_SKIP() << render(python.error());
    if (backend_ == "cuda" && (python->torch_cuda.empty() || find_nvcc().empty()))
      GTEST_SKIP() << "no torch with CUDA, or no nvcc";
    python_ = *python;
    toolchain_options x;
    x.backend = backend_;
    x.python = interpreter();
    x.deadline_ms = 300'000;
    // Precompiled headers cost more than most of the tests; they are shared among them.
    x.cache_directory = cache_.path() + "/build";
    toolchain_.emplace(walls_, x);
  }

  Message<wire::BuildResult> build(const std::string& source, uint32_t deadline_ms = 0,
                                   const std::string& task = {}) {
    auto asked = kernelmill::build<wire::BuildRequest>([&](wire::BuildRequest::Builder x) {
      x.setTask("kernelbench/level1/19_ReLU");
      x.setContract("torch");
      x.setBackend(backend_);
      x.setSource(source);
      x.setSha256(sha256_hex(source));
      x.setDeadlineMs(deadline_ms);
      x.setTaskDir(task);
    });
    return toolchain_->build(*asked.open());
  }

  static std::string category(const Message<wire::BuildResult>& x) {
    return x.open()->getFault().getCategory();
  }
  static std::string message(const Message<wire::BuildResult>& x) {
    auto view = x.open();
    return std::string{view->getFault().getMessage().cStr()} + "\n" + view->getLog().cStr();
  }

  static torch_artifact artifact(const Message<wire::BuildResult>& x) {
    return unpack(read_whole(std::string{x.open()->getLibraryPath()}).value_or(""));
  }

  std::string backend_;
  temporary_directory cache_;
  spawner processes_;
  sandbox walls_;
  python_facts python_;
  std::optional<native_toolchain> toolchain_;
};

} // namespace kernelmill
