#include "launch/commands/view/screen.hpp"

#include <clocale>
#include <cstdio>
#include <utility>

#include <unistd.h>

#define NCURSES_NOMACROS // else `erase` and others are macros, also behind `::`
#include <curses.h>

namespace kernelmill::commands {

namespace {

SCREEN* the_terminal = nullptr;

attr_t attributes_of(watch::line_style x) {
  switch (x) {
    case watch::line_style::title: return A_BOLD | A_REVERSE;
    case watch::line_style::good: return has_colors() ? COLOR_PAIR(1) : A_NORMAL;
    case watch::line_style::warning: return has_colors() ? COLOR_PAIR(2) : A_BOLD;
    case watch::line_style::bad: return (has_colors() ? COLOR_PAIR(3) : A_NORMAL) | A_BOLD;
    case watch::line_style::selected: return A_REVERSE;
    case watch::line_style::plain: break;
  }
  return A_NORMAL;
}

} // namespace

expected<screen> screen::open(bool colour) {
  if (!::isatty(STDIN_FILENO) || !::isatty(STDOUT_FILENO))
    return configuration_error("usage", "failed to run 'top': it needs a terminal",
                               "`kernelmill top --once` prints one frame");
  std::setlocale(LC_CTYPE, "");
  the_terminal = ::newterm(nullptr, stdout, stdin); // initscr() would end the process
  if (the_terminal == nullptr)
    return configuration_error("usage",
                               "failed to run 'top': ncurses does not know this terminal (TERM)",
                               "set TERM, such as TERM=xterm, or use `kernelmill top --once`");
  ::set_term(the_terminal);
  ::cbreak();
  ::noecho();
  ::curs_set(0);
  ::keypad(stdscr, TRUE);
  ::set_escdelay(25);
  if (colour && ::has_colors()) {
    ::start_color();
    ::use_default_colors();
    ::init_pair(1, COLOR_GREEN, -1);
    ::init_pair(2, COLOR_YELLOW, -1);
    ::init_pair(3, COLOR_RED, -1);
  }
  screen result;
  result.owns_ = true;
  return result;
}

screen::screen(screen&& other) noexcept : owns_(std::exchange(other.owns_, false)) {
  // nop
}

screen::~screen() {
  if (!owns_) return;
  ::endwin();
  ::delscreen(the_terminal);
  the_terminal = nullptr;
}

size_t screen::width() const {
  return static_cast<size_t>(std::max(1, getmaxx(stdscr)));
}

size_t screen::height() const {
  return static_cast<size_t>(std::max(1, getmaxy(stdscr)));
}

void screen::show(const std::vector<watch::frame_line>& lines) {
  ::erase();
  auto rows = static_cast<int>(height());
  for (int y = 0; y < rows && y < static_cast<int>(lines.size()); ++y) {
    const auto& line = lines[static_cast<size_t>(y)];
    auto attributes = attributes_of(line.style);
    ::attrset(static_cast<int>(attributes));
    ::mvaddnstr(y, 0, line.text.c_str(), static_cast<int>(line.text.size()));
    if (line.style == watch::line_style::title || line.style == watch::line_style::selected)
      ::mvchgat(y, 0, -1, attributes, 0, nullptr);
  }
  ::attrset(A_NORMAL);
  ::refresh();
}

keystroke screen::wait(int ms) {
  ::timeout(ms);
  auto x = ::getch();
  switch (x) {
    case '\n':
    case '\r':
    case KEY_ENTER: return {key::enter};
    case 27: return {key::escape};
    case 8:
    case 127:
    case KEY_BACKSPACE: return {key::backspace};
    case KEY_UP: return {key::up};
    case KEY_DOWN: return {key::down};
    case KEY_PPAGE: return {key::page_up};
    case KEY_NPAGE: return {key::page_down};
    case KEY_HOME: return {key::home};
    case KEY_END: return {key::end};
    default: break;
  }
  if (x < ' ' || x > 255) return {};
  return {key::letter, static_cast<char>(x)};
}

} // namespace kernelmill::commands
