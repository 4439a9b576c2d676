#pragma once

// Puts the pieces of a streamed completion together as they come, so that what is kept is the
// completion and not the frames around each token, which are a hundred times larger. A server
// that answers with one plain JSON object although a stream was asked for is understood too.

#include <mutex>
#include <string>

#include "actors/policy_client/protocol/openai_protocol.hpp"
#include "actors/policy_client/protocol/sse_parser.hpp"

namespace kernelmill {

/// What has come of a stream, for people who look on.
struct stream_glimpse {
  size_t bytes = 0; ///< of the completion and its thoughts
  std::string tail; ///< its last part, 160 bytes at most; may begin within a character
};

class chat_stream {
public:
  /// `limit` bounds the text of the completion, and a plain answer as a whole.
  explicit chat_stream(size_t limit = size_t{4} << 20);

  /// Takes the next bytes of the body; false once it is clear that nothing good will come.
  bool feed(std::string_view bytes);

  /// Says what came, after the body has ended. A stream that ended without [DONE] and without a
  /// reason to finish has failed: what is missing at its end cannot be told from what was never
  /// generated.
  tl::expected<completion_answer, bad_answer> finish();

  /// Whether the body was a stream of events, not one plain answer.
  bool is_stream() const noexcept { return shape_ == shape::events; }

  /// True when what failed was a limit.
  bool too_large() const noexcept { return too_large_; }

  /// Whether all of the completion came, whatever became of the connection afterwards.
  bool complete() const noexcept { return !failure_ && any_choice_ && has_end(); }

  /// What came so far, after the body has ended.
  completion_answer partial() const;

  /// Thread safety: any thread, while another feeds.
  stream_glimpse glimpse() const;

private:
  enum class shape : unsigned char { unknown, events, plain };

  bool has_end() const noexcept { return done_ || !answer_.finish_reason.empty(); }
  bool take(const sse_event& event);
  bool fail(bad_answer why);
  bool overflow(const char* what);
  void show();

  size_t limit_;
  shape shape_ = shape::unknown;
  std::string plain_;
  sse_parser parser_;
  completion_answer answer_;
  bool done_ = false;
  bool any_choice_ = false;
  bool too_large_ = false;
  std::optional<bad_answer> failure_;
  mutable std::mutex shown_mutex_;
  stream_glimpse shown_; ///< guarded by shown_mutex_
};

} // namespace kernelmill
