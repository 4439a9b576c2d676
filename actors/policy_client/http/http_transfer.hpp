#pragma once

// One request on its way through libcurl. Only http_client.cpp uses this; it is apart from the
// event loop because the two change for different reasons.

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include <curl/curl.h>

#include "actors/policy_client/http/curl_shards.hpp"
#include "actors/policy_client/http/http_client.hpp"

namespace kernelmill {

// Easy handles for one request after another: to make one and to set what all requests have in
// common takes longer than the rest. Not for several threads.
class easy_handles {
public:
  explicit easy_handles(const http_client_options& options) : options_(options) {}
  ~easy_handles();
  easy_handles(const easy_handles&) = delete;
  easy_handles& operator=(const easy_handles&) = delete;

  /// Null when libcurl is out of memory.
  CURL* take(curl_shards& shards);
  /// REQUIRES: the handle belongs to no shard, and points to nothing of its request.
  void give(CURL* easy);

  /// What an address means for its requests.
  struct place {
    std::string url;
    bool loopback = false; ///< a proxy of the environment must not catch what stays here
    bool tls = false;
  };
  /// The same address again costs nothing.
  const place& look_at(const std::string& url);

private:
  const http_client_options& options_;
  std::vector<CURL*> idle_;
  place last_;
};

class http_transfer {
public:
  using clock = std::chrono::steady_clock;

  http_transfer(uint64_t id, http_request request, http_transport::callback done);
  ~http_transfer();
  http_transfer(const http_transfer&) = delete;
  http_transfer& operator=(const http_transfer&) = delete;

  /// Starts it in a shard; false when libcurl is out of memory.
  bool prepare(easy_handles& handles, curl_shards& shards);
  /// Leaves the shard; `kept` as for curl_shards::remove().
  void leave(curl_shards& shards, bool kept);
  /// Lets another request have the handle, after the end.
  void give_back(easy_handles& handles);

  uint64_t id() const noexcept { return id_; }

  /// True when the response has begun and then been silent for too long.
  bool stalled(clock::time_point now) const noexcept;
  bool watches_silence() const noexcept { return request_.stall_ms > 0; }

  /// Calls back with what libcurl says of the end.
  void finish(CURLcode code);
  void fail(transport_fault fault, std::string detail);

private:
  static size_t on_header(char* data, size_t size, size_t count, void* self);
  static size_t on_body(char* data, size_t size, size_t count, void* self);
  bool take_header(std::string_view line);
  bool take_body(std::string_view bytes);
  bool add_header(const std::string& line);
  bool set_headers();
  void set_body();
  void set_limits();
  void forget_headers();

  uint64_t id_;
  http_request request_;
  http_transport::callback done_;
  http_response response_;
  CURL* easy_ = nullptr;
  std::optional<uint32_t> shard_;
  curl_slist* headers_ = nullptr;
  size_t header_bytes_ = 0;
  size_t body_bytes_ = 0;
  transport_fault own_fault_ = transport_fault::none; ///< why a callback stopped libcurl
  clock::time_point started_ = clock::now();
  clock::time_point last_bytes_{};
  std::array<char, CURL_ERROR_SIZE> error_text_{};
};

} // namespace kernelmill
