#pragma once

// Where in the source a card's finding lies: the lines whose instructions do what the finding is
// about, by the tables of lines of PTX and SASS. Plain functions on listings.

#include <string>
#include <string_view>
#include <vector>

#include "gpu/inspect/listing.hpp"
#include "gpu/profiler/cards.hpp"

namespace kernelmill {

/// One text with its listings read.
struct listed_text {
  std::string source;
  std::vector<kernel_listing> ptx;
  std::vector<kernel_listing> sass;
};

/// "reduce" of "void reduce<(int)256>(float *)", which another tool calls "void
/// reduce<256>(float*)". An unnamed namespace is "(anonymous namespace)::" or "<unnamed>::".
std::string bare_name(std::string_view whole);

/// What the finding is about, in instructions: "local memory", "double precision", "atomics",
/// "barriers", "shared memory", "global memory"; empty where no line of source says more.
std::string_view instructions_of(std::string_view bottleneck);

/// The lines of a kernel that have such instructions, those with most of them first. Of SASS where
/// its lines are known, else of PTX, which has no spills. Kernels are found by the name without
/// what they take, since tools print that differently; an empty name means all.
std::vector<finding_line> lines_with(std::string_view instructions, const listed_text& text,
                                     std::string_view kernel);

/// Adds lines to the findings of one kernel, of each at most six.
void add_lines(const std::vector<listed_text>& texts, std::string_view kernel,
               std::vector<bottleneck_finding>& findings);

} // namespace kernelmill
