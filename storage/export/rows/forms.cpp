#include "storage/export/rows/forms.hpp"

namespace kernelmill::exports {

namespace {

struct entry {
  form which;
  const char* name;
  const char* summary;
  bool tokens;
  filtering filters;
};

constexpr auto by_task = filtering::tasks;
constexpr auto by_turn = filtering::turns;

constexpr entry entries[] = {
    {form::sft, "sft",
     "Conversations that end in an answer to learn, with its code. Read by TRL's SFTTrainer and "
     "whatever reads `messages`.",
     false, by_turn},
    {form::trajectories, "trajectories", "Whole episodes, turn by turn, failures too.", false,
     by_turn},
    {form::preference, "preference",
     "A better and a worse answer to one prompt. Read by TRL's DPOTrainer.", false, by_task},
    {form::rl, "rl", "Whole groups: rewards, returns, advantages, and token ids where there are.",
     false, by_task},
    {form::trl, "trl", "TRL's `RolloutSample` (AsyncGRPOTrainer), one a sequence.", true, by_task},
    {form::verl, "verl", "verl's `AgentLoopOutput`, one a sequence.", true, by_task},
    {form::prime_rl, "prime-rl", "prime-rl's `TrainingSample`, one a sequence.", true, by_task},
    {form::skyrl, "skyrl", "SkyRL's `GeneratorOutput`, one a group.", true, by_task},
    {form::tinker, "tinker", "Tinker's `Datum` for its importance-sampling loss, one a sequence.",
     true, by_task},
    {form::nemo_gym, "nemo-gym", "NeMo-Gym's `BaseVerifyResponse`, one an episode.", true, by_task},
    {form::megatron, "megatron", "Megatron's `RolloutGroup` of `TokenRollout`, one a group.", true,
     by_task},
    {form::harbor, "harbor", "Harbor's trajectory (ATIF v1.7), one an episode.", false, by_turn},
    {form::kernel_rl, "kernel-rl",
     "kernel_rl's line of traces.jsonl, one a turn, with its keys; the last four are ours.", false,
     by_turn},
};

const entry& entry_of(form x) noexcept {
  return entries[static_cast<size_t>(x)];
}

} // namespace

std::string_view to_string(form x) noexcept {
  return entry_of(x).name;
}

std::optional<form> form_of(std::string_view name) noexcept {
  for (const auto& x : entries)
    if (x.name == name) return x.which;
  return std::nullopt;
}

std::string_view summary_of(form x) noexcept {
  return entry_of(x).summary;
}

bool needs_tokens(form x) noexcept {
  return entry_of(x).tokens;
}

filtering filters_of(form x) noexcept {
  return entry_of(x).filters;
}

} // namespace kernelmill::exports
