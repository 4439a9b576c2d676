#pragma once

// The far end's folder: $XDG_CACHE_HOME/kernelmill/remote or ~/.cache/kernelmill/remote.
//
//   programs/HASH/      Kernelmill as a near end brought it
//   blobs/SHA256        contents that were sent, shared by sessions
//   sessions/ID/        order.json, work/ (where the command runs), stdout, stderr,
//                       started (its process), exit, lock (held while the command runs)

#include <cstdint>
#include <string>
#include <vector>

#include "launch/remote/order.hpp"
#include "messages/base/descriptor.hpp"
#include "messages/error.hpp"

namespace kernelmill::remote {

enum class session_state : unsigned char {
  opened,  ///< its files are on their way, or its command was not started
  running, ///< the command runs
  ended,   ///< it has ended, and its files wait for the near end
  lost     ///< its process is gone and left no exit code
};
std::string_view to_string(session_state x);

/// What a blob lacks: bytes from `have` on.
struct missing_blob {
  std::string sha256;
  uint64_t size = 0;
  uint64_t have = 0;
};

struct session_exit {
  int code = 0; ///< -1 when a signal ended it
  int signal = 0;
};

/// One session of the far end, by its folder. Thread safety: none.
class far_session {
public:
  /// Makes it where there is none; an order that differs from the stored one is refused.
  static expected<far_session> open(const std::string& root, const std::string& id,
                                    const std::string& order_text);
  /// Errors: "not_found".
  static expected<far_session> find(const std::string& root, const std::string& id);

  const std::string& folder() const noexcept { return folder_; }
  const order& what() const noexcept { return order_; }
  std::string work() const { return folder_ + "/work"; }
  std::string log(const std::string& stream) const { return folder_ + "/" + stream; }

  std::vector<missing_blob> missing() const;

  /// Appends a piece of a blob at `offset`; the last one is checked against the hash. Errors:
  /// "disk_full", "remote_protocol".
  expected<void> add(const missing_blob& blob, std::string_view piece, bool last);

  /// Copies the inputs to where the order wants them. Does nothing the second time.
  expected<void> lay_out();

  session_state state() const;
  expected<session_exit> exit() const;
  int process() const; ///< the command's process group; 0: none runs

  /// The files that the command left below the order's outputs.
  expected<folder_files> outputs() const;

  expected<void> remove();

private:
  far_session(std::string root, std::string folder, order x)
      : root_(std::move(root)), folder_(std::move(folder)), order_(std::move(x)) {}
  std::string blob(const std::string& sha256) const { return root_ + "/blobs/" + sha256; }
  std::string part(const std::string& sha256) const;

  std::string root_;
  std::string folder_;
  order order_;
};

/// Takes the lock of a session's folder, which lasts as long as the descriptor; empty when another
/// process holds it.
descriptor lock_session(const std::string& folder);

/// What `remote ls` tells of each session: id, state, command, seconds since it was opened.
nlohmann::json describe_sessions(const std::string& root);

/// Makes the folder where it is missing and removes what is old: sessions that never started after
/// an hour, those that ended after a week, blobs and programs that were not used for a week.
expected<void> prepare_root(const std::string& root);

} // namespace kernelmill::remote
