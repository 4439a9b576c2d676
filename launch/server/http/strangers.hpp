#pragma once

// Connections that have made no request which is allowed: a client without a token can have any
// number of them and say nothing. An honest client's last for milliseconds, so the oldest one is
// the least likely to be one.

#include <cstdint>
#include <functional>
#include <map>

#include "messages/base/peer_origin.hpp"

namespace kernelmill::http {

class strangers {
public:
  using number = uint64_t; ///< of a connection; the later, the higher

  explicit strangers(size_t of_address) : of_address_(of_address) {}

  /// `leave` ends it, and may call remove() later, not at once.
  number add(const peer_origin& from, std::function<void()> leave);

  /// It has been let in, or is gone; again: nothing.
  void remove(number which);

  /// For a newcomer from there: ends the oldest one of its address where that has its share, else
  /// the oldest of all where the server `is_full`. Whether one was ended.
  bool make_room(const peer_origin& from, bool is_full);

private:
  struct one {
    peer_origin from;
    std::function<void()> leave;
  };

  size_t of_address_;
  number next_ = 0;
  std::map<number, one> all_;
  std::map<peer_origin, size_t> counts_;
};

} // namespace kernelmill::http
