#include "launch/server/http/strangers.hpp"

#include <algorithm>
#include <utility>

namespace kernelmill::http {

strangers::number strangers::add(const peer_origin& from, std::function<void()> leave) {
  all_.emplace(next_, one{from, std::move(leave)});
  ++counts_[from];
  return next_++;
}

void strangers::remove(number which) {
  auto found = all_.find(which);
  if (found == all_.end()) return;
  if (--counts_[found->second.from] == 0) counts_.erase(found->second.from);
  all_.erase(found);
}

bool strangers::make_room(const peer_origin& from, bool is_full) {
  auto count = counts_.find(from);
  bool crowded = count != counts_.end() && count->second >= of_address_;
  if (!crowded && !is_full) return false;
  auto oldest = std::find_if(all_.begin(), all_.end(),
                             [&](const auto& x) { return !crowded || x.second.from == from; });
  if (oldest == all_.end()) return false;
  auto leave = std::move(oldest->second.leave);
  remove(oldest->first);
  leave();
  return true;
}

} // namespace kernelmill::http
