#pragma once

// An evaluation as the API shows it.

#include "launch/server/api/evaluation_table.hpp"

namespace kernelmill::services {

nlohmann::ordered_json evaluation_document(const evaluation_table& table, const evaluation& x,
                                           steady_time now);

} // namespace kernelmill::services
