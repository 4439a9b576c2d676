#pragma once

#include <cstdint>
#include <string>

#include "messages/error.hpp"

namespace kernelmill {

struct network_address {
  std::string host;
  uint16_t port = 0;

  bool is_loopback() const;
  std::string text() const; ///< "[::1]:7612"
};

/// Reads "10.0.0.1:7612", "head.example:7612", "[::1]:7612", or a host alone, which gets the port
/// `otherwise`.
expected<network_address> parse_address(const std::string& text, uint16_t otherwise);

/// What `option` has to listen on: an address with a port, an IP address or localhost alone, which
/// get a free port, or a port alone on 127.0.0.1. Errors: "usage", which names the option.
expected<network_address> parse_listen_address(const std::string& option, const std::string& text);

} // namespace kernelmill
