#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "launch/cluster/link.hpp"
#include "messages/error.hpp"

namespace kernelmill {

/// Asks the head for one thing and returns its JSON. Errors are the head's own, or
/// "head_unreachable", "head_refused".
expected<nlohmann::ordered_json> ask_head(const network_address& head, const link_options& link,
                                          const std::string& verb, const std::string& subject,
                                          const std::string& document);

} // namespace kernelmill
