#include "gpu/timing/controller.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "gpu/timing/thresholds.hpp"

namespace kernelmill::timing {

namespace {

template <class T>
void shuffle(std::vector<T>& x, const std::function<uint64_t()>& draw) {
  for (size_t i = x.size(); i > 1; --i) std::swap(x[i - 1], x[draw() % i]);
}

size_t count_of(const std::vector<batch_pair>& pairs, batch_form form) {
  return static_cast<size_t>(std::count_if(
      pairs.begin(), pairs.end(), [&](const batch_pair& x) { return x.order.form == form; }));
}

} // namespace

std::vector<batch_order> plan_of(const timing_wish& wish) {
  std::vector<batch_order> result;
  for (size_t i = 0; i < wish.nominal.least + wish.draw() % 2; ++i) result.push_back({});
  std::vector<size_t> others(std::max<size_t>(wish.patterns, 1) - 1);
  std::iota(others.begin(), others.end(), size_t{1});
  for (size_t round = 0; round < wish.rounds; ++round) {
    shuffle(others, wish.draw);
    for (size_t i = 0; i < others.size(); i += wish.together) {
      auto end = std::min(i + wish.together, others.size());
      result.push_back({batch_form::mixed,
                        {others.begin() + static_cast<std::ptrdiff_t>(i),
                         others.begin() + static_cast<std::ptrdiff_t>(end)}});
    }
  }
  auto rule = std::find_if(std::begin(single_batches), std::end(single_batches),
                           [&](const singles_rule& x) { return wish.call < x.longest; });
  if (wish.own_streams && !wish.one_by_one)
    result.insert(result.end(), apart_batches, {batch_form::apart, {0}});
  if (!wish.one_by_one) result.insert(result.end(), rule->batches, {batch_form::single, {0}});
  shuffle(result, wish.draw);
  return result;
}

timing_end controller::run() {
  auto plan = plan_of(wish_);
  for (const auto& order : plan) {
    if (maker_.expired()) return timing_end::short_of_time;
    if (!take(order)) return timing_end::over;
  }
  enough_ = has_enough(plan);
  if (!enough_) return timing_end::decided;
  more_ = 0;
  if (!take_apart() || !narrow()) return timing_end::over;
  if (reason_.empty()) reason_ = "the time of the timing is spent";
  return timing_end::decided;
}

std::optional<paid_result> controller::result() const {
  size_t least = spent_ ? 1 : before_.noise.confirming_batches;
  return enough_ ? pay(pairs_, before_, least) : std::nullopt;
}

// All mixed batches, for each has patterns of its own, and half of the others.
bool controller::has_enough(const std::vector<batch_order>& plan) const {
  auto planned = [&](batch_form form) {
    return static_cast<double>(std::count_if(plan.begin(), plan.end(),
                                             [&](const batch_order& x) { return x.form == form; }));
  };
  auto share = [&](batch_form form, double least) {
    return static_cast<double>(count_of(pairs_, form)) >= least * planned(form);
  };
  return share(batch_form::mixed, 1) && share(batch_form::nominal, least_counting) &&
         share(batch_form::single, least_counting) && share(batch_form::apart, least_counting);
}

// Which side comes first is drawn: a candidate does not know it.
bool controller::take(const batch_order& order) {
  batch_pair pair;
  for (int i = 0; i <= most_retakes; ++i) {
    pair = {order, {}, {}};
    ++number_;
    bool baseline_first = (wish_.draw() & 1) != 0;
    for (bool baseline : {baseline_first, !baseline_first}) {
      auto side = baseline ? batch_side::baseline : batch_side::candidate;
      if (!maker_.make(side, order, number_, baseline ? pair.baseline : pair.candidate))
        return false;
    }
    more_ += pair.baseline.out + pair.candidate.out;
    if (!pair.baseline.disturbed && !pair.candidate.disturbed) break;
    ++retaken_;
  }
  if (!pair.baseline.disturbed && !pair.candidate.disturbed) pairs_.push_back(std::move(pair));
  return true;
}

std::optional<form_result> controller::own() const {
  auto paid = result();
  if (!paid) return std::nullopt;
  std::vector<pair_times> times;
  for (const auto& x : pairs_)
    if (x.order.form == batch_form::nominal) times.push_back(times_of(x, paid->besides, before_));
  return result_of(times);
}

// Each pattern of a batch that is slower than the task's own is timed by itself, and one that is
// slow there so often that it can be paid; once, where the time for that is spent.
bool controller::take_apart() {
  auto known = own();
  auto paid = result();
  if (!known || !paid) return true;
  std::vector<size_t> suspects;
  auto is_known = [&](size_t pattern) {
    return std::find(suspects.begin(), suspects.end(), pattern) != suspects.end();
  };
  for (const auto& x : pairs_)
    if (x.order.form == batch_form::mixed &&
        seems_slower(times_of(x, paid->besides, before_), *known, slower_batch, before_.noise))
      std::copy_if(x.order.patterns.begin(), x.order.patterns.end(), std::back_inserter(suspects),
                   [&](size_t pattern) { return !is_known(pattern); });
  for (size_t pattern : suspects) {
    batch_order order{batch_form::pattern, {pattern}};
    for (size_t i = 0; i < before_.noise.confirming_batches; ++i) {
      spent_ = spent_ || (i > 0 && more_ > wish_.most_more);
      if (maker_.expired() || (i > 0 && spent_)) break;
      size_t known_pairs = pairs_.size();
      if (!take(order)) return false;
      if (pairs_.size() == known_pairs) continue;
      if (!seems_slower(times_of(pairs_.back(), paid->besides, before_), *known, slower_pattern,
                        before_.noise))
        break;
    }
  }
  return true;
}

bool controller::is_over() const {
  return maker_.expired() || more_ > wish_.most_more;
}

// After the batch that would end the timing comes one more, which counts.
bool controller::narrow() {
  auto is_narrow = [&] {
    auto known = own();
    return known && known->speedup.relative_half_width() <= wish_.half_width;
  };
  for (size_t more = wish_.nominal.most - wish_.nominal.least; !is_narrow(); --more) {
    if (is_over()) return true;
    if (more == 0 || count_of(pairs_, batch_form::nominal) >= wish_.nominal.most) {
      reason_ = "the most batches were taken, and the interval is wider than was asked for";
      return true;
    }
    if (!take({})) return false;
  }
  reason_ = narrow_enough;
  return take({});
}

} // namespace kernelmill::timing
