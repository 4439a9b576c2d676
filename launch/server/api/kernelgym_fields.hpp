#pragma once

// What KernelGYM's clients send and are answered, field by field.

#include "launch/server/api/api_fields.hpp"

namespace kernelmill::services {

const fields& kernelgym_result_fields();
const fields& kernelgym_status_fields();
const fields& kernelgym_batch_result_fields();
const fields& kernelgym_workflow_result_fields();
const fields& kernelgym_health_fields();
const fields& kernelgym_metrics_fields();
const fields& kernelgym_queue_fields();

} // namespace kernelmill::services
