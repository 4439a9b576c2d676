#pragma once

// What the recorder (kernelmill_torch/record.py) reports of a candidate. The candidate can forge
// every word of it, so it is read with limits; what it decides is only what is built, in the
// sandbox.

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "messages/error.hpp"

namespace kernelmill {

struct extension_source {
  std::string name; ///< a plain file name: .cpp, .cc, .cxx, .cu, or a header's
  std::string text;

  bool is_cuda() const { return name.ends_with(".cu"); }
  bool is_header() const;
};

/// One call of load_inline or load.
struct extension_request {
  std::string key;  ///< SHA-256 in hex, as extension_request.py computes it
  std::string name; ///< of the Python module, an identifier
  std::vector<extension_source> sources;
  bool from_text = true; ///< load_inline: headers and bindings are added
  std::optional<std::vector<std::pair<std::string, std::string>>> functions; ///< name, docstring
  bool headers = true;
  bool error_handling = true;
  bool is_module = true;
  bool with_cuda = false;
  std::vector<std::string> flags;
  std::vector<std::string> cuda_flags;
  std::vector<std::string> link_flags;
  std::vector<std::string> include_paths;

  bool has_cuda() const;
};

struct python_problem {
  std::string type; ///< "NameError"
  std::string message;
  unsigned line = 0; ///< of the candidate; 0: unknown
  std::string traceback;
};

struct recording {
  std::string stage; ///< "ready", "imported", "constructed" or "compiled"
  std::vector<extension_request> requests;
  std::optional<python_problem> problem;
  bool has_model_new = false;
  std::map<std::string, std::string> triton_files; ///< as of torch_artifact
  std::string triton_problem; ///< why Triton's compilation ahead stopped, or empty
};

inline constexpr size_t most_extensions = 16;
inline constexpr size_t most_extension_source = 1 << 20;

/// Reads the last whole line of a report. No line at all is an empty stage. What breaks a limit is
/// of class candidate, category compile_error.
expected<recording> parse_recording(const std::string& report);

} // namespace kernelmill
