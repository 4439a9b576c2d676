#pragma once

// A profile without counters, for people.

#include <string>

#include "messages/profile.capnp.h"

namespace kernelmill {

/// Numbers of each kernel, a card where a rule has one, and what is missing.
std::string tier0_text(wire::ProfileResult::Reader x);

} // namespace kernelmill
