#pragma once

// The screen of `top` as lines of text. A frame is a function of what was seen: tests need no
// terminal.

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace kernelmill::watch {

using json = nlohmann::ordered_json;

enum class line_style : unsigned char { plain, title, good, warning, bad, selected };

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

/// What the user has asked of the screen.
struct frame_options {
  double age = 0;                      ///< seconds since `top` was true
  std::optional<size_t> selected = {}; ///< number of a row of episodes; its page of rows is shown
  std::string filter = {};             ///< as it was typed; empty: all episodes
  std::string sort = {};               ///< a key of rows, "-KEY" downwards; empty: troubles first
};

/// The rows of episodes of all runs in the order in which a frame shows them.
std::vector<const json*> rows_of_episodes(const json& top, const std::string& sort);

/// At most `height` lines of at most `width` columns. `top` is the document of the view of that
/// name.
std::vector<frame_line> top_frame(const json& top, const change_window& window, size_t width,
                                  size_t height, const frame_options& options = {});

} // namespace kernelmill::watch
