#include "launch/server/page/responses.hpp"

#include "messages/base/json_value.hpp"

namespace kernelmill::page {

namespace {

int status_of(const error& x) {
  if (x.category == "not_found" || x.category == "not_a_run") return 404;
  if (x.category == "run_not_live" || x.category == "not_live") return 409;
  if (x.cls == fault_class::configuration) return 400;
  return 503;
}

} // namespace

http::response refusal(const error& x) {
  auto result = http::error_response(status_of(x), x);
  harden(result);
  return result;
}

http::response refusal(int status, const char* category, std::string message, std::string hint) {
  auto result = http::error_response(
      status, {fault_class::configuration, category, std::move(message), std::move(hint)});
  harden(result);
  return result;
}

http::response document(const watch::json& x, int status) {
  http::response result;
  result.status = status;
  result.body = x.dump(-1, ' ', false, watch::json::error_handler_t::replace) + "\n";
  harden(result);
  return result;
}

void harden(http::response& x) {
  x.headers.emplace_back("Content-Security-Policy",
                         "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
                         "connect-src 'self'; base-uri 'none'; form-action 'none'; "
                         "frame-ancestors 'none'");
  x.headers.emplace_back("Referrer-Policy", "no-referrer");
  x.headers.emplace_back("Cross-Origin-Resource-Policy", "same-origin");
  x.headers.emplace_back("Cross-Origin-Opener-Policy", "same-origin");
}

std::string part(const http::request& r, const char* name) {
  auto i = r.parts.find(name);
  return i == r.parts.end() ? std::string{} : i->second;
}

} // namespace kernelmill::page
