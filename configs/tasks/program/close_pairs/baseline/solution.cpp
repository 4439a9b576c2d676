#include "close_pairs.hpp"

uint64_t count_close_pairs(const std::vector<point>& points, double radius) {
  uint64_t pairs = 0;
  for (size_t i = 0; i < points.size(); ++i)
    for (size_t j = i + 1; j < points.size(); ++j)
      if (are_close(points[i], points[j], radius)) ++pairs;
  return pairs;
}
