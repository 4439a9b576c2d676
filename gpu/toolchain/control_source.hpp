#pragma once

// Sources of ours that each toolchain builds on a machine that is well: what a failed build of a
// candidate is held against, and what `kernelmill doctor` tries.

#include <string>
#include <string_view>

namespace kernelmill {

enum class control_kind : unsigned char { host, cuda, hip, device };

/// The control of a source: as small as can be, with those headers of the toolchain that the source
/// includes.
std::string control_source(control_kind kind, std::string_view source = {});

/// One that every toolchain of its kind has, or that belongs to torch.
bool is_toolchain_header(std::string_view name);

/// The packages that have what a line says is missing, "libtorch-dev (Debian), or ..."; empty where
/// it says nothing of that.
std::string package_of(std::string_view line);

} // namespace kernelmill
