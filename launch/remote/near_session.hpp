#pragma once

// The near end of a session: brings Kernelmill and the command's files to a host, follows the
// command there, fetches what it left and closes the session. Each step may be done twice, so a
// broken connection is no more than starting again with what is known.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launch/remote/far_session.hpp"
#include "launch/remote/near_record.hpp"
#include "launch/remote/order.hpp"
#include "launch/remote/ssh.hpp"
#include "messages/error.hpp"

namespace kernelmill::remote {

struct near_options {
  std::string host;
  std::string build;                ///< of this program: an installed one of the same build serves
  int wake = -1;                    ///< readable when a signal came
  std::function<int()> take_signal; ///< 0: none
  std::function<void(const std::string&)> talk;     ///< one line for the user
  std::function<void(int, std::string_view)> print; ///< bytes of stdout (1) or stderr (2)
};

/// An input with its bytes: a file here, or a text.
struct near_input {
  std::string far;
  std::string source; ///< a path here; empty: `text` counts
  std::string text = {};
};

class connection;

class near_session {
public:
  near_session(near_options options, std::string id)
      : options_(std::move(options)), id_(std::move(id)) {}

  /// Opens a session for `what`, whose inputs are made of `inputs`; follows it to its end, fetches
  /// and closes. Returns the command's exit code.
  expected<int> run(order what, std::vector<near_input> inputs, std::vector<fetched_place> places);

  /// The same of a session that was left: its command runs or has ended.
  expected<int> attach(const near_record& known);

  /// Ends the session's command and removes its folder.
  expected<void> close();

  const std::string& id() const noexcept { return id_; }

private:
  expected<int> until_done();
  expected<void> attempt();
  expected<void> open(connection& link);
  expected<void> send_blobs(connection& link, const std::string& list);
  expected<void> follow(connection& link);
  expected<void> fetch(connection& link);
  expected<void> close(connection& link);
  expected<void> show(const frame& x);
  expected<void> pass_on_signal(connection& link);
  expected<void> wait_before(int tries, const error& why);

  near_options options_;
  std::string id_;
  order order_;
  std::vector<near_input> inputs_; ///< as order_.inputs
  std::vector<fetched_place> places_;
  std::string command_;
  bool attached_ = false;
  bool opened_ = false; ///< the far end has the session: what breaks now is tried again
  bool started_ = false;
  bool fetched_ = false;
  uint64_t shown_[2] = {0, 0};
  std::optional<session_exit> exit_;
  int signals_ = 0; ///< that went to the command
  int last_signal_ = 0;
  size_t progress_ = 0; ///< frames that say that the session goes on
};

/// The sessions of a host, as its `remote ls` prints them.
expected<nlohmann::json> sessions_on(const near_options& options);

} // namespace kernelmill::remote
