#pragma once

// The monitor over HTTP: one page, a JSON API, an event stream and metrics of the runs below a
// root, in progress or over. Everything shown comes from launch/analysis/watch; nothing here asks
// an actor itself.

#include <functional>
#include <memory>
#include <string>

#include "launch/analysis/watch/world.hpp"
#include "launch/config/address.hpp"
#include "launch/server/http/server.hpp"

namespace kernelmill::page {

struct options {
  network_address listen{"127.0.0.1", 0}; ///< port 0: any free one
  secret_ptr token;                       ///< required beyond the loopback interface, as is TLS
  std::string certificate_file, key_file; ///< PEM; both or none
  watch::world world;
  std::string build; ///< "0.1.0 (4425404)", for /metrics

  /// What a user may do to a run: "pause", "resume", "cancel". Empty: nothing can be done here.
  std::function<expected<void>(const std::string& verb, const run_directory& run)> control;

  /// A head's: sends one command of users' (verb, subject, document as JSON). The page sends
  /// `drain`, `policy_attach` and `policy_detach`. Empty: no head is here.
  std::function<expected<watch::json>(const std::string& verb, const std::string& subject,
                                      const std::string& document)>
      cluster;

  /// Whether runs that are over are read before they are asked for. Not in a process that works on
  /// a run: it would take processor time from what is measured.
  bool reads_ahead = false;

  http::limits bounds;
};

/// docs/reference/page-openapi.json.
std::string openapi_text();

class service {
public:
  /// Listens and serves until it is destroyed. Errors: "token_missing", "tls_missing", and those of
  /// http::server::start.
  static expected<std::unique_ptr<service>> start(options x);
  ~service();
  service(const service&) = delete;
  service& operator=(const service&) = delete;

  std::string url() const; ///< "http://127.0.0.1:4711"

private:
  struct parts;
  explicit service(std::unique_ptr<parts> x);
  std::unique_ptr<parts> parts_;
};

} // namespace kernelmill::page
