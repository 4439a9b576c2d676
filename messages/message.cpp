#include "messages/message.hpp"

namespace kernelmill {

// -- word_run -----------------------------------------------------------------------------------

// One segment is the common case, and is one allocation: words and reference count together.
word_run word_run::of(capnp::MessageBuilder& builder) {
  auto segments = builder.getSegmentsForOutput();
  if (segments.size() != 1) return of(capnp::messageToFlatArray(segments));
  auto body = segments[0];
  auto words = std::make_shared_for_overwrite<uint64_t[]>(body.size() + 1);
  words[0] = static_cast<uint64_t>(body.size()) << 32; // segment count less one, then its size
  std::memcpy(&words[1], body.begin(), body.asBytes().size());
  auto* first = reinterpret_cast<const capnp::word*>(words.get());
  return {{std::move(words), first}, body.size() + 1};
}

word_run word_run::of(kj::Array<capnp::word> words) {
  auto count = words.size();
  auto owner = std::make_shared<kj::Array<capnp::word>>(std::move(words));
  auto* first = owner->begin();
  return {{std::move(owner), first}, count};
}

kj::ArrayPtr<const capnp::word> word_run::read() const noexcept {
  alignas(capnp::word) static const uint64_t none[2] = {uint64_t{1} << 32, 0};
  if (!first) return kj::arrayPtr(reinterpret_cast<const capnp::word*>(none), size_t{2});
  return kj::arrayPtr(first.get(), count);
}

// -- scratch_builder ------------------------------------------------------------------------------

namespace {

constexpr size_t scratch_words = 8192; // most messages are far below these 64 KiB

// Always zero while not `taken`: Cap'n Proto asks for zeroed memory and leaves it zeroed.
struct scratch_memory {
  kj::Array<capnp::word> words;
  bool taken = false;
};
thread_local scratch_memory scratch;

kj::ArrayPtr<capnp::word> take_scratch() {
  if (scratch.words == nullptr) {
    scratch.words = kj::heapArray<capnp::word>(scratch_words);
    std::memset(scratch.words.begin(), 0, scratch.words.asBytes().size());
  }
  scratch.taken = true;
  return scratch.words;
}

} // namespace

scratch_builder::scratch_builder() : borrowed_(!scratch.taken) {
  if (borrowed_)
    builder_.emplace(take_scratch());
  else
    builder_.emplace();
}

scratch_builder::~scratch_builder() {
  builder_.reset();
  if (borrowed_) scratch.taken = false;
}

} // namespace kernelmill
