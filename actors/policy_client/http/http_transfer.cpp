#include "actors/policy_client/http/http_transfer.hpp"

#include <charconv>
#include <cstring>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <strings.h>
#include <sys/socket.h>

#include "messages/base/text.hpp"

namespace kernelmill {

namespace {

constexpr size_t idle_handles = 1024;

// A machine that is gone, or cut off, sends no end of a connection. It must show that it is there
// after these seconds of silence, and is given up after the last; so is one that takes in nothing
// of a request for as long.
constexpr long ask_after_s = 15;
constexpr long ask_every_s = 5;
constexpr unsigned give_up_after_ms = 30'000;

int notice_lost_peers(void*, curl_socket_t fd, curlsocktype) {
  ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &give_up_after_ms, sizeof give_up_after_ms);
  return CURL_SOCKOPT_OK;
}

bool is_loopback(const std::string& url) {
  std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> parts{curl_url(), curl_url_cleanup};
  char* host = nullptr;
  if (!parts || curl_url_set(parts.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK ||
      curl_url_get(parts.get(), CURLUPART_HOST, &host, 0) != CURLUE_OK)
    return false;
  std::string name{host};
  curl_free(host);
  return name == "localhost" || name == "[::1]" || name.starts_with("127.");
}

transport_fault fault_of_timeout(CURL* easy) {
  long sent = 0;
  curl_easy_getinfo(easy, CURLINFO_REQUEST_SIZE, &sent);
  return sent == 0 ? transport_fault::connect_timeout : transport_fault::timeout;
}

transport_fault fault_of(CURLcode code, CURL* easy, long status) {
  switch (code) {
    case CURLE_OK: return transport_fault::none;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY: return transport_fault::unresolved;
    case CURLE_COULDNT_CONNECT: return transport_fault::refused;
    case CURLE_OPERATION_TIMEDOUT: return fault_of_timeout(easy);
    case CURLE_SSL_CONNECT_ERROR: return transport_fault::tls;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ISSUER_ERROR: return transport_fault::untrusted;
    case CURLE_FILESIZE_EXCEEDED: return transport_fault::too_large;
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL: return transport_fault::malformed;
    case CURLE_PARTIAL_FILE: return transport_fault::truncated;
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR: return status == 0 ? transport_fault::reset : transport_fault::truncated;
    default: return transport_fault::other;
  }
}

} // namespace

// -- handles ----------------------------------------------------------------------------------

easy_handles::~easy_handles() {
  for (auto* x : idle_) curl_easy_cleanup(x);
}

CURL* easy_handles::take(curl_shards& shards) {
  if (!idle_.empty()) {
    auto* result = idle_.back();
    idle_.pop_back();
    return result;
  }
  auto* easy = curl_easy_init();
  if (easy == nullptr) return nullptr;
  shards.prepare(easy);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy, CURLOPT_USERAGENT, "kernelmill/0.1");
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, ask_after_s);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, ask_every_s);
  curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, notice_lost_peers);
  curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, static_cast<long>(options_.keep_alive_s));
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  if (!options_.ca_file.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, options_.ca_file.c_str());
  return easy;
}

void easy_handles::give(CURL* easy) {
  if (idle_.size() < idle_handles)
    idle_.push_back(easy);
  else
    curl_easy_cleanup(easy);
}

const easy_handles::place& easy_handles::look_at(const std::string& url) {
  if (last_.url != url) last_ = {url, is_loopback(url), lowered(url.substr(0, 6)) == "https:"};
  return last_;
}

// -- a request --------------------------------------------------------------------------------

http_transfer::http_transfer(uint64_t id, http_request request, http_transport::callback done)
    : id_(id), request_(std::move(request)), done_(std::move(done)) {
  // nop
}

http_transfer::~http_transfer() {
  if (easy_ != nullptr) curl_easy_cleanup(easy_);
  forget_headers();
}

void http_transfer::forget_headers() {
  // One of the lines may hold the key.
  for (auto* line = headers_; line != nullptr; line = line->next)
    explicit_bzero(line->data, std::strlen(line->data));
  curl_slist_free_all(headers_);
  headers_ = nullptr;
}

bool http_transfer::add_header(const std::string& line) {
  // A line break would smuggle in another header.
  if (line.find_first_of("\r\n") != std::string::npos) return true;
  auto* longer = curl_slist_append(headers_, line.c_str());
  if (longer == nullptr) return false;
  headers_ = longer;
  return true;
}

bool http_transfer::set_headers() {
  // Without this libcurl waits up to a second for "100 Continue" before a body above 1 MiB.
  if (!add_header("Expect:")) return false;
  for (const auto& [name, value] : request_.headers)
    if (!add_header(name + ": " + value)) return false;
  if (request_.bearer != nullptr) {
    auto line = "Authorization: Bearer " + std::string{request_.bearer->reveal()};
    auto added = add_header(line);
    wipe(line);
    if (!added) return false;
  }
  return curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, headers_) == CURLE_OK;
}

void http_transfer::set_limits() {
  curl_easy_setopt(easy_, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(request_.connect_timeout_ms));
  curl_easy_setopt(easy_, CURLOPT_TIMEOUT_MS, static_cast<long>(request_.timeout_ms));
  curl_easy_setopt(easy_, CURLOPT_MAXFILESIZE_LARGE,
                   static_cast<curl_off_t>(request_.on_data ? 0 : request_.body_limit));
}

void http_transfer::set_body() {
  if (!request_.post) {
    curl_easy_setopt(easy_, CURLOPT_HTTPGET, 1L);
    return;
  }
  curl_easy_setopt(easy_, CURLOPT_POST, 1L);
  curl_easy_setopt(easy_, CURLOPT_POSTFIELDSIZE_LARGE,
                   static_cast<curl_off_t>(request_.body.size()));
  curl_easy_setopt(easy_, CURLOPT_POSTFIELDS, request_.body.data());
}

bool http_transfer::prepare(easy_handles& handles, curl_shards& shards) {
  easy_ = handles.take(shards);
  if (easy_ == nullptr) return false;
  const auto& place = handles.look_at(request_.url);
  curl_easy_setopt(easy_, CURLOPT_PRIVATE, this);
  curl_easy_setopt(easy_, CURLOPT_URL, request_.url.c_str());
  curl_easy_setopt(easy_, CURLOPT_PROXY, place.loopback ? "" : nullptr);
  curl_easy_setopt(easy_, CURLOPT_ERRORBUFFER, error_text_.data());
  curl_easy_setopt(easy_, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(easy_, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(easy_, CURLOPT_WRITEDATA, this);
  set_body();
  set_limits();
  if (!set_headers()) return false;
  shard_ = shards.add(easy_, place.tls);
  return shard_.has_value();
}

void http_transfer::leave(curl_shards& shards, bool kept) {
  if (shard_) shards.remove(*shard_, easy_, kept);
  shard_.reset();
}

void http_transfer::give_back(easy_handles& handles) {
  if (easy_ == nullptr) return;
  curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, nullptr);
  curl_easy_setopt(easy_, CURLOPT_POSTFIELDS, nullptr);
  curl_easy_setopt(easy_, CURLOPT_ERRORBUFFER, nullptr);
  curl_easy_setopt(easy_, CURLOPT_PRIVATE, nullptr);
  handles.give(easy_);
  easy_ = nullptr;
}

// -- what libcurl brings ----------------------------------------------------------------------

size_t http_transfer::on_header(char* data, size_t size, size_t count, void* self) {
  auto bytes = size * count;
  return static_cast<http_transfer*>(self)->take_header({data, bytes}) ? bytes : 0;
}

size_t http_transfer::on_body(char* data, size_t size, size_t count, void* self) {
  auto bytes = size * count;
  return static_cast<http_transfer*>(self)->take_body({data, bytes}) ? bytes : 0;
}

bool http_transfer::take_header(std::string_view line) {
  last_bytes_ = clock::now();
  header_bytes_ += line.size();
  if (header_bytes_ > request_.header_limit) {
    own_fault_ = transport_fault::malformed; // no model writes headers
    response_.detail = "the header is above " + std::to_string(request_.header_limit) + " bytes";
    return false;
  }
  if (line.starts_with("HTTP/")) {
    // The last status line counts: "100 Continue" and a proxy's own answer come before it.
    response_.headers.clear();
    auto blank = line.find(' ');
    if (blank != std::string_view::npos)
      std::from_chars(line.data() + blank + 1, line.data() + line.size(), response_.status);
    return true;
  }
  auto colon = line.find(':');
  if (colon != std::string_view::npos)
    response_.headers.emplace_back(lowered(line.substr(0, colon)), trimmed(line.substr(colon + 1)));
  return true;
}

bool http_transfer::take_body(std::string_view bytes) {
  last_bytes_ = clock::now();
  body_bytes_ += bytes.size();
  if (body_bytes_ > request_.body_limit) {
    own_fault_ = transport_fault::too_large;
    response_.detail = "the body is above " + std::to_string(request_.body_limit) + " bytes";
    return false;
  }
  if (!request_.on_data || response_.status != 200) {
    response_.body.append(bytes);
    return true;
  }
  if (request_.on_data(bytes)) return true;
  own_fault_ = transport_fault::refused_by_reader;
  return false;
}

// -- the end ----------------------------------------------------------------------------------

bool http_transfer::stalled(clock::time_point now) const noexcept {
  return request_.stall_ms > 0 && last_bytes_ != clock::time_point{} &&
         now - last_bytes_ >= std::chrono::milliseconds{request_.stall_ms};
}

void http_transfer::finish(CURLcode code) {
  if (own_fault_ != transport_fault::none) return fail(own_fault_, std::move(response_.detail));
  auto fault = fault_of(code, easy_, response_.status);
  auto detail = fault == transport_fault::none ? std::string{}
                : error_text_[0] != '\0'       ? std::string{error_text_.data()}
                                               : std::string{curl_easy_strerror(code)};
  if (fault == transport_fault::too_large)
    detail = "the body is above " + std::to_string(request_.body_limit) + " bytes";
  fail(fault, std::move(detail));
}

void http_transfer::fail(transport_fault fault, std::string detail) {
  response_.fault = fault;
  response_.detail = std::move(detail);
  response_.seconds = std::chrono::duration<double>(clock::now() - started_).count();
  auto done = std::move(done_);
  done_ = nullptr;
  if (done) done(std::move(response_));
}

} // namespace kernelmill
