#pragma once

// Names of groups, episodes and turns. An episode is "g3.e1" within its run and "RUN/g3.e1"
// elsewhere; a turn adds ".t2". A turn's id is a hash of what it is, so that the same turn
// committed twice is one record.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kernelmill {

struct episode_id {
  std::string run;
  std::string task;
  uint32_t group = 0;
  uint32_t member = 0;

  friend bool operator==(const episode_id&, const episode_id&) = default;
};

/// Returns "g3.e1".
std::string short_name(const episode_id& x);

/// Returns "g3.e1.t2".
std::string short_name(const episode_id& x, uint32_t turn);

/// Returns 64 hex digits of SHA-256 over run, task, episode and turn.
std::string turn_id(const episode_id& x, uint32_t turn);

/// A number for a run's name, the same on every machine.
uint64_t run_number(std::string_view run);

/// The seed of one request's sampling, below 2^31: another one for each turn of each member, and
/// the same whenever the same run is done again, whatever it is called.
uint32_t request_seed(uint64_t run_seed, int64_t sampling_seed, const episode_id& x, uint32_t turn);

/// What "g3", "g3.e1" or "g3.e1.t2" names; nothing when the text is none of these.
struct name_parts {
  uint32_t group = 0;
  std::optional<uint32_t> member;
  std::optional<uint32_t> turn;
};
std::optional<name_parts> parse_name(std::string_view text);

} // namespace kernelmill
