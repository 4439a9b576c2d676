#pragma once

// What people read of a training.

#include <string>

#include "launch/learning/training/held_out.hpp"
#include "launch/learning/training/training_record.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

/// One line of checkpoints.jsonl or evaluations.jsonl for a terminal.
std::string training_line(const nlohmann::ordered_json& x);

/// Steps, rates, where the time went, findings by class, best kernels of held-out tasks.
nlohmann::ordered_json training_summary(const training::training_record& record);
std::string training_text(const training::training_record& record,
                          const nlohmann::ordered_json& summary);

nlohmann::ordered_json held_out_document(const training::held_out_report& x);
std::string held_out_text(const training::held_out_report& x);

} // namespace kernelmill::commands
