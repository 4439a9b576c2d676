#include "gpu/inspect/loops.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>

#include "gpu/inspect/jumps.hpp"
#include "gpu/inspect/listing_parts.hpp"

namespace kernelmill {

namespace {

using listing_parts::is_label;

constexpr size_t nowhere = static_cast<size_t>(-1);
constexpr size_t most_blocks = 8192;
// A candidate can write PTX in which finding loops takes the cube of that; code takes a thousandth.
constexpr size_t most_steps = 50'000'000;

/// Lines from `begin` to `end`, which run one after the other.
struct block {
  size_t begin = 0, end = 0;
  std::vector<size_t> next, before; ///< blocks
};

class flow_graph {
public:
  explicit flow_graph(const kernel_listing& x) : x_(x) {
    known_ = cut();
    if (known_) connect();
  }

  bool known() const { return known_; }
  std::optional<std::vector<code_loop>> loops();

private:
  std::string_view text(size_t line) const { return x_.lines[line].text; }

  bool cut();
  void connect();
  void order();
  void dominate();
  size_t common(size_t a, size_t b);
  bool dominates(size_t a, size_t b);
  bool is_tired() const { return steps_ > most_steps; }
  void grow(size_t head, size_t last, std::vector<bool>& inside) const;
  bool is_trap(size_t which) const;

  std::optional<size_t> target_of(const code_jump& x) const;

  const kernel_listing& x_;
  bool known_ = false;
  std::vector<block> blocks_;
  std::unordered_map<std::string_view, size_t> labels_; // lines
  std::unordered_map<uint32_t, size_t> addresses_;      // lines
  std::vector<size_t> block_of_;                        // line -> block
  std::vector<size_t> order_;                           // blocks that can be reached, from the root
  std::vector<size_t> place_;                           // block -> place in order_
  std::vector<size_t> dominator_;                       // by place; of the root itself
  size_t steps_ = 0;                                    // up the tree of dominators
};

std::optional<size_t> flow_graph::target_of(const code_jump& x) const {
  if (x.address) {
    auto found = addresses_.find(*x.address);
    return found == addresses_.end() ? std::nullopt : std::optional{found->second};
  }
  auto found = labels_.find(x.label);
  return found == labels_.end() ? std::nullopt : std::optional{found->second};
}

// Block 0 is the root, which has no lines: a kernel and the functions in its section are entered
// from there.
bool flow_graph::cut() {
  auto count = x_.lines.size();
  for (size_t i = 0; i < count; ++i) {
    if (is_label(text(i)))
      labels_.emplace(text(i).substr(0, text(i).size() - 1), i);
    else
      addresses_.emplace(x_.lines[i].address, i);
  }
  std::vector<bool> begins(count + 1, false);
  for (size_t i = 0; i < count; ++i) {
    if (is_label(text(i))) {
      begins[i] = true;
      continue;
    }
    auto jump = jump_of(text(i));
    if (jump.is_indirect()) return false;
    if (jump.jumps) {
      auto target = target_of(jump);
      if (!target) return false;
      begins[*target] = true;
    }
    if (jump.jumps || !jump.goes_on) begins[i + 1] = true;
  }
  blocks_.emplace_back();
  block_of_.assign(count, 0);
  for (size_t i = 0; i < count; ++i) {
    if (i == 0 || begins[i]) blocks_.push_back({i, i, {}, {}});
    blocks_.back().end = i + 1;
    block_of_[i] = blocks_.size() - 1;
  }
  return blocks_.size() <= most_blocks;
}

void flow_graph::connect() {
  auto join = [&](size_t from, size_t to) {
    blocks_[from].next.push_back(to);
    blocks_[to].before.push_back(from);
  };
  for (size_t i = 1; i < blocks_.size(); ++i) {
    if (i == 1 || is_function(text(blocks_[i].begin))) join(0, i);
    code_jump jump;
    if (auto last = text(blocks_[i].end - 1); !is_label(last)) jump = jump_of(last);
    bool next_is_function = i + 1 < blocks_.size() && is_function(text(blocks_[i + 1].begin));
    if (jump.goes_on && i + 1 < blocks_.size() && !next_is_function) join(i, i + 1);
    if (jump.jumps) join(i, block_of_[*target_of(jump)]);
  }
}

// Reverse postorder, without recursion: a candidate says how deep it would be.
void flow_graph::order() {
  place_.assign(blocks_.size(), nowhere);
  std::vector<bool> seen(blocks_.size(), false);
  std::vector<std::pair<size_t, size_t>> open{{0, 0}}; // block, and which of `next` comes
  seen[0] = true;
  while (!open.empty()) {
    auto& [which, at] = open.back();
    if (at == blocks_[which].next.size()) {
      order_.push_back(which);
      open.pop_back();
      continue;
    }
    auto next = blocks_[which].next[at++];
    if (seen[next]) continue;
    seen[next] = true;
    open.emplace_back(next, 0);
  }
  std::reverse(order_.begin(), order_.end());
  for (size_t i = 0; i < order_.size(); ++i) place_[order_[i]] = i;
}

size_t flow_graph::common(size_t a, size_t b) {
  while (a != b) {
    for (; a > b; ++steps_) a = dominator_[a];
    for (; b > a; ++steps_) b = dominator_[b];
  }
  return a;
}

// After Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm".
void flow_graph::dominate() {
  dominator_.assign(order_.size(), nowhere);
  dominator_[0] = 0;
  for (bool changed = true; changed && !is_tired();) {
    changed = false;
    for (size_t i = 1; i < order_.size(); ++i) {
      auto found = nowhere;
      for (auto before : blocks_[order_[i]].before) {
        auto at = place_[before];
        if (at == nowhere || dominator_[at] == nowhere) continue;
        found = found == nowhere ? at : common(found, at);
      }
      changed = changed || dominator_[i] != found;
      dominator_[i] = found;
    }
  }
}

bool flow_graph::dominates(size_t a, size_t b) {
  for (; b > a; ++steps_) b = dominator_[b];
  return a == b;
}

// Adds what leads to `last` without passing `head`.
void flow_graph::grow(size_t head, size_t last, std::vector<bool>& inside) const {
  inside[head] = true;
  std::vector<size_t> open{last};
  while (!open.empty()) {
    auto which = open.back();
    open.pop_back();
    if (inside[which]) continue;
    inside[which] = true;
    for (auto before : blocks_[which].before)
      if (place_[before] != nowhere) open.push_back(before);
  }
}

// "BRA `(.L_x_0)" behind the end of each kernel, which leads to itself and is never reached.
bool flow_graph::is_trap(size_t which) const {
  size_t instructions = 0;
  for (size_t i = blocks_[which].begin; i < blocks_[which].end; ++i)
    instructions += !is_label(text(i));
  return instructions == 1 && !jump_of(text(blocks_[which].end - 1)).goes_on;
}

std::optional<std::vector<code_loop>> flow_graph::loops() {
  order();
  dominate();
  if (is_tired()) return std::nullopt;
  std::map<size_t, std::vector<size_t>> backs; // head -> blocks that jump back to it
  for (auto which : order_)
    for (auto next : blocks_[which].next)
      if (dominates(place_[next], place_[which]) && !(next == which && is_trap(which)))
        backs[next].push_back(which);
  std::vector<code_loop> result;
  for (const auto& [head, lasts] : backs) {
    if (result.size() == most_loops) break;
    std::vector<bool> inside(blocks_.size(), false);
    for (auto last : lasts) grow(head, last, inside);
    auto& loop = result.emplace_back(code_loop{blocks_[head].begin, {}, 1});
    for (size_t i = 1; i < blocks_.size(); ++i)
      for (size_t at = blocks_[i].begin; inside[i] && at < blocks_[i].end; ++at)
        loop.body.push_back(at);
  }
  for (auto& loop : result)
    for (const auto& other : result)
      if (other.head != loop.head &&
          std::binary_search(other.body.begin(), other.body.end(), loop.head))
        ++loop.depth;
  return result;
}

} // namespace

std::optional<std::vector<code_loop>> loops_of(const kernel_listing& x) {
  flow_graph graph{x};
  return graph.known() ? graph.loops() : std::nullopt;
}

} // namespace kernelmill
