#pragma once

// What was found out about a source by compiling it for looking at, and what is shown of that.

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "gpu/inspect/listing.hpp"
#include "gpu/inspect/module_listing.hpp"
#include "gpu/profiler/roofline.hpp"
#include "gpu/task/task.hpp"

namespace kernelmill::inspecting {

/// Code with its listings read.
struct inspected_code {
  explicit inspected_code(listed_code x);

  /// The listing that is nearest to what runs: of SASS or GCN, else of PTX.
  const std::vector<kernel_listing>& nearest() const;

  std::vector<kernel_view> views() const { return side_by_side(code.source, ptx, sass, gcn); }

  listed_code code;
  std::vector<kernel_listing> ptx;
  std::vector<kernel_listing> sass;
  std::vector<kernel_listing> gcn;
  std::vector<gcn_resources> amd; ///< kernels of an AMD GPU
};

using code_listing = std::vector<kernel_listing> inspected_code::*;

/// What is known beside the code: the section `profile` says what follows from both.
struct surroundings {
  task_ptr what;    ///< on the terms of the candidate; null: no task is named
  device_roof roof; ///< of the GPU here that the code is for
  unsigned multiprocessors = 0;
  std::string no_roof = "they were not asked for"; ///< why nothing is known of it; empty: it is
};

struct inspected {
  std::string architecture;
  bool compiled = false;
  std::string log;
  std::vector<inspected_code> codes; ///< of CUDA C++ and HIP one without a name
  std::vector<std::string> missing;
  surroundings around = {};

  bool is_amd() const { return architecture.starts_with("gfx"); }
};

/// What is shown, and how.
struct showing {
  std::string section;          ///< empty: all, or of text build and triview
  uint32_t block_threads = 256; ///< for the occupancy
  size_t width = 0;             ///< of the terminal; 0: none
  bool colour = false;

  bool wants(const char* name) const { return section.empty() || section == name; }
};

/// Names of sections: "build", "ptx", "sass", "gcn", ...
const std::vector<std::string>& section_names();

/// The keys of the sections that are wanted, and their text. REQUIRES: x.compiled.
nlohmann::ordered_json document_of(const inspected& x, const showing& how);
std::string text_of(const inspected& x, const showing& how);

/// Source, PTX and SASS (or GCN) in gpu_rl's three documents, by the names of their files:
/// "tri_view", "source_map_summary", "source_ptx_sass_map". REQUIRES: x.compiled.
nlohmann::ordered_json listing_documents(const inspected& x);

/// The listings as the tools wrote them: "kernel.ptx", "kernel.sass", ..., and their text.
std::vector<std::pair<std::string, std::string>> listing_texts(const inspected& x);

/// Registers, memory and occupancy of each kernel, and of an AMD GPU the mix of instructions.
std::string resources_text(const inspected& x, uint32_t threads);

} // namespace kernelmill::inspecting
