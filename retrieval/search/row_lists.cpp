#include "retrieval/search/row_lists.hpp"

#include <faiss/Clustering.h>
#include <faiss/IndexFlat.h>
#include <fmt/format.h>

namespace kernelmill {

expected<std::vector<float>> centres_of(const std::vector<float>& rows, size_t dimension,
                                        size_t count) {
  // The one place where FAISS's exceptions become values.
  try {
    faiss::Clustering clustering{static_cast<int>(dimension), static_cast<int>(count)};
    clustering.niter = 10;
    clustering.min_points_per_centroid = 1; // no words about it on stdout
    faiss::IndexFlatL2 assigned{static_cast<faiss::Index::idx_t>(dimension)};
    clustering.train(static_cast<faiss::Index::idx_t>(rows.size() / dimension), rows.data(),
                     assigned);
    return clustering.centroids;
  } catch (const std::exception& e) {
    return infrastructure_error("index_failed",
                                fmt::format("failed to divide an index into lists: {}", e.what()));
  }
}

} // namespace kernelmill
