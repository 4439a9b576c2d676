#pragma once

#include <cstdint>
#include <string>

#include "messages/error.hpp"

namespace kernelmill {

/// Why no process can listen at an address, found out by trying; `otherwise` when one can by now.
/// Categories: address_in_use, address_unusable.
error listen_error(const std::string& host, uint16_t port, const std::string& otherwise);

} // namespace kernelmill
