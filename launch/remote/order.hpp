#pragma once

// What a session is to do: one command of Kernelmill, its files, and what it leaves. The near end
// makes it, the far end stores it in the session's folder.

#include <string>
#include <vector>

#include "launch/remote/file_list.hpp"
#include "messages/base/json_value.hpp"
#include "messages/error.hpp"

namespace kernelmill::remote {

/// The terminal that the near end has, so that colours, widths and progress are as if the command
/// ran there.
struct terminal_shape {
  bool out = false; ///< stdout is one
  bool err = false;
  unsigned columns = 0; ///< 0: lines have no limit
  unsigned rows = 0;
  std::string type; ///< $TERM
};

struct order {
  std::vector<std::string> words; ///< behind the program's name; paths as on the far end
  std::vector<file_entry> inputs; ///< below the session's working folder
  std::vector<std::string>
      outputs;       ///< paths there: files or folders, which may be missing at the end
  std::string input; ///< path there of what stdin gives; empty: nothing
  terminal_shape terminal;
};

nlohmann::json to_json(const order& x);

/// Reads what the other end sent, or a session's folder has. Errors: "remote_protocol".
expected<order> read_order(const std::string& text);

/// 16 lower-case hex digits.
bool is_session_id(const std::string& x);
std::string new_session_id();

} // namespace kernelmill::remote
