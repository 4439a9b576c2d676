#include "actors/policy_client/http/secret.hpp"

#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <strings.h>
#include <unistd.h>

namespace kernelmill {

namespace {

constexpr size_t max_secret_bytes = 16 << 10;

// The shortest run that redact() takes for a quote of the key.
constexpr size_t min_redacted_bytes = 4;

// The shortest key whose encodings are looked for: a part of a short one is in many texts.
constexpr size_t min_encoded_bytes = 8;

constexpr std::string_view plain_base64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view url_base64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

// The letters that a key alone decides, where `shift` bytes stand before it.
std::string base64_of(std::string_view key, size_t shift, std::string_view letters) {
  std::string result;
  auto bit = [&](size_t i) {
    auto byte = static_cast<unsigned char>(key[i / 8 - shift]);
    return byte >> (7 - i % 8) & 1;
  };
  for (auto at = (shift * 8 + 5) / 6 * 6; at + 6 <= (shift + key.size()) * 8; at += 6) {
    size_t value = 0;
    for (size_t i = at; i < at + 6; ++i) value = value << 1 | static_cast<size_t>(bit(i));
    result += letters[value];
  }
  return result;
}

std::string hex_of(std::string_view key, std::string_view digits) {
  std::string result;
  for (unsigned char c : key) {
    result += digits[c >> 4];
    result += digits[c & 15];
  }
  return result;
}

void replace_all(std::string& text, std::string_view what) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at))
    text.replace(at, what.size(), "[key]");
}

// Checks what was read; the text of the key stays out of every message.
expected<secret_ptr> make_secret(std::string& text, const std::string& source) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
    text.pop_back();
  if (text.empty())
    return configuration_error("policy_key_missing",
                               "failed to read the policy key: " + source + " is empty",
                               "set it, or remove the setting when the server needs no key");
  for (unsigned char c : text)
    if (c < 0x21 || c > 0x7e) {
      wipe(text);
      return configuration_error("policy_key_malformed",
                                 "failed to read the policy key: " + source +
                                     " holds a blank or a byte that no HTTP header may hold",
                                 "store the bare key, without quotes or other lines");
    }
  return std::make_shared<const secret>(text);
}

// A plain read: a stream would keep copies of the key in its buffers.
expected<std::string> read_key_file(const std::string& path) {
  auto fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (fd < 0)
    return configuration_error("policy_key_missing",
                               "failed to open the policy key file " + path + ": " +
                                   std::strerror(errno),
                               "check policy.api_key_file and the permissions of the file");
  std::string text(max_secret_bytes + 1, '\0');
  size_t size = 0;
  ssize_t n = 0;
  while (size < text.size() && (n = ::read(fd, text.data() + size, text.size() - size)) != 0) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    size += static_cast<size_t>(n);
  }
  auto cause = n < 0 ? std::string{std::strerror(errno)} : std::string{};
  ::close(fd);
  if (n < 0 || size > max_secret_bytes) {
    wipe(text);
    return configuration_error("policy_key_malformed",
                               "failed to read the policy key file " + path + ": " +
                                   (n < 0 ? cause : std::string{"it is above 16 KiB"}),
                               "the file should hold one line, the key");
  }
  text.resize(size);
  return text;
}

} // namespace

void wipe(std::string& text) noexcept {
  if (!text.empty()) explicit_bzero(text.data(), text.size());
  text.clear();
}

secret::secret(std::string& source) : text_(source) {
  wipe(source);
}

secret::~secret() {
  wipe(text_);
}

std::string secret::redact(std::string text) const {
  if (text_.size() < min_redacted_bytes) return text;
  replace_all(text, text_);
  if (text_.size() < min_encoded_bytes) return text;
  auto hide = [&](std::string encoded) {
    replace_all(text, encoded);
    wipe(encoded);
  };
  for (size_t shift = 0; shift < 3; ++shift)
    for (auto letters : {plain_base64, url_base64}) hide(base64_of(text_, shift, letters));
  for (auto digits : {"0123456789abcdef", "0123456789ABCDEF"}) hide(hex_of(text_, digits));
  return text;
}

expected<secret_ptr> load_secret(const std::string& environment_variable, const std::string& file) {
  if (!environment_variable.empty()) {
    const auto* value = std::getenv(environment_variable.c_str());
    if (value == nullptr)
      return configuration_error(
          "policy_key_missing",
          "failed to read the policy key: the environment variable " + environment_variable +
              " is not set",
          "export it before the run, or name another one in policy.api_key_env");
    std::string text{value};
    return make_secret(text, "the environment variable " + environment_variable);
  }
  if (file.empty()) return secret_ptr{};
  auto text = read_key_file(file);
  KM_TRY(text);
  return make_secret(*text, "the file " + file);
}

} // namespace kernelmill
