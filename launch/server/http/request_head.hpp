#pragma once

// What RFC 9112 says of a request's head, before KJ reads it: KJ 0.9 takes more than that, and what
// two readers of one connection take for different requests is a way past one of them.

#include <cstddef>
#include <string>
#include <string_view>

namespace kernelmill::http {

/// What is wrong with a whole head, up to and with its empty line; empty: nothing. Lines must end
/// with CR LF and none may continue another; one Host; a length of digits that is given once and
/// not beside a transfer encoding.
std::string head_fault(std::string_view head);

/// A head that comes in pieces.
class head_scan {
public:
  /// Takes the bytes of `piece` that belong to the head, and returns how many those are. After that
  /// is less than all, and in any case behind its empty line, is_whole().
  size_t take(std::string_view piece);

  bool is_whole() const noexcept { return whole_; }
  size_t size() const noexcept { return head_.size(); }
  /// As soon as no further byte can mend it; for the rest, once it is whole.
  std::string fault() const;

private:
  std::string head_;
  bool whole_ = false;
  bool bare_ = false; ///< a line ended without CR
};

} // namespace kernelmill::http
