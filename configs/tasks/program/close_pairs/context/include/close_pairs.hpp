#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

struct point {
  double x; // from 0 to 1
  double y;
};

// Whether two points lie no further apart than the radius. In distance.cpp.
bool are_close(const point& a, const point& b, double radius);

// How many pairs of these points are close. In solution.cpp.
uint64_t count_close_pairs(const std::vector<point>& points, double radius);
