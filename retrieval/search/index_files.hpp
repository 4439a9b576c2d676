#pragma once

// The index's folder: how it is written, and what is checked before it is believed.

#include <memory>
#include <string>
#include <vector>

#include "retrieval/search/index.hpp"

namespace kernelmill {

struct index_files {
  index_manifest manifest;
  std::vector<index_entry> entries;
  vector_index vectors;
  bm25_index words;
};

std::shared_ptr<embedder> lexical_embedder(size_t dimension = 0);

/// Completes `manifest` with the digests of what it writes.
expected<index_manifest> write_index_files(const std::string& directory, index_manifest manifest,
                                           const std::vector<index_entry>& entries,
                                           const vector_index& vectors, const bm25_index& words);

expected<index_files> read_index_files(const std::string& directory);

/// Checks that `embedding` made the index; null becomes the manifest's built-in embedder.
expected<void> match_embedder(const std::string& directory, const index_manifest& manifest,
                              std::shared_ptr<embedder>& embedding);

expected<void> match_corpus(const std::string& directory, const index_manifest& manifest,
                            const std::string& knowledge);

} // namespace kernelmill
