#pragma once

#include <memory>

#include "launch/config/run_config.hpp"
#include "retrieval/search/embedder.hpp"

namespace kernelmill {

/// The embedder that a configuration or a command names. It has asked no server yet.
expected<std::shared_ptr<embedder>> make_embedder(const embedder_section& config);

} // namespace kernelmill
