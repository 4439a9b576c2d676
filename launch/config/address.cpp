#include "launch/config/address.hpp"

#include <charconv>

#include <arpa/inet.h>

namespace kernelmill {

bool network_address::is_loopback() const {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

std::string network_address::text() const {
  auto name = host.find(':') == host.npos ? host : "[" + host + "]";
  return name + ":" + std::to_string(port);
}

expected<network_address> parse_address(const std::string& text, uint16_t otherwise) {
  auto bad = [&] {
    return configuration_error("usage", "failed to read the address \"" + text + "\"",
                               "write it like 10.0.0.1:7612 or [::1]:7612");
  };
  network_address result;
  result.port = otherwise;
  auto rest = text;
  if (text.starts_with("[")) {
    auto end = text.find(']');
    if (end == text.npos) return bad();
    result.host = text.substr(1, end - 1);
    rest = text.substr(end + 1);
  } else {
    auto colon = text.find(':');
    if (colon != text.npos && text.find(':', colon + 1) != text.npos) return bad();
    result.host = text.substr(0, colon);
    rest = colon == text.npos ? "" : text.substr(colon);
  }
  if (result.host.empty()) return bad();
  if (rest.empty()) return result;
  if (rest[0] != ':') return bad();
  auto [end, code] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), result.port);
  if (code != std::errc{} || end != rest.data() + rest.size() || rest.size() < 2) return bad();
  return result;
}

expected<network_address> parse_listen_address(const std::string& option, const std::string& text) {
  bool port_alone = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  auto result = parse_address(port_alone ? "127.0.0.1:" + text : text, 0);
  // A word alone is a misspelt port or address more often than a machine's name.
  in6_addr unused{};
  auto is_ip = [&](const std::string& host) {
    return ::inet_pton(AF_INET, host.c_str(), &unused) == 1 ||
           ::inet_pton(AF_INET6, host.c_str(), &unused) == 1;
  };
  if (result && (text != result->host || is_ip(text) || text == "localhost")) return result;
  return configuration_error(
      "usage", "failed to read " + option + ": \"" + text + "\" is no address to listen on",
      "write it like 127.0.0.1:7700, or a port alone, such as 7700");
}

} // namespace kernelmill
