#include "actors/head/members.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "messages/sandbox_layers.hpp"

namespace kernelmill {

namespace {

constexpr size_t most_lost_members = 100;

} // namespace

void roster::put(const member_facts& x) {
  members_[x.name] = x;
  std::erase_if(lost_members_, [&](const auto& known) { return known.name == x.name; });
}

void roster::remove(const std::string& name, double now) {
  auto i = members_.find(name);
  if (i == members_.end()) return;
  if (!i->second.draining) {
    ++lost_;
    if (lost_members_.size() == most_lost_members) lost_members_.erase(lost_members_.begin());
    lost_members_.push_back(std::move(i->second));
    lost_members_.back().since = now;
  }
  members_.erase(i);
}

const member_facts* roster::find(const std::string& name) const {
  auto i = members_.find(name);
  return i == members_.end() ? nullptr : &i->second;
}

expected<std::string> roster::choose_lane(const std::string& backend,
                                          const std::vector<std::string>& required) const {
  bool any = backend == "auto";
  std::map<std::string, size_t> slots;
  std::vector<std::string> unfit;
  for (const auto& [name, x] : members_) {
    if (x.draining || x.slots.empty() || (!any && x.backend != backend)) continue;
    if (auto missing = layers_missing(required, x.layers); missing.empty())
      slots[x.lane()] += x.slots.size();
    else
      unfit.push_back(lack_text(name, missing));
  }
  auto on_gpu = [](const std::string& lane) { return lane.starts_with("cuda/"); };
  std::string best;
  for (const auto& [lane, count] : slots) {
    bool better = best.empty() || count > slots[best];
    if (any && !best.empty() && on_gpu(best) != on_gpu(lane)) better = on_gpu(lane);
    if (better) best = lane;
  }
  if (!best.empty()) return best;
  if (!unfit.empty())
    return configuration_error(
        "sandbox_layer_missing",
        fmt::format("failed to start the run: no node has all layers of the sandbox that "
                    "evaluation.required_layers names: {}",
                    fmt::join(unfit, "; ")),
        "`kernelmill doctor` says on the node what it takes; or do not require the layer");
  return infrastructure_error("no_nodes",
                              "failed to start the run: no node offers " +
                                  (any ? std::string{"slots"} : "backend " + backend),
                              "start one with `kernelmill node --head ...`");
}

lane_facts roster::facts_of(const std::string& lane,
                            const std::vector<std::string>& required) const {
  lane_facts result;
  result.lane = lane;
  for (const auto& [name, node] : members_) {
    if (node.lane() != lane || !layers_missing(required, node.layers).empty()) continue;
    result.hardware = node.hardware;
    result.toolchain = node.toolchain;
    result.sandbox_complete = result.sandbox_complete && node.sandbox_complete;
    for (const auto& slot : node.slots) result.slots.push_back(name + " " + slot);
  }
  return result;
}

std::map<std::string, std::vector<std::string>>
roster::unfit_nodes(const std::string& lane, const std::vector<std::string>& required) const {
  std::map<std::string, std::vector<std::string>> result;
  for (const auto& [name, node] : members_)
    if (auto missing = layers_missing(required, node.layers);
        node.lane() == lane && !missing.empty())
      result.emplace(name, std::move(missing));
  return result;
}

std::string lack_text(const std::string& node, const std::vector<std::string>& layers) {
  return fmt::format("node {} lacks {}", node, fmt::join(layers, ", "));
}

member_facts facts_of(wire::NodeOffer::Reader x, double now) {
  member_facts result;
  result.name = x.getName();
  result.backend = x.getBackend();
  result.architecture = x.getArchitecture();
  result.hardware = x.getHardware();
  result.toolchain = x.getToolchain();
  result.compilers = x.getCompilers();
  for (auto slot : x.getSlots()) result.slots.emplace_back(slot.cStr());
  result.sandbox_complete = x.getSandboxComplete();
  for (auto layer : x.getLayers()) result.layers.emplace_back(layer.cStr());
  result.since = now;
  return result;
}

std::string offer_text(const member_facts& x) {
  std::string slots;
  for (const auto& one : x.slots) slots += (slots.empty() ? ", slots " : ", ") + one;
  return x.lane() + ", " + std::to_string(x.compilers) + " compilers" + slots;
}

} // namespace kernelmill
