#pragma once

// What every command shares that asks a head.

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "launch/cluster/control_client.hpp"
#include "launch/commands/commands.hpp"

namespace kernelmill::commands {

link_options link_of(const invocation& in);

/// Whether a view is a head's: by --head, or by $KERNELMILL_HEAD where --root was not given.
bool asks_head(const invocation& in);

/// --head, or the environment's, or this machine's.
expected<network_address> head_of(const invocation& in);

expected<nlohmann::ordered_json> ask(const invocation& in, const std::string& verb,
                                     const std::string& subject = {},
                                     const std::string& document = {});

/// A count in the head's answer, as text; 0 when it is not there.
std::string count_of(const nlohmann::ordered_json& x, const char* key);

} // namespace kernelmill::commands
