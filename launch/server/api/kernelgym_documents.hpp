#pragma once

// Evaluations as KernelGYM's clients read them.

#include <string>

#include "messages/base/json_value.hpp"

namespace kernelmill::services {

/// Its TaskStatusResponse of an evaluation's document.
nlohmann::ordered_json kernelgym_status(const std::string& task_id,
                                        const nlohmann::ordered_json& evaluation);

/// Its EvaluationResponse. What is not known yet is null.
nlohmann::ordered_json kernelgym_result(const std::string& task_id,
                                        const nlohmann::ordered_json& evaluation);

/// Its WorkflowResponse: the result, once there is one, in `result`.
nlohmann::ordered_json kernelgym_workflow(const std::string& task_id,
                                          const nlohmann::ordered_json& evaluation);

/// "COMPILATION_ERROR" and its ten siblings; null where nothing is wrong with a correct candidate.
nlohmann::ordered_json kernelgym_error_code(const nlohmann::ordered_json& verdict);

} // namespace kernelmill::services
