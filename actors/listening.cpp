#include "actors/listening.hpp"

#include <cerrno>
#include <cstring>
#include <memory>

#include <netdb.h>
#include <sys/socket.h>

#include "messages/base/descriptor.hpp"

namespace kernelmill {

namespace {

// 0, or the errno of what cannot be done.
int try_to_listen(const addrinfo& at) {
  descriptor fd{::socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  int on = 1;
  if (!fd || ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(fd.get(), at.ai_addr, at.ai_addrlen) != 0 || ::listen(fd.get(), 1) != 0)
    return errno;
  return 0;
}

std::string hint_for(int code) {
  switch (code) {
    case EADDRINUSE: return "end what listens there, or name another port; 0 takes a free one";
    case EADDRNOTAVAIL: return "name an address of this machine: `ip address` lists them";
    case EACCES: return "name a port from 1024 on";
    default: return "name another address";
  }
}

} // namespace

error listen_error(const std::string& host, uint16_t port, const std::string& otherwise) {
  auto message = "failed to listen on " + host + ":" + std::to_string(port) + ": ";
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  if (int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &first);
      code != 0)
    return {fault_class::configuration, "address_unusable", message + ::gai_strerror(code),
            "name an address of this machine"};
  std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> found{first, ::freeaddrinfo};
  int code = try_to_listen(*first);
  return {fault_class::configuration, code == EADDRINUSE ? "address_in_use" : "address_unusable",
          message + (code == 0 ? otherwise : std::strerror(code)), hint_for(code)};
}

} // namespace kernelmill
