#include "gpu/referee/doubts.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace kernelmill {

namespace {

constexpr size_t most_in_doubt = 16; // blocks of a kind
constexpr size_t fewest_shown = 2;   // blocks

auto& named(auto& kinds, const std::string& name) {
  return *std::find_if(kinds.begin(), kinds.end(), [&](auto& x) { return x.name == name; });
}

class settling {
public:
  settling(std::vector<kind_blocks>& blocks, const std::function<bool(size_t)>& take)
      : blocks_(blocks), take_(take) {}

  std::optional<slow_kind> run() {
    // A candidate may be slow where that leaves no time for anything else.
    while (needs_noise(blocks_) && take_(0)) {
    }
    auto left = blocks_; // kinds that nothing is known against
    while (!all_of(blocks_).empty()) {
      auto seen = pay_slowest(left);
      auto plain = seen.slowest ? seen.slowest : seen.in_doubt;
      auto name = plain ? plain : doubtful_kind(left);
      if (!name) break;
      size_t kind = index_of(*name);
      auto known = slow_kind{kind, seen.times_slower};
      if (kind == 0) { // the task's own has blocks enough
        keep(known);
        break;
      }
      bool in_time = time_again(kind);
      if (!in_time) {
        keep(plain ? known : slowness_of(blocks_[0], kind));
        break;
      }
      left[0] = blocks_[0];
      left[kind].blocks.clear();
    }
    return slow_;
  }

private:
  // Noise of its own may make a candidate look slow on a kind where it is fast: that is not to be
  // the end of doubts about others. The slowest is paid.
  void keep(const std::optional<slow_kind>& found) {
    if (found && (!slow_ || speedup_on(found->kind) < speedup_on(slow_->kind))) slow_ = found;
  }

  double speedup_on(size_t kind) const { return estimate_speedup(blocks_[kind].blocks).estimate; }

  // Twice as many blocks each time, until they tell whether it is slower. False when there was no
  // time for the fewest that can.
  bool time_again(size_t kind) {
    auto before = blocks_[0];
    kind_blocks own{blocks_[0].name, {}};
    kind_blocks other{blocks_[kind].name, {}};
    bool in_time = true;
    for (size_t most = confirming_blocks; in_time; most *= 2) {
      while (in_time && other.blocks.size() < most) in_time = take_both(kind, own, other);
      if (other.blocks.size() < confirming_blocks) return false;
      if (pay_slowest({own, other}).slowest == other.name || tells_apart(own, other)) break;
    }
    blocks_[kind] = other;
    auto found = slowness_of(own, kind);
    keep(found ? found : as_slow_on_both(kind, before, own));
    return true;
  }

  bool take_both(size_t kind, kind_blocks& own, kind_blocks& other) {
    if (!take_(0) || !take_(kind)) return false;
    own.blocks.push_back(blocks_[0].blocks.back());
    other.blocks.push_back(blocks_[kind].blocks.back());
    return true;
  }

  std::optional<slow_kind> slowness_of(const kind_blocks& own, size_t kind) const {
    auto seen = pay_slowest({own, blocks_[kind]});
    auto name = seen.slowest ? seen.slowest : seen.in_doubt;
    return name == blocks_[kind].name ? std::optional{slow_kind{kind, seen.times_slower}}
                                      : std::nullopt;
  }

  // Which kinds come tells who counts them that one is timed again. Who is then as slow on the
  // task's own is paid for that.
  std::optional<slow_kind> as_slow_on_both(size_t kind, const kind_blocks& before,
                                           const kind_blocks& own) {
    auto by = slower_now(before, own);
    if (!by) return std::nullopt;
    auto& again = blocks_[kind].blocks;
    again.insert(again.end(), own.blocks.begin(), own.blocks.end());
    return slow_kind{kind, *by};
  }

  size_t index_of(const std::string& name) const {
    auto found = std::find_if(blocks_.begin(), blocks_.end(),
                              [&](const kind_blocks& x) { return x.name == name; });
    return static_cast<size_t>(found - blocks_.begin());
  }

  std::vector<kind_blocks>& blocks_;
  const std::function<bool(size_t)>& take_;
  std::optional<slow_kind> slow_;
};

// A kind that is or may be slower, of which fewer blocks than `most` do not tell yet.
std::optional<std::string> open_doubt(std::vector<kind_blocks> kinds, size_t most) {
  auto paid = pay_slowest(kinds);
  if (paid.in_doubt) return paid.in_doubt;
  if (far_slower(all_of(kinds))) return std::nullopt;
  while (auto name = doubtful_kind(kinds)) {
    auto& blocks = named(kinds, *name).blocks;
    bool is_told = name == paid.slowest || tells_apart(kinds.front(), named(kinds, *name)) ||
                   blocks.size() >= most;
    if (blocks.size() < confirming_blocks || !is_told) return name;
    blocks.clear(); // there may be others
  }
  return std::nullopt;
}

} // namespace

std::optional<slow_kind> settle_doubts(std::vector<kind_blocks>& blocks,
                                       const std::function<bool(size_t)>& take) {
  return settling{blocks, take}.run();
}

std::optional<std::string> unsettled_kind(std::vector<kind_blocks> kinds) {
  return open_doubt(std::move(kinds), most_in_doubt);
}

paid_speedup pay_settled(const std::vector<kind_blocks>& kinds) {
  auto paid = pay_slowest(kinds);
  // A machine so noisy that no number of blocks tells is no excuse, either.
  if (auto name = open_doubt(kinds, std::numeric_limits<size_t>::max()); name && !paid.in_doubt) {
    auto most = estimate_speedup(named(kinds, *name).blocks).estimate;
    paid.speedup.low = std::min(paid.speedup.low, most);
  }
  return paid;
}

paid_speedup pay_after_doubts(const std::vector<kind_blocks>& kinds,
                              const std::optional<slow_kind>& slow) {
  auto paid = pay_alike(slow ? std::vector<kind_blocks>{kinds[slow->kind]} : kinds);
  paid.speedup.low = std::min(paid.speedup.low, pay_settled(kinds).speedup.low);
  return paid;
}

std::optional<speedup_interval> shown_until_ended(const std::vector<kind_blocks>& kinds) {
  if (all_of(kinds).size() < fewest_shown) return std::nullopt;
  return pay_slowest(kinds).speedup;
}

bool far_slower(const std::vector<timed_block>& blocks) {
  return !blocks.empty() && estimate_speedup(blocks).high < 0.5;
}

bool needs_noise(const std::vector<kind_blocks>& kinds) {
  return !knows_noise(kinds) && !far_slower(all_of(kinds));
}

std::vector<timed_block> all_of(const std::vector<kind_blocks>& kinds) {
  std::vector<timed_block> result;
  for (const auto& x : kinds) result.insert(result.end(), x.blocks.begin(), x.blocks.end());
  return result;
}

} // namespace kernelmill
