#pragma once

// The roofline of a device with points under it, both axes logarithmic: flop/s over flop/B.

#include <string>
#include <vector>

#include "gpu/profiler/roofline.hpp"

namespace kernelmill::commands {

struct roofline_point {
  std::string name; ///< "call", or a kernel's
  roofline_position position;
};

/// A picture in characters, each point with a letter, and a line for each point. Points without
/// intensity or flop/s have the line alone; without peaks there is no picture. Empty: no point has
/// a number.
std::string roofline_text(const std::vector<roofline_point>& points);

/// The same as a document of its own, with a sentence for readers who cannot see it; empty where
/// there is no picture.
std::string roofline_svg(const std::string& title, const std::vector<roofline_point>& points);

} // namespace kernelmill::commands
