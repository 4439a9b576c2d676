#include "actors/policy_client/http/http_transport.hpp"

namespace kernelmill {

std::string_view to_string(transport_fault x) noexcept {
  switch (x) {
    case transport_fault::none: return "none";
    case transport_fault::unresolved: return "unresolved";
    case transport_fault::refused: return "refused";
    case transport_fault::connect_timeout: return "connect_timeout";
    case transport_fault::tls: return "tls";
    case transport_fault::untrusted: return "untrusted";
    case transport_fault::reset: return "reset";
    case transport_fault::truncated: return "truncated";
    case transport_fault::malformed: return "malformed";
    case transport_fault::timeout: return "timeout";
    case transport_fault::stalled: return "stalled";
    case transport_fault::too_large: return "too_large";
    case transport_fault::refused_by_reader: return "refused_by_reader";
    case transport_fault::cancelled: return "cancelled";
    case transport_fault::other: return "other";
  }
  return "other";
}

std::string_view http_response::header(std::string_view lower_case_name) const {
  for (auto i = headers.rbegin(); i != headers.rend(); ++i)
    if (i->first == lower_case_name) return i->second;
  return {};
}

} // namespace kernelmill
