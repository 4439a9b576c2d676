// How texts and tables fit into a terminal.

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include <sys/ioctl.h>

#include "launch/cli/output.hpp"
#include "launch/cli/terminal.hpp"
#include "messages/base/utf8.hpp"

namespace kernelmill::cli {

namespace {

constexpr size_t gap = 2;             // columns between two cells
constexpr size_t short_enough = 20;   // for a cell to stay on one line
constexpr const char* below = "    "; // before what has no place in its row

size_t longest_word(std::string_view text) {
  size_t result = 0;
  for (size_t begin = 0; begin <= text.size();) {
    auto end = std::min(text.find_first_of(" \n", begin), text.size());
    result = std::max(result, columns_of(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return result;
}

struct column {
  std::string name;
  bool right = false;
  size_t width = 0;
  size_t least = 0; ///< of its longest word; what is short, and numbers, are not folded
};

std::vector<column> columns_for(const std::vector<std::string>& headers,
                                const std::vector<std::vector<std::string>>& rows) {
  std::vector<column> result(headers.size());
  for (size_t i = 0; i < headers.size(); ++i) {
    auto& x = result[i];
    x.name = headers[i];
    x.right = x.name.ends_with('>');
    if (x.right) x.name.pop_back();
    if (auto unit = x.name.find(" ["); unit != x.name.npos) x.name.erase(unit); // cells have it
    auto consider = [&](const std::string& text) {
      x.width = std::max(x.width, columns_of(text));
      x.least = std::max(x.least, x.right ? columns_of(text) : longest_word(text));
    };
    consider(x.name);
    for (const auto& row : rows)
      if (i < row.size()) consider(row[i]);
    x.least = std::max(x.least, std::min(x.width, short_enough));
  }
  return result;
}

// How many of the first columns fit side by side.
size_t count_that_fits(const std::vector<column>& columns, size_t width) {
  size_t count = 0, used = 0;
  for (const auto& x : columns) {
    used += x.least + (count > 0 ? gap : 0);
    if (used > width && count > 0) break;
    ++count;
  }
  return count;
}

// Takes from the widest until all fit, or until none can give more.
void narrow(std::vector<column>& columns, size_t width) {
  auto total = std::accumulate(columns.begin(), columns.end(), gap * (columns.size() - 1),
                               [](size_t sum, const column& x) { return sum + x.width; });
  for (; total > width; --total) {
    column* widest = nullptr;
    for (auto& x : columns)
      if (x.width > x.least && (!widest || x.width > widest->width)) widest = &x;
    if (!widest) return;
    --widest->width;
  }
}

// `columns` are those that fit; the cells behind them stand below.
std::string row_text(const std::vector<column>& columns, const std::vector<std::string>& cells,
                     size_t width) {
  std::vector<std::vector<std::string>> folded;
  size_t lines = 1;
  for (size_t i = 0; i < cells.size() && i < columns.size(); ++i) {
    folded.push_back(fold(cells[i], columns[i].width));
    lines = std::max(lines, folded.back().size());
  }
  std::string result;
  for (size_t n = 0; n < lines; ++n) {
    std::string line;
    for (size_t i = 0; i < folded.size(); ++i) {
      auto text = n < folded[i].size() ? folded[i][n] : std::string{};
      auto used = columns_of(text);
      std::string pad(columns[i].width > used ? columns[i].width - used : 0, ' ');
      line += (i > 0 ? std::string(gap, ' ') : "") + (columns[i].right ? pad + text : text + pad);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    result += line + "\n";
  }
  std::string rest;
  for (size_t i = columns.size(); i < cells.size(); ++i)
    rest += (rest.empty() ? "" : std::string(gap, ' ')) + cells[i];
  return rest.empty() ? result
                      : result + hanging(below, std::string_view{below}.size(), rest, width);
}

} // namespace

size_t terminal_width(int descriptor) {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* said = std::getenv("COLUMNS");
  auto columns = said ? std::atoi(said) : 0;
  return columns > 0 ? static_cast<size_t>(columns) : 0;
}

size_t columns_of(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !continues_utf8(c); }));
}

std::vector<std::string> fold(std::string_view text, size_t width) {
  std::vector<std::string> result;
  for (size_t begin = 0; begin <= text.size();) {
    auto end = std::min(text.find('\n', begin), text.size());
    auto line = text.substr(begin, end - begin);
    begin = end + 1;
    while (width > 0 && columns_of(line) > width) {
      auto at = line.npos; // the last blank that leaves a line which fits, else the first
      for (auto blank = line.find(' ', line.find_first_not_of(' ')); blank != line.npos;
           blank = line.find(' ', blank + 1)) {
        if (at != line.npos && columns_of(line.substr(0, blank)) > width) break;
        at = blank;
      }
      if (at == line.npos) break;
      result.emplace_back(line.substr(0, at));
      line.remove_prefix(std::min(line.find_first_not_of(' ', at), line.size()));
    }
    result.emplace_back(line);
  }
  return result;
}

std::string hanging(std::string_view first, size_t indent, std::string_view text, size_t width) {
  constexpr size_t narrowest = 20; // where less is left, an indent does no good
  if (width < indent + narrowest) width = 0;
  std::string result;
  for (const auto& line : fold(text, width == 0 ? 0 : width - indent)) {
    auto before = result.empty() ? std::string{first} : std::string(indent, ' ');
    result += line.empty() ? before.substr(0, before.find_last_not_of(' ') + 1) : before + line;
    result += '\n';
  }
  return result;
}

std::string shorten(std::string_view text, size_t width) {
  if (columns_of(text) <= width) return std::string{text};
  auto first = fold(text, width > 2 ? width - 2 : 1).front();
  return first + " \xe2\x80\xa6";
}

std::string format_table(const std::vector<std::string>& headers,
                         const std::vector<std::vector<std::string>>& rows, size_t width) {
  if (!prints_tables_alone()) return layout_table(headers, rows, width);
  take_table(headers, rows, width);
  return {};
}

std::string layout_table(const std::vector<std::string>& headers,
                         const std::vector<std::vector<std::string>>& rows, size_t width,
                         bool with_headers) {
  auto columns = columns_for(headers, rows);
  std::vector<std::string> names;
  for (const auto& x : columns) names.push_back(x.name);
  if (width > 0) {
    columns.resize(count_that_fits(columns, width));
    narrow(columns, width);
  }
  auto result = with_headers ? row_text(columns, names, width) : std::string{};
  for (const auto& row : rows) result += row_text(columns, row, width);
  return result;
}

} // namespace kernelmill::cli
