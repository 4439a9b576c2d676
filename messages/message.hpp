#pragma once

// A Message<T> is one immutable run of Cap'n Proto words whose root is the schema struct T.
// Copies share the words; nothing is decoded until somebody opens it. It crosses the wire as
// bytes (messages/actors.hpp teaches CAF how) and lands in the store as the same bytes.
//
// Thread safety: a Message is a value; any number of threads may open the same words.

#include <cstring>
#include <memory>
#include <utility>

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/array.h>

#include "messages/error.hpp"

namespace kernelmill {

/// The most bytes that a message may have; more is refused before it is allocated.
inline constexpr size_t max_message_bytes = size_t{256} << 20;

/// Limits for reading words that came from elsewhere: four times the size of the message, at
/// most, and 16 levels of nesting.
inline capnp::ReaderOptions reader_limits(size_t words) {
  capnp::ReaderOptions limits;
  limits.traversalLimitInWords = words * 4 + 1024;
  limits.nestingLimit = 16;
  return limits;
}

template <class T>
class Message {
public:
  using schema = T;

  /// Opens the words for reading; keep it alive as long as anything read from it.
  class view {
  public:
    explicit view(const Message& source)
        : words_(source.words_), reader_(source.word_array(), reader_limits(source.word_count())),
          root_(reader_.template getRoot<T>()) {}
    view(const view&) = delete;
    view& operator=(const view&) = delete;

    typename T::Reader operator*() const { return root_; }
    const typename T::Reader* operator->() const { return &root_; }

  private:
    std::shared_ptr<const kj::Array<capnp::word>> words_;
    capnp::FlatArrayMessageReader reader_;
    typename T::Reader root_;
  };

  /// Holds nothing; opens as a T of default values.
  Message() = default;

  /// Flattens `builder`, whose root is a T.
  explicit Message(capnp::MessageBuilder& builder)
      : words_(std::make_shared<const kj::Array<capnp::word>>(capnp::messageToFlatArray(builder))) {
  }

  explicit Message(kj::Array<capnp::word> words)
      : words_(std::make_shared<const kj::Array<capnp::word>>(std::move(words))) {}

  /// Copies `bytes` from the wire or the store and checks that a T can be read from them.
  static expected<Message> from_bytes(const void* bytes, size_t size) {
    if (size == 0 || size % sizeof(capnp::word) != 0 || size > max_message_bytes)
      return infrastructure_error("malformed_message",
                                  "failed to read a message of " + std::to_string(size) + " bytes");
    auto words = kj::heapArray<capnp::word>(size / sizeof(capnp::word));
    std::memcpy(words.begin(), bytes, size);
    Message result{std::move(words)};
    try {
      view check{result};
      return result;
    } catch (const kj::Exception& e) {
      return infrastructure_error("malformed_message", std::string{"failed to read a message: "} +
                                                           e.getDescription().cStr());
    }
  }

  view open() const { return view{*this}; }
  bool empty() const noexcept { return words_ == nullptr; }

  /// The bytes of the words; null and 0 for an empty message.
  const char* data() const noexcept {
    return words_ ? reinterpret_cast<const char*>(words_->begin()) : nullptr;
  }
  size_t size() const noexcept { return words_ ? words_->size() * sizeof(capnp::word) : 0; }

private:
  // An empty message reads as one segment that holds a null pointer: all defaults.
  kj::ArrayPtr<const capnp::word> word_array() const {
    alignas(capnp::word) static const uint64_t none[2] = {uint64_t{1} << 32, 0};
    return words_ ? words_->asPtr()
                  : kj::arrayPtr(reinterpret_cast<const capnp::word*>(none), size_t{2});
  }
  size_t word_count() const { return words_ ? words_->size() : 2; }

  std::shared_ptr<const kj::Array<capnp::word>> words_;
};

/// Builds a Message<T>: `build<T>([&](T::Builder x) { ... })`.
template <class T, class F>
Message<T> build(F&& fill, size_t first_segment_words = 256) {
  capnp::MallocMessageBuilder builder{static_cast<unsigned>(first_segment_words)};
  fill(builder.initRoot<T>());
  return Message<T>{builder};
}

/// Copies a struct that was read elsewhere into a message of its own.
template <class T>
Message<T> copy_of(typename T::Reader source) {
  capnp::MallocMessageBuilder builder;
  builder.setRoot(source);
  return Message<T>{builder};
}

} // namespace kernelmill
