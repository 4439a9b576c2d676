#include "launch/commands/judge/roofline_picture.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "launch/cli/terminal.hpp"

namespace kernelmill::commands {

namespace {

constexpr int columns = 60, rows = 12; // of the text's picture
constexpr double width = 640, height = 400, left = 80, right = 20, above = 40, below = 60;

bool is_drawn(const roofline_position& x) {
  return x.intensity && *x.intensity > 0 && x.flops && *x.flops > 0;
}

/// What the axes show, in decimal logarithms.
struct frame {
  double x0, x1, y0, y1;
  device_roof roof;

  double across(double intensity) const { return (std::log10(intensity) - x0) / (x1 - x0); }
  double up(double flops) const { return (std::log10(flops) - y0) / (y1 - y0); }
  double roof_at(double intensity) const {
    return std::min(*roof.flops, intensity * *roof.bandwidth);
  }
};

// Whole decades around the ridge and all points. The peaks are those of one device.
std::optional<frame> frame_of(const std::vector<roofline_point>& points) {
  for (const auto& one : points) {
    auto ridge = one.position.roof.ridge();
    if (!ridge) continue;
    frame result{std::log10(*ridge) - 1, std::log10(*ridge) + 1,
                 std::log10(*one.position.roof.flops) - 2, std::log10(*one.position.roof.flops),
                 one.position.roof};
    for (const auto& x : points) {
      if (!is_drawn(x.position)) continue;
      result.x0 = std::min(result.x0, std::log10(*x.position.intensity) - 0.5);
      result.x1 = std::max(result.x1, std::log10(*x.position.intensity) + 0.5);
      result.y0 = std::min(result.y0, std::log10(*x.position.flops) - 0.5);
      result.y1 = std::max(result.y1, std::log10(*x.position.flops));
    }
    result.x0 = std::floor(result.x0), result.x1 = std::ceil(result.x1);
    result.y0 = std::floor(result.y0), result.y1 = std::ceil(result.y1 + 0.01);
    return result;
  }
  return std::nullopt;
}

char letter_of(size_t i) {
  return static_cast<char>(i < 26 ? 'A' + i : '?');
}

std::string drawn(const frame& f, const std::vector<roofline_point>& points) {
  std::vector<std::string> grid(rows, std::string(columns, ' '));
  auto put = [&](double across, double up, char what) {
    auto column = static_cast<int>(std::lround(across * (columns - 1)));
    auto row = rows - 1 - static_cast<int>(std::lround(up * (rows - 1)));
    if (column >= 0 && column < columns && row >= 0 && row < rows) grid[row][column] = what;
  };
  for (int i = 0; i < columns; ++i) {
    double across = static_cast<double>(i) / (columns - 1);
    double intensity = std::pow(10, f.x0 + across * (f.x1 - f.x0));
    put(across, f.up(f.roof_at(intensity)), '.');
  }
  for (size_t i = 0; i < points.size(); ++i)
    if (const auto& x = points[i].position; is_drawn(x))
      put(f.across(*x.intensity), f.up(*x.flops), letter_of(i));
  std::string result;
  for (int i = 0; i < rows; ++i) {
    auto label = i == 0          ? with_unit(std::pow(10, f.y1), "flop/s")
                 : i == rows - 1 ? with_unit(std::pow(10, f.y0), "flop/s")
                                 : std::string{};
    while (grid[i].ends_with(' ')) grid[i].pop_back();
    result += fmt::format("{:>12} |{}\n", label, grid[i]);
  }
  auto ends = fmt::format("{:.3g} flop/B", std::pow(10, f.x0));
  auto end = fmt::format("{:.3g} flop/B", std::pow(10, f.x1));
  result += std::string(13, ' ') + "+" + std::string(columns, '-') + "\n";
  result += fmt::format("{:14}{}{:>{}}\n", "", ends, end, columns - static_cast<int>(ends.size()));
  return result;
}

// -- SVG ------------------------------------------------------------------------------------------

std::string escaped(const std::string& text) {
  std::string result;
  for (char c : cli::clean(text)) {
    if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '&')
      result += "&amp;";
    else if (c == '"')
      result += "&quot;";
    else
      result += c;
  }
  return result;
}

struct canvas {
  const frame& f;

  double x(double intensity) const { return left + f.across(intensity) * (width - left - right); }
  double y(double flops) const { return height - below - f.up(flops) * (height - above - below); }
};

std::string axes(const canvas& c) {
  std::string result;
  for (auto i = static_cast<int>(c.f.x0); i <= static_cast<int>(c.f.x1); ++i) {
    double x = c.x(std::pow(10, i));
    result +=
        fmt::format("<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\" class=\"grid\"/>"
                    "<text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4:g}</text>\n",
                    x, above, height - below, height - below + 18, std::pow(10, i));
  }
  for (auto i = static_cast<int>(c.f.y0); i <= static_cast<int>(c.f.y1); ++i) {
    double y = c.y(std::pow(10, i));
    result +=
        fmt::format("<line x1=\"{0}\" y1=\"{1:.1f}\" x2=\"{2}\" y2=\"{1:.1f}\" class=\"grid\"/>"
                    "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
                    left, y, width - right, left - 6, y + 4, with_unit(std::pow(10, i), "flop/s"));
  }
  result += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">arithmetic intensity, "
                        "flop/B</text>\n",
                        (left + width - right) / 2, height - 18);
  return result;
}

std::string roof(const canvas& c) {
  double ridge = *c.f.roof.ridge();
  double first = std::pow(10, c.f.x0), last = std::pow(10, c.f.x1);
  // The slope may leave the picture at its lower edge.
  double begin = std::max(first, std::pow(10, c.f.y0) / *c.f.roof.bandwidth);
  return fmt::format(
      "<polyline class=\"roof\" points=\"{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}\"/>\n"
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}; {}; ridge {:.3g} flop/B</text>\n",
      c.x(begin), c.y(c.f.roof_at(begin)), c.x(ridge), c.y(*c.f.roof.flops), c.x(last),
      c.y(*c.f.roof.flops), width - right, c.y(*c.f.roof.flops) - 6,
      with_unit(*c.f.roof.bandwidth, "B/s"), with_unit(*c.f.roof.flops, "flop/s"), ridge);
}

} // namespace

std::string roofline_text(const std::vector<roofline_point>& points) {
  std::string lines;
  bool any = false;
  for (size_t i = 0; i < points.size(); ++i) {
    auto words = position_text(points[i].position);
    if (words.empty()) continue;
    any = any || is_drawn(points[i].position);
    lines += fmt::format("  {} {}: {}\n", is_drawn(points[i].position) ? letter_of(i) : '-',
                         cli::clean(points[i].name), words);
  }
  if (lines.empty()) return {};
  auto f = frame_of(points);
  return "roofline\n" + (f && any ? drawn(*f, points) : std::string{}) + lines;
}

std::string roofline_svg(const std::string& title, const std::vector<roofline_point>& points) {
  auto f = frame_of(points);
  if (!f) return {};
  canvas c{*f};
  std::string words, marks;
  for (const auto& one : points) {
    auto place = position_text(one.position);
    if (!place.empty()) words += one.name + ": " + place + ". ";
    if (!is_drawn(one.position)) continue;
    double x = c.x(*one.position.intensity), y = c.y(*one.position.flops);
    marks += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\"/><text x=\"{:.1f}\" "
                         "y=\"{:.1f}\">{}</text>\n",
                         x, y, x + 9, y + 4, escaped(one.name));
  }
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
             "height=\"{1}\" role=\"img\" font-family=\"sans-serif\" font-size=\"12\">\n"
             "<title>{2}</title>\n<desc>{3}</desc>\n"
             "<style>.grid{{stroke:#ccc}}.roof{{fill:none;stroke:#333;stroke-width:2}}"
             "circle{{fill:#c03}}</style>\n"
             "<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n"
             "<text x=\"{4}\" y=\"20\" font-weight=\"bold\">{2}</text>\n",
             width, height, escaped(title), escaped(words), left) +
         axes(c) + roof(c) + marks + "</svg>\n";
}

} // namespace kernelmill::commands
