#pragma once

// The one seam to ncurses, whose macros stay on its other side.

#include <cstddef>
#include <string>
#include <vector>

#include "launch/analysis/watch/top_frame.hpp"
#include "messages/error.hpp"

namespace kernelmill::commands {

enum class key : unsigned char {
  none, ///< nothing was pressed, or nothing that has a meaning here
  letter,
  enter,
  escape,
  backspace,
  up,
  down,
  page_up,
  page_down,
  home,
  end
};

struct keystroke {
  key name = key::none;
  char letter = 0; ///< of key::letter: one byte of what was typed
};

/// The whole terminal while it lives. One at a time.
class screen {
public:
  /// Errors: "usage" when stdout is no terminal that can be drawn on.
  static expected<screen> open(bool colour);
  screen(screen&& other) noexcept;
  screen& operator=(screen&&) = delete;
  ~screen(); ///< gives the terminal back as it was

  size_t width() const;
  size_t height() const;

  /// Only what differs from the frame before is sent.
  void show(const std::vector<watch::frame_line>& lines);

  /// Waits for a key, `ms` at most.
  keystroke wait(int ms);

private:
  screen() = default;
  bool owns_ = false;
};

} // namespace kernelmill::commands
