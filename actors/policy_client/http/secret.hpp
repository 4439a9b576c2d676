#pragma once

// A key that must not be seen. It comes from the environment or from a file, never from a
// configuration value or a command line; it prints nowhere; its memory is overwritten at the end.

#include <memory>
#include <string>
#include <string_view>

#include "messages/error.hpp"

namespace kernelmill {

class secret {
public:
  /// Takes the text and overwrites `source`, so that one copy exists.
  explicit secret(std::string& source);
  ~secret();
  secret(const secret&) = delete;
  secret& operator=(const secret&) = delete;

  /// The text, for the one place that sends it. Never put it into a message or a log.
  std::string_view reveal() const noexcept { return text_; }
  bool empty() const noexcept { return text_.empty(); }

  /// Replaces the key in a text that came back from a server: some servers quote it in errors. In
  /// Base64 and in hexadecimal, too.
  std::string redact(std::string text) const;

private:
  std::string text_;
};

using secret_ptr = std::shared_ptr<const secret>;

/// Reads a key from the environment variable or the file that is named; both empty gives null.
/// Fails when the source is missing, empty, above 16 KiB, or holds a byte that no header may hold.
expected<secret_ptr> load_secret(const std::string& environment_variable, const std::string& file);

/// Overwrites a text that held a key.
void wipe(std::string& text) noexcept;

} // namespace kernelmill
