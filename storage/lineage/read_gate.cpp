#include "storage/lineage/read_gate.hpp"

#include <algorithm>
#include <vector>

namespace kernelmill {

namespace {

// The gates that this thread is inside of, once for each time.
thread_local std::vector<const read_gate*> inside;

} // namespace

void read_gate::enter() {
  std::unique_lock lock{mutex_};
  bool nested = std::find(inside.begin(), inside.end(), this) != inside.end();
  if (!nested) turned_.wait(lock, [this] { return !changing_; });
  ++readers_;
  inside.push_back(this);
}

void read_gate::leave() {
  inside.erase(std::find(inside.begin(), inside.end(), this));
  std::scoped_lock lock{mutex_};
  if (--readers_ == 0) turned_.notify_all();
}

bool read_gate::alone(const std::function<void()>& change) {
  if (std::find(inside.begin(), inside.end(), this) != inside.end()) return false;
  std::unique_lock lock{mutex_};
  turned_.wait(lock, [this] { return !changing_; });
  changing_ = true;
  turned_.wait(lock, [this] { return readers_ == 0; });
  change();
  changing_ = false;
  turned_.notify_all();
  return true;
}

} // namespace kernelmill
