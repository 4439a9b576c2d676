#pragma once

// INTERNAL to storage/export: fields of the forms that trainers define, as data.

#include <vector>

#include "storage/export/rows/forms.hpp"

namespace kernelmill::exports::trainer_fields {

std::vector<field> trl();
std::vector<field> verl();
std::vector<field> prime_rl();
std::vector<field> skyrl();
std::vector<field> tinker();
std::vector<field> nemo_gym();
std::vector<field> megatron();

} // namespace kernelmill::exports::trainer_fields
