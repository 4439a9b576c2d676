#pragma once

// INTERNAL to launch/judging/inspecting: what documents and texts share.

#include <optional>
#include <string>

#include "gpu/profiler/occupancy.hpp"
#include "launch/judging/inspecting/inspected.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::inspecting {

/// By registers and static shared memory, for blocks of `threads`; nothing of an unknown GPU.
std::optional<occupancy> occupancy_for(const inspected& x, const kernel_resources& k,
                                       uint32_t threads);

/// Whether a section is a stage of Triton's.
bool is_stage(const std::string& section);

/// Adds the name of the code to a document or a text where a module has several.
nlohmann::ordered_json named(const listed_code& code, nlohmann::ordered_json document);
std::string heading(const listed_code& x, bool colour);

// -- section profile ------------------------------------------------------------------------------

nlohmann::ordered_json profile_document(const inspected& x, const showing& how);
std::string profile_words(const inspected& x, const showing& how);

// -- section quality ------------------------------------------------------------------------------

nlohmann::ordered_json quality_document(const inspected& x);
std::string quality_text(const inspected& x, const showing& how);

} // namespace kernelmill::inspecting
