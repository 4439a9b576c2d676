#pragma once

// An embedder turns texts into vectors of length one, so that an inner product is a cosine.
// Two embedders with the same identity give the same vectors; an index remembers the identity
// and refuses queries from another one.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "messages/error.hpp"

namespace kernelmill {

class embedder {
public:
  virtual ~embedder() = default;

  /// What decides the vectors, e.g. "hashed-lexical/2 dim=1024"; never a secret.
  virtual std::string identity() const = 0;

  /// Floats in a vector; 0 until an embedder that asks a server has had its first answer.
  virtual size_t dimension() const = 0;

  /// Says whether `embed` waits for another process; a caller that must not block then needs a
  /// thread of its own.
  virtual bool blocking() const = 0;

  /// Returns texts.size() rows of dimension() floats, each row of length one or all zeros when
  /// the text has nothing to embed.
  virtual expected<std::vector<float>> embed(const std::vector<std::string>& texts) = 0;
};

/// Scales `row` to length one; leaves zeros alone.
void normalize(float* row, size_t dimension);

} // namespace kernelmill
