#pragma once

// Whether all pages that a store's trees name are in its file. LMDB reads them through a map, where
// a page beyond the end of the file is a SIGBUS and no error. The file may be shorter than what was
// ever allocated, since pages that were freed in the transaction that took them are never written:
// so the length alone tells nothing, and where it is short the trees are walked.

#include <cstdint>
#include <optional>
#include <string>

namespace kernelmill {

/// What is missing from data.mdb, for people; nothing when all is there, when there is no such
/// file, or when it is none of LMDB's (which LMDB says itself). Reads the file's first pages, and
/// all of its branches and leaves only when it is short.
std::optional<std::string> missing_pages(const std::string& data_file);

/// Whether the power went while data.mdb was made: it holds nothing but zeros and first pages of
/// LMDB's that name no tree, so no transaction was ever in it. LMDB refuses such a
/// file.
bool is_unborn(const std::string& data_file);

} // namespace kernelmill
