#pragma once

// A judged turn, as JSON and for people.

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "gpu/profiler/roofline.hpp"
#include "messages/verdict.capnp.h"

namespace kernelmill {

/// The document of `eval --json`, without schema_version. docs/reference/cli.md lists its keys.
nlohmann::ordered_json verdict_json(wire::TurnFacts::Reader facts, wire::Verdict::Reader verdict);

/// Its key "build".
nlohmann::ordered_json build_json(wire::BuildResult::Reader x);

/// Its key "timing".
nlohmann::ordered_json timing_json(wire::Timing::Reader x);

/// Its key "profile".
nlohmann::ordered_json profile_json(wire::ProfileResult::Reader x);

std::string verdict_text(wire::TurnFacts::Reader facts, wire::Verdict::Reader verdict, bool colour);

/// The call's place under the roofline, as far as it is known.
roofline_position position_of(wire::ProfileResult::Reader x);

/// What limits the kernel, why, and what to try; nothing where no profile was asked for.
std::string profile_text(wire::ProfileResult::Reader x);

/// "3.71 [3.65, 3.78]".
std::string interval_text(wire::Interval::Reader x);

} // namespace kernelmill
