#pragma once

// A Message<T> is one immutable run of Cap'n Proto words whose root is the schema struct T.
// Copies share the words; nothing is decoded until it is opened. It crosses the wire as
// bytes (messages/actors.hpp teaches CAF how) and lands in the store as the same bytes.
//
// Thread safety: a Message is a value; any number of threads may open the same words.

#include <cstring>
#include <memory>
#include <optional>
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

/// Words that messages share. They never change.
struct word_run {
  std::shared_ptr<const capnp::word> first; ///< null: none
  size_t count = 0;

  static word_run of(capnp::MessageBuilder& builder);
  static word_run of(kj::Array<capnp::word> words);

  /// None at all reads as one segment that holds a null pointer: all defaults.
  kj::ArrayPtr<const capnp::word> read() const noexcept;
};

template <class T>
class Message {
public:
  using schema = T;

  /// Opens the words for reading; keep it alive as long as anything read from it.
  class view {
  public:
    explicit view(const Message& source)
        : words_(source.words_), reader_(words_.read(), reader_limits(words_.read().size())),
          root_(reader_.template getRoot<T>()) {}
    view(const view&) = delete;
    view& operator=(const view&) = delete;

    typename T::Reader operator*() const { return root_; }
    const typename T::Reader* operator->() const { return &root_; }

  private:
    word_run words_;
    capnp::FlatArrayMessageReader reader_;
    typename T::Reader root_;
  };

  /// Holds nothing; opens as a T of default values.
  Message() = default;

  /// Flattens `builder`, whose root is a T.
  explicit Message(capnp::MessageBuilder& builder) : words_(word_run::of(builder)) {}

  explicit Message(kj::Array<capnp::word> words) : words_(word_run::of(std::move(words))) {}

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
  bool empty() const noexcept { return words_.first == nullptr; }

  /// The bytes of the words; null and 0 for an empty message.
  const char* data() const noexcept { return reinterpret_cast<const char*>(words_.first.get()); }
  size_t size() const noexcept { return words_.count * sizeof(capnp::word); }

private:
  word_run words_;
};

/// Lends this thread's scratch memory to one builder at a time, so that building a message costs
/// one allocation: the message's own. A second builder at the same time gets memory of its own.
class scratch_builder {
public:
  scratch_builder();
  ~scratch_builder();
  scratch_builder(const scratch_builder&) = delete;
  scratch_builder& operator=(const scratch_builder&) = delete;

  capnp::MallocMessageBuilder* operator->() { return &*builder_; }
  capnp::MallocMessageBuilder& operator*() { return *builder_; }

private:
  std::optional<capnp::MallocMessageBuilder> builder_;
  bool borrowed_;
};

/// Builds a Message<T>: `build<T>([&](T::Builder x) { ... })`.
template <class T, class F>
Message<T> build(F&& fill) {
  scratch_builder builder;
  fill(builder->initRoot<T>());
  return Message<T>{*builder};
}

/// Copies a struct that was read elsewhere into a message of its own.
template <class T>
Message<T> copy_of(typename T::Reader source) {
  scratch_builder builder;
  builder->setRoot(source);
  return Message<T>{*builder};
}

} // namespace kernelmill
