#include "close_pairs.hpp"

bool are_close(const point& a, const point& b, double radius) {
  double x = a.x - b.x;
  double y = a.y - b.y;
  return x * x + y * y <= radius * radius;
}
