#pragma once

// A text that never changes: its own, or a part of a mapped file. Copies share it, so an index of
// 50,000 kernels holds no copy of their code.

#include <memory>
#include <string>
#include <string_view>

namespace kernelmill {

class shared_text {
public:
  shared_text() = default;
  shared_text(std::string x) { // as wherever a string is taken
    auto own = std::make_shared<const std::string>(std::move(x));
    text_ = *own;
    owner_ = std::move(own);
  }
  shared_text(std::shared_ptr<const void> owner, std::string_view x)
      : owner_(std::move(owner)), text_(x) {}

  operator std::string_view() const { return text_; }
  std::string_view view() const { return text_; }
  bool empty() const { return text_.empty(); }
  size_t size() const { return text_.size(); }

  friend bool operator==(const shared_text& a, std::string_view b) { return a.text_ == b; }

private:
  std::shared_ptr<const void> owner_;
  std::string_view text_;
};

} // namespace kernelmill
