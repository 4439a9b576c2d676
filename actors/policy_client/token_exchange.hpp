#pragma once

// One completion in token ids, over several requests: the conversation is rendered by the server's
// own tokenizer and template, the prompt is made to go on from the ids that were kept, and the
// completion comes back as it was sampled. An exchange holds the order of requests and sends none:
// its owner sends what it wants and shows it what came.
//
// A server that does not tokenize messages is asked for one token by chat, which may tell the ids
// of the prompt; whether it completes ids at all is looked at before, since that token costs. A
// server that has neither is not asked for a completion.

#include <optional>
#include <string>

#include "actors/policy_client/completion_result.hpp"
#include "actors/policy_client/protocol/token_protocol.hpp"
#include "actors/policy_client/protocol/token_thread.hpp"

namespace kernelmill {

class token_exchange {
public:
  /// `known`: the server has completed ids before.
  token_exchange(Message<wire::CompletionRequest> request, chat_options options,
                 bool known = false);

  struct wanted {
    bool from_root = true; ///< else below the address with its version path
    std::string path;
    std::string body;
  };
  /// The request to send next; the same again when it has failed. `max_tokens` 0: the request's.
  wanted next(const std::string& request_id, uint32_t max_tokens = 0) const;

  /// Reads an answer. Its `answer` is the completion once more() is false.
  attempt_reading read(const http_response& response);
  bool more() const noexcept { return stage_ != stage::done; }

  /// What the server that gave the last answer cannot do, so that there are no ids; else empty.
  const std::string& lacks() const noexcept { return lacks_; }

private:
  // `whole` renders what was said; `first` and `second` render it with another answer each, which
  // shows what follows an answer.
  enum class stage : unsigned char { whole, first, second, generate, text, done };

  wanted rendering(const std::string* placeholder) const;
  void take_rendered(std::vector<int32_t> ids);
  void take_generated(const completion_answer& answer);
  void take_text(std::string text);
  attempt_reading read_of_stage(const http_response& response);
  bool turns_to_chat(const http_response& response);
  bool wants_text() const;

  Message<wire::CompletionRequest> request_;
  chat_options options_;
  token_thread thread_;
  stage stage_ = stage::whole;
  bool known_;
  bool by_chat_ = false;             ///< the server renders for completions only
  bool looks_for_route_ = false;     ///< whether it completes ids is looked at next
  std::optional<std::string> shown_; ///< the text of what is rendered, between the two steps of it
  std::vector<int32_t> whole_;
  std::vector<int32_t> first_;
  std::vector<int32_t> prompt_;
  completion_answer answer_;
  bool stop_texts_ = false;
  std::string lacks_;
};

} // namespace kernelmill
