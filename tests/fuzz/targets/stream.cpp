// Event streams of policy servers. However the network cuts a stream, it means the same.

#include <cmath>

#include "actors/policy_client/protocol/chat_stream.hpp"
#include "tests/fuzz/support.hpp"
#include "tests/fuzz/targets.hpp"

namespace kernelmill::fuzz {

namespace {

constexpr size_t limit = 16 << 10;

struct reading {
  bool good = false;
  bool too_large = false;
  std::string text;
  std::vector<int32_t> ids;
};

// Cut into pieces of `piece` bytes.
reading read(std::string_view bytes, size_t piece) {
  chat_stream from{limit};
  for (size_t i = 0; i < bytes.size(); i += piece)
    if (!from.feed(bytes.substr(i, piece))) break;
  auto x = from.finish();
  if (!x) return {false, from.too_large(), {}, {}};
  promise(x->content.size() + x->reasoning.size() <= 2 * limit, "the limit holds");
  return {true, false, full_text(*x), x->token_ids};
}

void events(std::string_view bytes, size_t piece, std::vector<std::string>& into) {
  sse_parser parser{[&](const sse_event& x) {
                      promise(x.data.size() <= limit, "an event is no larger than the limit");
                      into.push_back(x.type + ":" + x.data);
                      return true;
                    },
                    limit};
  for (size_t i = 0; i < bytes.size(); i += piece)
    if (!parser.feed(bytes.substr(i, piece))) break;
}

} // namespace

void stream(std::string_view bytes) {
  size_t piece = size_t{1} + take_byte(bytes) % 67;
  auto whole = read(bytes, std::max<size_t>(bytes.size(), 1));
  auto cut = read(bytes, piece);
  promise(whole.good == cut.good, "a cut stream is as good as a whole one");
  promise(whole.text == cut.text && whole.ids == cut.ids, "a cut stream says the same");
  std::vector<std::string> at_once, in_pieces;
  events(bytes, std::max<size_t>(bytes.size(), 1), at_once);
  events(bytes, piece, in_pieces);
  promise(at_once == in_pieces, "cut events are the same events");
}

} // namespace kernelmill::fuzz
