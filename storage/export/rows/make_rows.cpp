#include "storage/export/rows/rows.hpp"

namespace kernelmill::exports {

bool takes_whole(const row_context& in, const episode& x) {
  if (!x.ended)
    in.leave_out("open_episodes");
  else if (!takes_episode(in.wanted, x))
    in.leave_out("episodes_not_taken");
  else
    return true;
  return false;
}

expected<void> make_rows(form x, const group& from, const row_context& in, const row_taker& to) {
  switch (x) {
    case form::sft: return sft_rows(from, in, to);
    case form::trajectories: return trajectory_rows(from, in, to);
    case form::preference: return preference_rows(from, in, to);
    case form::rl: return rl_rows(from, in, to);
    case form::trl: return trl_rows(from, in, to);
    case form::verl: return verl_rows(from, in, to);
    case form::prime_rl: return prime_rl_rows(from, in, to);
    case form::skyrl: return skyrl_rows(from, in, to);
    case form::tinker: return tinker_rows(from, in, to);
    case form::nemo_gym: return nemo_gym_rows(from, in, to);
    case form::megatron: return megatron_rows(from, in, to);
    case form::harbor: return harbor_rows(from, in, to);
    case form::kernel_rl: break;
  }
  return kernel_rl_rows(from, in, to);
}

} // namespace kernelmill::exports
