#include "launch/cluster/tls.hpp"

#include <openssl/err.h>

namespace kernelmill {

expected<std::shared_ptr<const tls_context>> tls_context::load(const cluster_credentials& files) {
  auto made = std::make_shared<tls_context>();
  made->context_.reset(SSL_CTX_new(TLS_method()));
  auto* x = made->context_.get();
  bool ok = x != nullptr && SSL_CTX_set_min_proto_version(x, TLS1_3_VERSION) == 1 &&
            SSL_CTX_use_certificate_chain_file(x, files.certificate.c_str()) == 1 &&
            SSL_CTX_use_PrivateKey_file(x, files.key.c_str(), SSL_FILETYPE_PEM) == 1 &&
            SSL_CTX_load_verify_locations(x, files.ca.c_str(), nullptr) == 1;
  ERR_clear_error();
  if (!ok)
    return configuration_error("credentials_damaged",
                               "failed to load the credentials in " + files.directory,
                               "copy ca.pem, node.pem and node.key together from the machine that "
                               "ran `kernelmill cluster init`");
  SSL_CTX_set_verify(x, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  // No peer resumes a session, and a peer that is not known yet must not cost memory.
  SSL_CTX_set_session_cache_mode(x, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(x, 0);
  SSL_CTX_set_mode(x, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  return std::shared_ptr<const tls_context>{std::move(made)};
}

tls_session tls_context::session(int fd, bool accepts) const {
  tls_session result{SSL_new(context_.get())};
  if (!result || SSL_set_fd(result.get(), fd) != 1) return {};
  accepts ? SSL_set_accept_state(result.get()) : SSL_set_connect_state(result.get());
  return result;
}

tls_step shake_hands(SSL* session) {
  ERR_clear_error();
  int status = SSL_do_handshake(session);
  if (status == 1) return tls_step::done;
  int why = SSL_get_error(session, status);
  ERR_clear_error();
  switch (why) {
    case SSL_ERROR_WANT_READ: return tls_step::wants_read;
    case SSL_ERROR_WANT_WRITE: return tls_step::wants_write;
    default: return tls_step::failed;
  }
}

} // namespace kernelmill
