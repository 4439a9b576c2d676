#include "storage/export/gates.hpp"

#include <algorithm>
#include <set>

#include "storage/export/split.hpp"

namespace kernelmill::exports {

split_table::split_table(const std::vector<source>& from, report& done) {
  std::set<std::string> all;
  for (const auto& x : from) {
    for (const auto& [task, unused] : x.splits) all.insert(task);
    for (const auto& [task, unused] : x.may.tasks) all.insert(task);
  }
  for (const auto& task : all) choose(task, from, done);
}

chosen_split split_table::operator()(const std::string& task) const {
  auto found = chosen_.find(task);
  return found == chosen_.end() ? chosen_split{split_of(task, ""), false} : found->second;
}

bool split_table::has_dev() const {
  return std::any_of(chosen_.begin(), chosen_.end(),
                     [](const auto& x) { return x.second.split == "dev"; });
}

void split_table::choose(const std::string& task, const std::vector<source>& from, report& done) {
  split_conflict seen;
  bool own = false, differ = false;
  for (const auto& x : from) {
    auto said = x.splits.find(task);
    bool says = said != x.splits.end();
    if (!says && !x.may.tasks.contains(task)) continue;
    auto split = split_of(task, says ? said->second : "");
    own = own || says;
    differ = differ || (!seen.taken.empty() && seen.taken != split);
    if (seen.taken != "dev") seen.taken = split;
    seen.by_run[x.run] = std::move(split);
  }
  chosen_[task] = {seen.taken, own};
  if (differ) done.split_conflicts[task] = std::move(seen);
}

licence_gate gate_of(const std::vector<source>& from) {
  std::vector<const permits*> all;
  for (const auto& x : from) all.push_back(&x.may);
  return licence_gate{std::move(all)};
}

} // namespace kernelmill::exports
