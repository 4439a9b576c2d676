#pragma once

// What the targets share: promises, pieces of an input, and files to read it from.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <poll.h>

#include <capnp/dynamic.h>

#include "messages/error.hpp"
#include "messages/json.hpp"
#include "messages/message.hpp"

namespace kernelmill::fuzz {

/// Ends the process with the broken promise's words, which the fuzzer takes for a crash.
void promise(bool kept, const char* words);

/// Every error of a parser has a category and a message that people can read.
void check_error(const error& x);

template <class T>
void check(const expected<T>& x) {
  if (!x) check_error(x.error());
}

/// Takes the first byte off; 0 of nothing.
unsigned char take_byte(std::string_view& from);

/// Up to `most` lines, without their ends.
std::vector<std::string> lines_of(std::string_view text, size_t most);

/// A memory file with these bytes, for parsers that read paths.
class memory_file_path {
public:
  explicit memory_file_path(std::string_view bytes);
  ~memory_file_path();
  memory_file_path(const memory_file_path&) = delete;
  memory_file_path& operator=(const memory_file_path&) = delete;
  const std::string& path() const { return path_; }

private:
  int fd_;
  std::string path_;
};

/// A connection to a server of this process.
int call_loopback(uint16_t port);

/// Waits for what `entry` asks for; false after a minute.
bool poll_a_minute(pollfd& entry);

/// A folder of this process in memory, removed at its end.
const std::string& scratch_folder();

void write_file(const std::string& path, std::string_view bytes);

/// Reads all of a message, as a program that shows it does.
void read_all(capnp::DynamicStruct::Reader x);

/// Reads bytes as a message, whole, and all of it.
template <class T>
void read_message(std::string_view bytes) {
  auto message = Message<T>::from_bytes(bytes.data(), bytes.size());
  if (!message) return check_error(message.error());
  try {
    read_all(*message->open());
  } catch (const kj::Exception&) {
    // Lists and texts are checked when they are read; their reader catches.
  }
}

} // namespace kernelmill::fuzz
