#pragma once

// Askers of the policy benchmark: each sends one request, and another when the answer is there,
// as long as it shall go on. Over the bare HTTP client, where the request's body is ready and the
// answer is parsed; and over the policy client, where each request is a message of its own.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace kernelmill::bench {

constexpr size_t prompt_bytes = 7800; ///< about 8 KB as JSON
constexpr size_t answer_bytes = 3600; ///< about 4 KB as JSON

struct tally {
  std::atomic<uint64_t> answered{0};
  std::atomic<uint64_t> failed{0};
  std::atomic<bool> again{false};
  uint64_t ended() const { return answered.load() + failed.load(); }
};

class askers {
public:
  virtual ~askers() = default;
  /// One more asker begins.
  virtual void ask() = 0;
  tally& sum() { return sum_; }

private:
  tally sum_;
};

std::string request_body(const std::string& prompt);
std::unique_ptr<askers> http_askers(const std::string& url, const std::string& prompt,
                                    uint32_t count);
std::unique_ptr<askers> actor_askers(const std::string& url, const std::string& prompt,
                                     uint32_t count);

} // namespace kernelmill::bench
