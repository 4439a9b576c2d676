#pragma once

// One request on its way through libcurl. Only http_client.cpp uses this; it is apart from the
// event loop because the two change for different reasons.

#include <array>
#include <chrono>
#include <memory>

#include <curl/curl.h>

#include "actors/policy_client/http_client.hpp"

namespace kernelmill {

class http_transfer {
public:
  using clock = std::chrono::steady_clock;

  http_transfer(uint64_t id, http_request request, http_transport::callback done);
  ~http_transfer();
  http_transfer(const http_transfer&) = delete;
  http_transfer& operator=(const http_transfer&) = delete;

  /// Prepares the easy handle; false when libcurl is out of memory.
  bool prepare(const http_client_options& options);

  CURL* handle() const noexcept { return easy_; }
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
  void set_limits(const http_client_options& options);

  uint64_t id_;
  http_request request_;
  http_transport::callback done_;
  http_response response_;
  CURL* easy_ = nullptr;
  curl_slist* headers_ = nullptr;
  size_t header_bytes_ = 0;
  size_t body_bytes_ = 0;
  transport_fault own_fault_ = transport_fault::none; ///< why a callback stopped libcurl
  clock::time_point started_ = clock::now();
  clock::time_point last_bytes_{};
  std::array<char, CURL_ERROR_SIZE> error_text_{};
};

} // namespace kernelmill
