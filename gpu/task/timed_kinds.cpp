#include "gpu/task/timed_kinds.hpp"

#include <algorithm>
#include <array>
#include <set>

namespace kernelmill {

namespace {

/// Contents that are legal wherever the task itself has one of `shown_by`: as large, of these
/// signs.
struct added_kind {
  const char* name;
  std::array<const char*, 2> shown_by;
};

constexpr added_kind added_kinds[] = {
    {"few_outliers", {"outlier", "large"}}, // rare, so that no sample of the input shows them
    {"wide", {"outlier", "large"}},
    {"few_negatives", {"normal", "signs"}}, // nearly all of one sign
    {"unequal_rows", {"normal", "signs"}},
    {"near_one", {"normal", "positive"}}, // products that do not die out
};

bool takes_fill(const argument& x) {
  return !x.fill.empty();
}

std::string name_of(const task& x, const task_case& which) {
  std::set<std::string> fills;
  std::string list;
  for (const auto& arg : x.arguments) {
    if (!takes_fill(arg)) continue;
    const auto& fill = fill_of(arg, which);
    fills.insert(fill);
    list += (list.empty() ? "" : " ") + arg.name + "=" + fill;
  }
  return fills.size() == 1 ? *fills.begin() : list;
}

// All numbers from 0 below the row's length: what the task says of its values holds only where
// that is their range.
bool permutes_in_range(const argument& x, const task_case& which) {
  if (fill_of(x, which) != "permutation") return true;
  auto low = x.fill_range[0].evaluate(which.scalars);
  auto high = x.fill_range[1].evaluate(which.scalars);
  auto row = x.shape.back().evaluate(which.scalars);
  return low && high && row && *low <= 0 && *row <= *high;
}

// Their products are below the least normal number, where a processor takes a hundred times longer
// or a compiler's flag leaves them out: that is neither's work on the task.
bool leaves_normal_numbers(const argument& x, const task_case& which) {
  return fill_of(x, which) == "tiny";
}

class kind_list {
public:
  kind_list(const task& x, const task_case& timed) : task_(x), timed_(timed) { add(timed.fills); }

  void add(const std::map<std::string, std::string>& fills) {
    auto kind = timed_;
    for (const auto& [argument, fill] : fills) kind.fills[argument] = fill;
    kind.name = name_of(task_, kind);
    bool is_own = kinds_.empty();
    auto legal = [&](const argument& x) {
      return !takes_fill(x) ||
             (permutes_in_range(x, kind) && (is_own || !leaves_normal_numbers(x, kind)));
    };
    if (std::all_of(task_.arguments.begin(), task_.arguments.end(), legal) &&
        names_.insert(kind.name).second)
      kinds_.push_back(std::move(kind));
  }

  std::vector<task_case> take() { return std::move(kinds_); }

private:
  const task& task_;
  const task_case& timed_;
  std::set<std::string> names_;
  std::vector<task_case> kinds_;
};

} // namespace

std::vector<task_case> timed_kinds(const task& x, const task_case& timed) {
  kind_list result{x, timed};
  for (const auto& which : x.cases) result.add(which.fills);
  size_t most_dimensions = 0; // weights of a row and the like are not worth their calls
  for (const auto& arg : x.arguments)
    if (takes_fill(arg)) most_dimensions = std::max(most_dimensions, arg.shape.size());
  for (const auto& arg : x.arguments) {
    if (!takes_fill(arg) || arg.type != dtype::f32 || arg.shape.size() < most_dimensions) continue;
    std::set<std::string> own{fill_of(arg, timed)};
    for (const auto& which : x.cases) own.insert(fill_of(arg, which));
    for (const auto& added : added_kinds)
      if (own.contains(added.shown_by[0]) || own.contains(added.shown_by[1]))
        result.add({{arg.name, added.name}});
  }
  return result.take();
}

} // namespace kernelmill
