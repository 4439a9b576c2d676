#include "gpu/torch/torch_blocks.hpp"

#include <algorithm>
#include <numeric>

#include "gpu/referee/doubts.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {

namespace {

constexpr size_t least_own_blocks = 2;
constexpr size_t least_other_blocks = 4;
constexpr double least_left = 0.1; // of a row's time, without what is none of its calls'

double median_of(const std::vector<timed_block>& blocks, double (timed_block::*side)[2]) {
  std::vector<double> seconds;
  for (const auto& x : blocks) seconds.insert(seconds.end(), {(x.*side)[0], (x.*side)[1]});
  return median(seconds);
}

} // namespace

void torch_blocks::take(const nlohmann::json& answer) {
  fixed_ = answer.at("fixed").get<double>();
  apart_ = {answer.at("apart").get<double>(), answer.at("beside").get<double>(),
            answer.at("cost").get<double>()};
  seen_ = answer.at("seen").get<std::map<std::string, double>>();
  timed_block block{};
  block.place = count(); // the kinds are compared by the machine's pace at that moment
  for (size_t i = 0; i < 2; ++i) {
    block.reference[i] = answer.at("reference").at(i).get<double>();
    block.candidate[i] = answer.at("candidate").at(i).get<double>();
  }
  keep(block, answer.at("kind").get<std::string>(), answer.at("calls").get<uint32_t>());
  has_others_ = answer.at("kinds").get<int>() > 1;
  unmet_ = answer.at("unmet").get<int>() > 0;
}

void torch_blocks::keep(const timed_block& block, const std::string& kind, uint32_t calls) {
  auto at = std::find_if(kinds_.begin(), kinds_.end(), [&](auto& x) { return x.name == kind; });
  if (at == kinds_.end()) {
    bool first = kind == own_kind; // as pay_slowest wants it
    at = kinds_.insert(first ? kinds_.begin() : kinds_.end(), {kind, {}});
    calls_.insert(first ? calls_.begin() : calls_.end(), 0);
  }
  at->blocks.push_back(block);
  calls_[static_cast<size_t>(at - kinds_.begin())] += calls;
}

size_t torch_blocks::count() const {
  return std::accumulate(kinds_.begin(), kinds_.end(), size_t{0},
                         [](size_t sum, const kind_blocks& x) { return sum + x.blocks.size(); });
}

std::vector<kind_blocks> torch_blocks::without_fixed() const {
  auto result = kinds_;
  auto without = [&](double seconds) { return std::max(seconds - fixed_, least_left * seconds); };
  for (auto& kind : result)
    for (auto& block : kind.blocks)
      for (size_t i = 0; i < 2; ++i) {
        block.reference[i] = without(block.reference[i]);
        block.candidate[i] = without(block.candidate[i]) + apart_.beside;
      }
  return result;
}

bool torch_blocks::wants_more_kinds() const {
  size_t own = 0;
  size_t others = 0;
  for (const auto& x : kinds_) (x.name == own_kind ? own : others) += x.blocks.size();
  return unmet_ || own < least_own_blocks || (has_others_ && others < least_other_blocks);
}

std::string torch_blocks::wanted() const {
  return unsettled_kind(without_fixed()).value_or("");
}

bool torch_blocks::is_undecided() const {
  auto kinds = without_fixed();
  return has_others_ && (wants_more_kinds() || needs_noise(kinds)) && !far_slower(all_of(kinds));
}

void torch_blocks::write(timing_record& into) const {
  auto kinds = without_fixed();
  into.kinds.clear();
  into.samples = std::accumulate(calls_.begin(), calls_.end(), uint32_t{0});
  for (size_t i = 0; i < kinds.size(); ++i)
    into.kinds.push_back({kinds[i].name, median_of(kinds[i].blocks, &timed_block::candidate),
                          median_of(kinds[i].blocks, &timed_block::reference), calls_[i]});
}

} // namespace kernelmill
