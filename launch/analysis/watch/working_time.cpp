#include "launch/analysis/watch/working_time.hpp"

#include <algorithm>
#include <iterator>

namespace kernelmill::watch {

void working_time::add(wire::RunRecord::Reader x) {
  if (began_at_ == 0) began_at_ = x.getAt();
  if (x.getState() == "running") {
    if (x.getAt() > 0) sessions_.emplace(x.getAt(), session{x.getOpening(), x.getAt()});
    return;
  }
  finished_[x.getOpening()] = x.getState() == "finished";
  if (auto* of = session_at(x.getAt())) of->last = std::max(of->last, x.getAt());
}

void working_time::add(double at) {
  auto* of = session_at(at);
  if (of == nullptr) return;
  of->last = std::max(of->last, at);
  of->added = true;
}

working_time::session* working_time::session_at(double at) {
  auto next = sessions_.upper_bound(at);
  return next == sessions_.begin() ? nullptr : &std::prev(next)->second;
}

bool working_time::had_nothing_to_do(const session& x) const {
  if (x.added) return false;
  auto before = x.opening > 0 ? finished_.find(x.opening - 1) : finished_.end();
  return before != finished_.end() && before->second;
}

double working_time::seconds(double now) const {
  double sum = 0;
  for (const auto& [begin, x] : sessions_)
    if (!had_nothing_to_do(x)) sum += x.last - begin;
  if (sessions_.empty()) return sum;
  const auto& latest = sessions_.rbegin()->second;
  return had_nothing_to_do(latest) ? sum : sum + std::max(0.0, now - latest.last);
}

} // namespace kernelmill::watch
