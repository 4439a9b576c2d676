#pragma once

// What is on the screen of `top`, and what its keys do to it. It asks and draws nothing itself:
// top.cpp does, and tests press keys.

#include <chrono>
#include <string>
#include <vector>

#include "launch/analysis/watch/top_frame.hpp"
#include "launch/commands/view/screen.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

/// A condition of --where for what a user types: a word alone is looked for in the names, tasks
/// and states of episodes.
std::string condition_of(const std::string& typed);

class top_screen {
public:
  using json = nlohmann::ordered_json;
  using clock = std::chrono::steady_clock;

  enum class mode : unsigned char { list, filter, help, episode };

  static constexpr uint64_t most_rows = 500; ///< that selecting reaches

  /// The query of the view "top"; `rows` fit on the screen.
  json query(uint64_t rows) const;

  void take(json seen);
  void take_trouble(std::string why);

  /// Returns false when the user quits. `page` is the number of rows that a page key goes.
  bool press(const keystroke& x, size_t page);

  std::vector<watch::frame_line> lines(size_t width, size_t height) const;

  mode now() const { return mode_; }
  bool is_paused() const { return paused_ && mode_ != mode::episode; }
  /// Whether a key changed what is asked for; asking takes that away.
  bool wants_look() const { return wants_look_; }

  // -- the episode that is followed ------------------------------------------------------------

  const std::string& followed() const { return followed_; } ///< "first/g0.e1"
  uint64_t next_turn() const { return next_turn_; }
  bool has_ended() const { return ended_; }
  void take_turns(const json& document); ///< of the view "turns"

private:
  void press_in_list(const keystroke& x, size_t page);
  void press_in_filter(const keystroke& x);
  void press_in_episode(const keystroke& x, size_t page);
  void select(size_t row);
  void follow();
  size_t row() const; ///< the selected one
  std::vector<watch::frame_line> list_lines(size_t width, size_t height) const;
  std::vector<watch::frame_line> episode_lines(size_t width, size_t height) const;

  json seen_ = {{"runs", json::array()}, {"nodes", json::array()}};
  watch::change_window window_;
  clock::time_point seen_at_ = clock::now();
  mode mode_ = mode::list;
  bool paused_ = false;
  bool wants_look_ = false;
  std::string trouble_; ///< of the latest look
  std::string refused_; ///< of a filter; shown until the next key
  std::string before_;  ///< the filter in force before the one that is tried
  bool tries_filter_ = false;
  std::string filter_; ///< in force, as it was typed
  std::string typed_;  ///< while it is typed
  size_t sort_ = 0;
  bool selects_ = false;
  size_t row_ = 0;
  std::string selected_; ///< its episode: rows change places
  std::string followed_;
  std::vector<watch::frame_line> turns_;
  json latest_; ///< document of the view "turns", for what streams in
  uint64_t next_turn_ = 0;
  bool ended_ = false;
  size_t back_ = 0; ///< lines above the last ones that show of the followed episode
};

} // namespace kernelmill::commands
