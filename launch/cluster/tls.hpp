#pragma once

// TLS between the machines of a cluster, with certificates at both ends. The files are read once,
// when the process starts: no connection opens, reads or needs any of them again.

#include <memory>

#include <openssl/ssl.h>

#include "launch/cluster/credentials.hpp"
#include "messages/base/descriptor.hpp"
#include "messages/error.hpp"

namespace kernelmill {

struct ssl_free {
  void operator()(SSL* x) const noexcept { SSL_free(x); }
};

/// One end of one connection. Used by one thread at a time.
using tls_session = std::unique_ptr<SSL, ssl_free>;

/// A connection to a machine of the cluster; without TLS the session is empty.
struct link_socket {
  descriptor fd;
  tls_session session;
  std::shared_ptr<void>
      place{}; ///< among those that a door has let in; dropped with the connection
};

/// The certificate that this process shows and the authority that it trusts. Any number of threads.
class tls_context {
public:
  /// Errors: "credentials_damaged".
  static expected<std::shared_ptr<const tls_context>> load(const cluster_credentials& files);

  /// A session over a socket that does not block, before its handshake; empty without memory.
  tls_session session(int fd, bool accepts) const;

private:
  struct context_free {
    void operator()(SSL_CTX* x) const noexcept { SSL_CTX_free(x); }
  };
  std::unique_ptr<SSL_CTX, context_free> context_;
};

enum class tls_step : unsigned char { done, wants_read, wants_write, failed };

/// Goes on with the handshake as far as it goes without waiting. Clears the thread's queue of
/// OpenSSL's errors before: what an earlier call left there would be taken for this one's.
tls_step shake_hands(SSL* session);

} // namespace kernelmill
