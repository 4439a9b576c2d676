#pragma once

// The rows of each form as pure functions of a group. Rows have the fields of fields_of(form), in
// that order. What they leave out they count by its reason.

#include <functional>
#include <map>

#include <nlohmann/json_fwd.hpp>

#include "storage/export/rows/filter.hpp"
#include "storage/export/rows/forms.hpp"

namespace kernelmill::exports {

using row = nlohmann::ordered_json;

/// Takes rows as they are made, so that no two need be held; an error ends the group.
using row_taker = std::function<expected<void>(row)>;

/// Why rows were left out, and how many.
using left_out = std::map<std::string, uint64_t>;

/// What a row needs to know besides its group.
struct row_context {
  filter wanted;         ///< the group is one of those that it takes
  uint64_t group_id = 0; ///< the group's number among all of an export, for forms that want one
  left_out* without = nullptr;
  std::string version; ///< of the program, for forms that name it

  void leave_out(const char* why, uint64_t count = 1) const { (*without)[why] += count; }
};

/// Whether an episode is over and taken; counts it as left out where not.
bool takes_whole(const row_context& in, const episode& x);

/// Makes the rows of one group.
expected<void> make_rows(form x, const group& from, const row_context& in, const row_taker& to);

// -- by form ------------------------------------------------------------------------------------

expected<void> sft_rows(const group& from, const row_context& in, const row_taker& to);
expected<void> trajectory_rows(const group& from, const row_context& in, const row_taker& to);
expected<void> preference_rows(const group& from, const row_context& in, const row_taker& to);
expected<void> harbor_rows(const group& from, const row_context& in, const row_taker& to);
expected<void> kernel_rl_rows(const group& from, const row_context& in, const row_taker& to);
expected<void> rl_rows(const group& from, const row_context& in, const row_taker& to);

// Of members that have an advantage and all of their token ids.
expected<void> trl_rows(const group& from, const row_context& in, const row_taker& to);
expected<void> verl_rows(const group& from, const row_context& in, const row_taker& to);
expected<void> prime_rl_rows(const group& from, const row_context& in, const row_taker& to);
expected<void> skyrl_rows(const group& from, const row_context& in, const row_taker& to);
expected<void> tinker_rows(const group& from, const row_context& in, const row_taker& to);
expected<void> nemo_gym_rows(const group& from, const row_context& in, const row_taker& to);
expected<void> megatron_rows(const group& from, const row_context& in, const row_taker& to);

} // namespace kernelmill::exports
