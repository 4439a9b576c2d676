#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "actors/episode/prompt.hpp"
#include "actors/episode/unchanged.hpp"
#include "gpu/task/task.hpp"
#include "messages/message.hpp"
#include "messages/retrieve.capnp.h"

namespace kernelmill {

/// The opening of a conversation, shared by every episode that starts with the same words.
struct prompt_text {
  /// The code in this prompt and in its task, read when the first answer is compared with it.
  /// Thread safety: any number of threads.
  const shown_code& shown(const task& what) const;

  std::string system;
  std::string user;
  std::string system_sha256;
  std::string user_sha256;
  mutable std::atomic<bool> durable = false; ///< both texts are in the artifact store

private:
  mutable std::once_flag read_;
  mutable std::optional<shown_code> shown_;
};

/// Gives episodes of one task one copy of their first prompt, as long as the retrieved examples
/// stay the same: 100,000 live episodes hold a few prompts, not 100,000.
/// Thread safety: any number of threads.
class prompt_cache {
public:
  using system_words = std::function<std::string(const task&)>;

  /// `system` writes the system messages.
  explicit prompt_cache(system_words system = system_prompt) : system_(std::move(system)) {
    // nop
  }

  std::shared_ptr<const prompt_text> open(const task& what,
                                          const Message<wire::RetrieveResult>& examples);

  /// The same with words of one episode behind it, so the text is of that episode alone.
  std::shared_ptr<const prompt_text>
  open_with(const task& what, const Message<wire::RetrieveResult>& examples, std::string_view more);

private:
  struct entry {
    std::string examples; // the bytes of the answer that the prompt was written with
    std::shared_ptr<const prompt_text> text;
  };
  system_words system_;
  std::mutex mutex_;
  std::map<std::pair<std::string, size_t>, entry> entries_; // by task id and count of examples
};

} // namespace kernelmill
