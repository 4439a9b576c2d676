#pragma once

// A store is read through a map of its file. When another program truncates the open file, the next
// read of a lost page is a SIGBUS, and the process would end without a message.

namespace kernelmill::cli {

/// From now on such an end names the store and has the exit code of "store_damaged". A SIGBUS with
/// another cause ends the process as it always did. For main(), once.
void guard_maps();

} // namespace kernelmill::cli
