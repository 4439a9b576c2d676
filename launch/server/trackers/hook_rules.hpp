#pragma once

// When a run sends a notification: rules on what is committed and on the time that passes.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "launch/config/run_config.hpp"
#include "messages/base/json_value.hpp"
#include "messages/lineage.capnp.h"

namespace kernelmill::trackers {

using json = nlohmann::ordered_json;

/// Events of one run. Each of them is told once, and again only after what it says was over: shares
/// after they fell below half of their limit, a standstill after a record.
class hook_rules {
public:
  /// `now`: seconds since 1970, when the run began.
  hook_rules(hooks_section settings, std::string run, std::string directory, double now);

  /// One record, as it is committed.
  void note(wire::Record::Reader x, double now);

  /// The time that passes.
  void look_at_clock(double now);

  /// The nodes of the head that has the run, and how many it has lost so far.
  void look_at_nodes(const std::set<std::string>& names, uint64_t lost, double now);

  /// Events since the last call, oldest first: event, at, run, directory, text, and what each has
  /// to say.
  std::vector<json> take();
  bool empty() const noexcept { return events_.empty(); }

private:
  struct share {
    uint64_t count = 0;
    bool told = false;
  };
  void note_turn(wire::TurnRecord::Reader x, double now);
  void note_end(wire::RunRecord::Reader x, double now);
  void look_at_share(share& x, double limit, const char* event, const char* what, double now);
  void tell(const char* event, const std::string& text, json more, double now);

  hooks_section settings_;
  std::string run_, directory_;
  uint64_t turns_ = 0, accepted_ = 0, episodes_ = 0;
  share infrastructure_, findings_;
  double progress_at_;
  bool stands_still_ = false;
  std::set<std::string> nodes_;
  uint64_t lost_ = 0;
  bool nodes_known_ = false;
  std::vector<json> events_;
};

} // namespace kernelmill::trackers
