#pragma once

// JSON of a schema struct, as the command line prints it: snake_case keys in schema order, enums
// as words, 64-bit integers as numbers, data as hex, nothing left out but the inactive members of
// a union. Numbers that JSON cannot hold (NaN, infinities) print as null.

#include <string>

#include <capnp/dynamic.h>
#include <nlohmann/json_fwd.hpp>

namespace kernelmill {

nlohmann::ordered_json to_json(capnp::DynamicStruct::Reader x);

/// Returns "max_error" for "maxError".
std::string snake_case(const char* camel);

/// Returns the snake_case name of a schema enum's value, e.g. "usable_positive_sft".
std::string enum_name(capnp::DynamicEnum x);

} // namespace kernelmill
