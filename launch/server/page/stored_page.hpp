#pragma once

// The page as a folder that a browser opens from a disk, without a server: the page's files as one
// script, and each document that a server would give as a script of its own. A page from a disk may
// load neither modules nor JSON.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "launch/analysis/watch/world.hpp"

namespace kernelmill::page {

struct stored_page_counts {
  uint64_t runs = 0, episodes = 0, bytes = 0;
};

/// Writes `folder`, which must be new or empty: index.html, page/ and data/. `runs`: names of
/// folders below the root; none: all that can be read. Errors: "not_found", "directory_not_empty",
/// those of the disk. `before` gets the name of each run first: one may take seconds.
expected<stored_page_counts> store_page(const watch::world& in, const std::string& folder,
                                        const std::vector<std::string>& runs,
                                        const std::function<void(const std::string&)>& before = {});

/// The modules as one script. A module becomes a function that is called once and returns what it
/// exports; "config_inconsistent" where two of them need each other.
struct module_text {
  std::string name; ///< "api.js"
  std::string text;
};
expected<std::string> one_script(const std::vector<module_text>& modules);

} // namespace kernelmill::page
