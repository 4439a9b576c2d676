#include "tests/fuzz/support.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "messages/base/json_value.hpp"
#include "messages/base/text.hpp"

namespace kernelmill::fuzz {

void promise(bool kept, const char* words) {
  if (kept) return;
  std::fprintf(stderr, "broken promise: %s\n", words);
  std::abort();
}

void check_error(const error& x) {
  promise(x.cls != fault_class::none, "an error has a class");
  promise(!x.category.empty(), "an error has a category");
  promise(!x.message.empty(), "an error has a message");
}

unsigned char take_byte(std::string_view& from) {
  if (from.empty()) return 0;
  auto x = static_cast<unsigned char>(from.front());
  from.remove_prefix(1);
  return x;
}

std::vector<std::string> lines_of(std::string_view text, size_t most) {
  std::vector<std::string> result;
  while (!text.empty() && result.size() < most) result.emplace_back(next_line(text));
  return result;
}

memory_file_path::memory_file_path(std::string_view bytes)
    : fd_(::memfd_create("fuzz", MFD_CLOEXEC)), path_("/proc/self/fd/" + std::to_string(fd_)) {
  promise(fd_ >= 0, "there is room for a memory file");
  while (!bytes.empty()) {
    auto n = ::write(fd_, bytes.data(), bytes.size());
    promise(n > 0, "a memory file can be written");
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

memory_file_path::~memory_file_path() {
  ::close(fd_);
}

const std::string& scratch_folder() {
  struct folder {
    std::string path = "/dev/shm/kernelmill-fuzz-" + std::to_string(::getpid());
    folder() { std::filesystem::create_directories(path); }
    ~folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  };
  static const folder one;
  return one.path;
}

void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream out{path, std::ios::binary};
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

void read_all(capnp::DynamicStruct::Reader x) {
  auto text = to_json(x).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  promise(!text.empty(), "a message can be shown");
}

// From one address after another: what is closed keeps its port for a minute.
int call_loopback(uint16_t port) {
  static uint32_t count = 0;
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in from{};
  from.sin_family = AF_INET;
  from.sin_addr.s_addr = htonl(0x7f000002 + count++ % 60000);
  ::bind(fd, reinterpret_cast<sockaddr*>(&from), sizeof from);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  promise(::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0, "the server accepts");
  return fd;
}

// libFuzzer looks at its clock by a signal, which ends poll() early.
bool poll_a_minute(pollfd& entry) {
  int n = 0;
  do n = ::poll(&entry, 1, 60'000);
  while (n < 0 && errno == EINTR);
  return n > 0;
}

} // namespace kernelmill::fuzz
