#pragma once

// INTERNAL to launch/server/page: runs that no process writes to. What is made of one stays right
// until one of its files changes, however long making it takes.

#include <string>

namespace kernelmill::page {

/// A text that differs once a file of the run has changed. Empty while that cannot be relied on:
/// the run may be in progress, or was until seconds ago, or there is no such run below `root`.
/// `name` is the folder's.
std::string stamp_of_settled(const std::string& root, const std::string& name);

} // namespace kernelmill::page
