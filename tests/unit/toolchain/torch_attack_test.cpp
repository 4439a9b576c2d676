// Modules that try what a candidate must not: each is answered, and nothing outside is changed.

#include <chrono>

#include "tests/unit/toolchain/torch_fixture.hpp"

namespace kernelmill {
namespace torch_attack_test {

using testing::HasSubstr;
using testing::Not;

class a_hostile_module : public torch_fixture {
protected:
  Message<wire::BuildResult> with_model(const std::string& code, uint32_t deadline_ms = 0) {
    return build("import torch, os, sys\n" + code + "\nclass ModelNew(torch.nn.Module): pass\n",
                 deadline_ms);
  }
};

TEST_F(a_hostile_module, reaches_no_network) {
  auto built = with_model("import socket\nsocket.create_connection(('127.0.0.1', 22))");
  EXPECT_EQ(category(built), "import_error") << message(built);
}

TEST_F(a_hostile_module, writes_nothing_outside_its_own_tmp) {
  auto built =
      with_model("import itertools\n"
                 "for p in ['/build/x', '/usr/x', '/kernelmill-python/x', '/x', '/dev/shm/x',\n"
                 "          '" +
                 cache_.path() +
                 "/x', '/kernelmill-python/kernelmill_torch/record.py']:\n"
                 "    try:\n"
                 "        open(p, 'w').write('x')\n"
                 "    except OSError:\n"
                 "        continue\n"
                 "    raise RuntimeError('wrote ' + p)\n"
                 "open('/tmp/x', 'w').write('x')");
  EXPECT_TRUE(built.open()->getCompiled()) << message(built);
  EXPECT_FALSE(std::filesystem::exists(cache_.path() + "/x"));
}

TEST_F(a_hostile_module, leaves_no_process_behind) {
  auto begin = std::chrono::steady_clock::now();
  auto built = with_model("import time\nif os.fork() == 0:\n    time.sleep(9999)\n    os._exit(0)");
  EXPECT_TRUE(built.open()->getCompiled()) << message(built);
  // A referee that waited for it would wait until the deadline, after 300 s.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds{250});
}

TEST_F(a_hostile_module, that_ends_its_process_is_told_so) {
  for (auto* code : {"os._exit(0)", "import ctypes\nctypes.string_at(0)"}) {
    auto built = with_model(code);
    EXPECT_EQ(category(built), "import_error") << code << message(built);
    EXPECT_THAT(message(built), HasSubstr("ended the process"));
  }
  auto built = with_model("sys.exit(0)");
  EXPECT_EQ(category(built), "import_error") << message(built);
  EXPECT_THAT(message(built), HasSubstr("SystemExit"));
}

// An empty report looks as if Python had not started, which would be a fault of ours.
TEST_F(a_hostile_module, that_empties_its_report_is_at_fault) {
  auto built =
      with_model("import glob\n"
                 "for name in glob.glob('/build/*'):\n"
                 "    try:\n        os.truncate(name, 0)\n    except OSError:\n        pass\n"
                 "for fd in range(3, 1024):\n"
                 "    try:\n        os.ftruncate(fd, 0)\n    except OSError:\n        pass\n"
                 "os._exit(0)");
  EXPECT_EQ(category(built), "import_error") << message(built);
  EXPECT_EQ(built.open()->getFault().getClass(), wire::FaultClass::CANDIDATE);
}

TEST_F(a_hostile_module, that_never_ends_is_too_slow) {
  auto built = with_model("while True: pass", 12'000);
  EXPECT_EQ(category(built), "compile_timeout") << message(built);
  EXPECT_EQ(built.open()->getFault().getClass(), wire::FaultClass::CANDIDATE);
}

// A forged report decides what is built into the forger's own artifact, and no more.
TEST_F(a_hostile_module, forges_no_more_than_its_own_requests) {
  for (auto* report : {"{}", "not json", "{\"stage\": \"imported\"}", "[]",
                       "{\"stage\":\"imported\",\"requests\":[{\"key\":\"../../"
                       "x\",\"request\":{}}],\"error\":null,"
                       "\"has_model_new\":true}"}) {
    auto built = with_model(std::string{"open('/proc/self/fd/10', 'ab').write(b'''"} + report +
                            "\\n''')\nos._exit(0)");
    EXPECT_EQ(category(built), "compile_error") << report << message(built);
    EXPECT_FALSE(built.open()->getCompiled());
  }
  auto built = with_model("print('{\"stage\": \"imported\"}', flush=True)\nos._exit(0)");
  EXPECT_EQ(category(built), "import_error") << message(built);
}

TEST_F(a_hostile_module, includes_no_file_of_the_machine) {
  auto built =
      with_model("from torch.utils.cpp_extension import load_inline\n"
                 "load_inline('x', '#include \"/etc/passwd\"\\n#include \"/build/../etc/shadow\"', "
                 "functions=[])");
  EXPECT_EQ(category(built), "compile_error") << message(built);
  EXPECT_THAT(message(built), Not(HasSubstr("root:")));
  EXPECT_THAT(message(built), HasSubstr("x.cpp_sources:1: "));
}

} // namespace torch_attack_test
} // namespace kernelmill
