#pragma once

// What a client and its kernelmill-spawner say to each other over a SOCK_SEQPACKET pair: one
// packet a request, one a reply, in the order asked. Descriptors ride beside the packets. The two
// ends are built together, so the format has a magic number and no versions.

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/process/process.hpp"

namespace kernelmill::spawn_protocol {

inline constexpr uint32_t magic = 0x6b6d7370;

/// The descriptor of the spawner's end of the pair.
inline constexpr int socket_fd = 3;

/// A packet is one socket buffer at most; Linux gives 208 KiB to an unprivileged process.
inline constexpr size_t max_packet = 128 << 10;

/// The kernel passes at most 253 descriptors with a packet.
inline constexpr size_t max_descriptors = 200;

/// The highest descriptor number that a child may ask for.
inline constexpr int max_descriptor_number = 1023;

/// What the spawner was doing for a child when a system call failed.
enum class step : int32_t {
  none,
  request,
  fork,
  descriptors,
  directory,
  limits,
  affinity,
  cgroup,
  exec
};

struct reply {
  uint32_t magic = spawn_protocol::magic;
  int32_t pid = -1; ///< below 0: it did not start, and step and cause say why
  step failed = step::none;
  int32_t cause = 0; ///< errno
};

class writer {
public:
  void number(uint64_t x) { bytes_.append(reinterpret_cast<const char*>(&x), sizeof x); }
  void text(std::string_view x) {
    number(x.size());
    bytes_.append(x);
    bytes_.push_back('\0'); // so that the reader can point into the packet
  }
  const std::string& bytes() const { return bytes_; }

private:
  std::string bytes_;
};

/// Reads what a writer wrote; after anything that does not fit, ok() is false and values are 0.
class reader {
public:
  reader(const char* bytes, size_t size) : at_(bytes), left_(size) {}

  uint64_t number() {
    uint64_t x = 0;
    if (!take(sizeof x)) return 0;
    std::memcpy(&x, at_ - sizeof x, sizeof x);
    return x;
  }
  /// A count of things that take at least 8 bytes each.
  size_t count() {
    auto n = number();
    if (n > left_ / 8) ok_ = false;
    return ok_ ? n : 0;
  }
  const char* text() {
    auto size = number();
    if (size >= left_ || !take(size + 1) || at_[-1] != '\0') {
      ok_ = false;
      return "";
    }
    return at_ - size - 1;
  }
  bool ok() const { return ok_; }
  bool at_end() const { return left_ == 0; }

private:
  bool take(size_t n) {
    if (!ok_ || n > left_) return ok_ = false;
    at_ += n;
    left_ -= n;
    return true;
  }

  const char* at_;
  size_t left_;
  bool ok_ = true;
};

} // namespace kernelmill::spawn_protocol
