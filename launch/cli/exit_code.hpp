#pragma once

// docs/reference/exit-codes.md says the same in words.

#include "messages/error.hpp"

namespace kernelmill::cli {

inline constexpr int exit_ok = 0;
inline constexpr int exit_failed = 1; ///< failed while running
inline constexpr int exit_usage = 2;  ///< the command line or the configuration is wrong
inline constexpr int exit_not_found = 3;
inline constexpr int exit_conflict = 4;     ///< exists already, is locked, is of a newer version
inline constexpr int exit_quality = 5;      ///< finished, and a check that was asked for failed
inline constexpr int exit_unavailable = 69; ///< a server that is needed does not answer
inline constexpr int exit_machine = 70;     ///< too many faults of the machine
inline constexpr int exit_temporary = 75;   ///< try again later; nothing is lost
inline constexpr int exit_permission = 77;
inline constexpr int exit_interrupted = 130; ///< Ctrl-C; 143 for SIGTERM

inline constexpr int exit_reader_gone =
    141; ///< the reader of our stdout closed it, as after SIGPIPE

int exit_code(const error& x);

} // namespace kernelmill::cli
