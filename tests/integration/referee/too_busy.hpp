#pragma once

// The referee refuses to guess on a busy machine, which is right and no failure of a test.

#include <algorithm>
#include <array>
#include <string>

#include <gtest/gtest.h>

#include "messages/evaluate.capnp.h"

namespace kernelmill {

/// Whether that is why there is no time: nothing could be timed, or too few calls between other
/// work for an interval that says something. Not where that is the candidate's doing.
inline bool too_busy(wire::Timing::Reader x) {
  constexpr std::array reasons{"other programs disturbed", "time was over",
                               "time of the evaluation was spent", "says nothing"};
  std::string note{x.getNote().cStr()};
  return !x.getMeasured() && x.getNotTimed() != wire::NotTimed::CANDIDATE &&
         std::any_of(reasons.begin(), reasons.end(),
                     [&](const char* reason) { return note.find(reason) != std::string::npos; });
}

} // namespace kernelmill

#define SKIP_WHEN_TOO_BUSY(timing)                                                                 \
  if (kernelmill::too_busy(timing)) GTEST_SKIP() << (timing).getNote().cStr()
