#pragma once

#include <filesystem>
#include <string>

#include <gmock/gmock.h>

#include "gpu/toolchain/toolchain.hpp"
#include "messages/base/digest.hpp"
#include "tests/unit/sandbox/spawner_program.hpp"
#include "tests/unit/toolchain/temporary_directory.hpp"

namespace kernelmill {

inline Message<wire::BuildRequest> build_request(const char* backend, const std::string& source,
                                                 uint32_t deadline_ms = 0) {
  return build<wire::BuildRequest>([&](wire::BuildRequest::Builder x) {
    x.setTask("row_sum");
    x.setContract("native");
    x.setBackend(backend);
    x.setSource(source);
    x.setSha256(sha256_hex(source));
    x.setDeadlineMs(deadline_ms);
  });
}

class toolchain_fixture : public testing::Test {
protected:
  using result = Message<wire::BuildResult>;

  toolchain_fixture()
      : processes_(*spawner::launch(spawner_program())), walls_(processes_),
        toolchain_(walls_, options()) {}

  toolchain_options options() {
    toolchain_options x;
    x.cache_directory = cache_.path() + "/build";
    return x;
  }

  static Message<wire::BuildRequest> request(const std::string& source, uint32_t deadline_ms = 0) {
    return build_request("cpu", source, deadline_ms);
  }

  result build(const std::string& source, uint32_t deadline_ms = 0) {
    auto asked = request(source, deadline_ms);
    return toolchain_.build(*asked.open());
  }

  temporary_directory cache_;
  spawner processes_;
  sandbox walls_;
  native_toolchain toolchain_;
};

} // namespace kernelmill
