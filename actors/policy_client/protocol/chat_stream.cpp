#include "actors/policy_client/protocol/chat_stream.hpp"

#include <algorithm>

#include "actors/policy_client/protocol/json_view.hpp"

namespace kernelmill {

namespace {

constexpr size_t most_shown = 160;

} // namespace

chat_stream::chat_stream(size_t limit)
    : limit_(limit), parser_([this](const sse_event& x) { return take(x); }, limit) {
  // nop
}

bool chat_stream::feed(std::string_view bytes) {
  if (failure_) return false;
  if (shape_ == shape::unknown) {
    auto first = bytes.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) return true;
    shape_ = bytes[first] == '{' ? shape::plain : shape::events;
  }
  if (shape_ == shape::plain) {
    if (plain_.size() + bytes.size() > limit_) return overflow("the answer");
    plain_.append(bytes);
    return true;
  }
  // Servers may go on talking after [DONE]; reading on keeps the connection usable.
  if (done_) return true;
  auto more = parser_.feed(bytes);
  show();
  if (more) return true;
  if (parser_.overflowed()) return overflow("an event");
  return done_;
}

bool chat_stream::take(const sse_event& event) {
  if (event.data == "[DONE]") {
    done_ = true;
    return false;
  }
  auto frame = json_document::of_answer(event.data);
  auto choice = first_of(member(frame.root(), "choices"));
  if (!choice)
    if (auto why = reported_error(event.data)) return fail({true, std::move(*why)});
  if (event.type == "error") return fail({true, parse_error_body(event.data)});
  // What a server says after the end is no part of the answer.
  if (!is_object(frame.root()) && has_end()) return true;
  if (!is_object(frame.root()))
    return fail({false,
                 {"an event is not JSON: \"" + parse_error_body(event.data).message + "\"", {}, {}},
                 any_choice_ || shows_completion(event.data)});
  add_frame(answer_, *frame.root());
  // The frame that carries the usage has no choices.
  if (!choice) return true;
  any_choice_ = true;
  add_choice(answer_, *choice, true);
  if (answer_.content.size() + answer_.reasoning.size() + answer_.call_bytes <= limit_) return true;
  return overflow("the completion");
}

bool chat_stream::fail(bad_answer why) {
  if (!failure_) failure_ = std::move(why);
  return false;
}

// Thoughts come first, so the completion's own words are its end as soon as there are any.
void chat_stream::show() {
  const auto& latest = answer_.content.empty() ? answer_.reasoning : answer_.content;
  std::lock_guard lock{shown_mutex_};
  shown_.bytes = answer_.content.size() + answer_.reasoning.size();
  shown_.tail = latest.substr(latest.size() - std::min(latest.size(), most_shown));
}

stream_glimpse chat_stream::glimpse() const {
  std::lock_guard lock{shown_mutex_};
  return shown_;
}

completion_answer chat_stream::partial() const {
  auto result = answer_;
  settle_words(result);
  settle_tokens(result);
  return result;
}

bool chat_stream::overflow(const char* what) {
  too_large_ = true;
  return fail({false, {what + (" is above " + std::to_string(limit_)) + " bytes", {}, {}}, true});
}

tl::expected<completion_answer, bad_answer> chat_stream::finish() {
  if (!failure_ && shape_ == shape::plain) return parse_chat_response(plain_);
  if (!failure_ && !has_end()) fail({false, {"the stream ended without [DONE]", {}, {}}});
  if (!failure_ && !any_choice_) fail({false, {"the stream brought no choices", {}, {}}});
  if (failure_) return tl::unexpected<bad_answer>{*failure_};
  return partial();
}

} // namespace kernelmill
