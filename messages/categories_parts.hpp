#pragma once

// INTERNAL to messages/: the longer tables, each in a file of its own.

#include "messages/categories.hpp"

namespace kernelmill {

std::span<const error_category> configuration_categories() noexcept;
std::span<const error_category> infrastructure_categories() noexcept;

} // namespace kernelmill
