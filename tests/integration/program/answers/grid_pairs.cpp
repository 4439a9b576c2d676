// file: solution.cpp
#include <algorithm>
#include <unordered_map>

#include "close_pairs.hpp"

// Points by the cells of a grid as wide as the radius: a point's partners lie in nine of them.
uint64_t count_close_pairs(const std::vector<point>& points, double radius) {
  const int64_t cells =
      std::max<int64_t>(1, std::min<int64_t>(4096, static_cast<int64_t>(1 / radius)));
  auto cell = [&](double x) {
    return std::min(cells - 1, static_cast<int64_t>(x * static_cast<double>(cells)));
  };
  std::unordered_map<int64_t, std::vector<size_t>> grid;
  uint64_t pairs = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    int64_t x = cell(points[i].x), y = cell(points[i].y);
    for (int64_t near_y = y - 1; near_y <= y + 1; ++near_y)
      for (int64_t near_x = x - 1; near_x <= x + 1; ++near_x) {
        auto found = grid.find(near_y * (cells + 2) + near_x);
        if (found == grid.end()) continue;
        for (size_t j : found->second) pairs += are_close(points[i], points[j], radius);
      }
    grid[y * (cells + 2) + x].push_back(i);
  }
  return pairs;
}
// file: distance.cpp
#include "close_pairs.hpp"

bool are_close(const point& a, const point& b, double radius) {
  double x = a.x - b.x, y = a.y - b.y;
  return x * x + y * y <= radius * radius;
}
