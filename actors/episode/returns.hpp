#pragma once

#include <optional>
#include <span>
#include <vector>

namespace kernelmill {

/// Returns R_t = s_t + gamma * R_(t+1) for every turn. [0.2, 0.3, 0.8, 1.0] with gamma 0.4
/// gives [0.512, 0.78, 1.2, 1.0]. A turn without a reward (the infrastructure lost it) has the
/// return NaN and is skipped in the sums of the others, as if it had not been played. A reward that
/// is NaN was earned and is not known: neither is any return that has it in its sum. After the last
/// turn come `unspent` ones with its reward: who ends an episode by its speed loses nothing by it.
std::vector<double> discounted_returns(std::span<const std::optional<double>> rewards, double gamma,
                                       unsigned unspent = 0);

struct group_statistics {
  double mean = 0;
  double deviation = 0;           ///< of the population
  std::vector<double> advantages; ///< NaN for members that are left out
};

enum class advantage_kind : unsigned char { mean_centered, normalized, leave_one_out };

/// Compares the members of a group; a member without a return (the infrastructure's fault) is left
/// out of mean and deviation. A group of equals gets advantages of 0.
group_statistics group_advantages(std::span<const std::optional<double>> returns,
                                  advantage_kind kind);

} // namespace kernelmill
