#pragma once

// The screen of `top` as lines of text. A frame is a function of what was seen: tests need no
// terminal.

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace kernelmill::watch {

using json = nlohmann::ordered_json;

enum class line_style : unsigned char { plain, title, good, warning, bad };

struct frame_line {
  std::string text;
  line_style style = line_style::plain;
};

/// What was seen within a window, so that a frame can say what changed most.
class change_window {
public:
  change_window() = default;
  explicit change_window(double seconds) : seconds_(seconds) {}

  void add(const json& top);

  struct change {
    std::string what; ///< "first: turns"
    double from = 0, to = 0;
    double seconds = 0; ///< between the two
  };
  /// The numbers that changed, the greatest relative change first.
  std::vector<change> changes() const;

private:
  struct seen {
    double at = 0;
    std::vector<std::pair<std::string, double>> numbers;
  };
  double seconds_ = 10;
  std::deque<seen> seen_;
};

/// At most `height` lines of at most `width` columns. `top` is the document of the view of that
/// name; `age` says how many seconds ago it was true. `scroll` skips rows of episodes.
std::vector<frame_line> top_frame(const json& top, const change_window& window, size_t width,
                                  size_t height, double age = 0, size_t scroll = 0);

} // namespace kernelmill::watch
