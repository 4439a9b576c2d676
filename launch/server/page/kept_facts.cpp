#include "launch/server/page/kept_facts.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "launch/server/page/settled.hpp"

namespace kernelmill::page {

namespace {

constexpr std::chrono::milliseconds fresh_while_written{200};

} // namespace

kept_facts::kept_facts(std::function<uint64_t()> version, size_t most)
    : version_(std::move(version)), most_(most) {
  // nop
}

expected<kept_facts::facts_ptr> kept_facts::of(const run_directory& run,
                                               const std::function<expected<run_facts>()>& read) {
  std::filesystem::path path{run.path};
  one_run now; // its stamp and version are of before it is read: a later change counts
  now.stamp = stamp_of_settled(path.parent_path().string(), path.filename().string());
  now.version = version_();
  {
    std::lock_guard guard{mutex_};
    if (auto i = kept_.find(run.path); i != kept_.end() && i->second.stamp == now.stamp) {
      auto& known = i->second;
      bool fresh = known.version == now.version && clock::now() < known.until;
      if (!now.stamp.empty() || fresh) {
        known.used = ++uses_;
        return known.facts;
      }
    }
  }
  auto made = read();
  KM_TRY(made);
  now.facts = std::make_shared<const run_facts>(std::move(*made));
  now.bytes = now.facts->bytes();
  now.until = clock::now() + fresh_while_written;
  auto result = now.facts;
  keep(run.path, std::move(now));
  return result;
}

void kept_facts::keep(const std::string& path, one_run x) {
  std::lock_guard guard{mutex_};
  x.used = ++uses_;
  auto& place = kept_[path];
  bytes_ += x.bytes;
  bytes_ -= std::exchange(place, std::move(x)).bytes;
  while (bytes_ > most_) {
    auto oldest = std::min_element(kept_.begin(), kept_.end(), [](const auto& a, const auto& b) {
      return a.second.used < b.second.used;
    });
    bytes_ -= oldest->second.bytes;
    kept_.erase(oldest);
  }
}

size_t kept_facts::bytes() const {
  std::lock_guard guard{mutex_};
  return bytes_;
}

} // namespace kernelmill::page
