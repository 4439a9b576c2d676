#pragma once

// What a build of the contract `torch` makes: the module's source, the extensions that it asked for
// when it was imported, and what Triton compiled ahead. kernelmill_torch/artifact.py reads the same
// bytes.

#include <map>
#include <string>
#include <vector>

#include "messages/base/json_value.hpp"

namespace kernelmill {

struct torch_extension {
  std::string key;  ///< of the request, as extension_request.py computes it
  std::string name; ///< of the Python module
  std::string library;
};

struct torch_artifact {
  std::string source;
  std::vector<torch_extension> extensions;
  std::map<std::string, std::string> triton_files; ///< path within Triton's cache, base64
  std::string entry{};                             ///< torch_entry::text()
};

inline constexpr char torch_artifact_magic[] = "kernelmill-torch-2\n";

inline std::string pack_torch_artifact(const torch_artifact& x) {
  nlohmann::json header = {{"source_bytes", x.source.size()},
                           {"extensions", nlohmann::json::array()},
                           {"triton_files", x.triton_files},
                           {"entry", x.entry}};
  std::string blobs = x.source;
  for (const auto& e : x.extensions) {
    header["extensions"].push_back({{"key", e.key}, {"name", e.name}, {"bytes", e.library.size()}});
    blobs += e.library;
  }
  auto text = header.dump();
  return torch_artifact_magic + std::to_string(text.size()) + "\n" + text + blobs;
}

} // namespace kernelmill
