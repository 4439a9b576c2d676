// CAF 0.17.6 asks SSL_get_error() what became of a call, and that answer also depends on errors
// that earlier calls of the same thread have left behind. It never clears them, so one stranger who
// breaks off a handshake makes every other link of the head look broken. These stand in front of
// OpenSSL's own functions, for the whole program, and forget what was before.

#include <dlfcn.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

namespace {

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

} // namespace

extern "C" {

int SSL_accept(SSL* ssl) {
  static const auto call = next<int (*)(SSL*)>("SSL_accept");
  ERR_clear_error();
  return call(ssl);
}

int SSL_connect(SSL* ssl) {
  static const auto call = next<int (*)(SSL*)>("SSL_connect");
  ERR_clear_error();
  return call(ssl);
}

int SSL_read(SSL* ssl, void* into, int size) {
  static const auto call = next<int (*)(SSL*, void*, int)>("SSL_read");
  ERR_clear_error();
  return call(ssl, into, size);
}

int SSL_write(SSL* ssl, const void* from, int size) {
  static const auto call = next<int (*)(SSL*, const void*, int)>("SSL_write");
  ERR_clear_error();
  return call(ssl, from, size);
}

} // extern "C"
