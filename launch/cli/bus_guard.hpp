#pragma once

// A store is read through a map of its file. Where somebody cuts the file while it is open, the
// next look at a page that is gone is a SIGBUS, and a process that ends without a word.

namespace kernelmill::cli {

/// From now on such an end names the store and has the exit code of "store_damaged". A SIGBUS with
/// another cause ends the process as it always did. For main(), once.
void guard_maps();

} // namespace kernelmill::cli
