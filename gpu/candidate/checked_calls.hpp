#pragma once

// A library of the contract `native` for the CPU that was built with sanitizers, called without a
// referee: the files are those of lone_calls.hpp. Each tensor is an allocation of its own and
// exactly as large as its bytes, so that a red zone of AddressSanitizer stands directly behind it.
//
// A clean run of a sanitizer prints nothing. So the process says at its end that all calls have
// returned; without that line there is no report.

namespace kernelmill {

inline constexpr const char* checked_calls_end = "kernelmill-candidate: all calls have returned";

/// REQUIRES: the walls of a candidate, which the caller has entered.
/// Makes all calls and returns the exit code of the process; what failed goes to stderr.
int make_checked_calls();

} // namespace kernelmill
