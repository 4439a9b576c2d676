#pragma once

// A GPU that rested has a low clock, and takes up to two seconds of work to raise it: an H200 that
// nobody used reads 345 of 1,980 MHz, and what was timed first there took three times as long.

#include <functional>
#include <optional>

namespace kernelmill {

/// Thread safety: none.
class rousing {
public:
  /// `nominal_mhz` is the highest clock by the GPU's own word; 0: not known.
  explicit rousing(unsigned nominal_mhz) : known_(nominal_mhz) {}

  /// Has the GPU work until its clock is nearly the highest known, 2.5 s at most. One that never
  /// gets there is not waited for again: its clock is held down, and what it reached is known.
  /// `work` gives it some and waits, `clock` says MHz, and nothing where nobody can tell; `now` are
  /// seconds.
  void rouse(const std::function<void()>& work,
             const std::function<std::optional<unsigned>()>& clock,
             const std::function<double()>& now);

private:
  unsigned known_;
};

} // namespace kernelmill
