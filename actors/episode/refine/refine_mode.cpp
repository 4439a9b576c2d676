#include "actors/episode/asking.hpp"
#include "actors/episode/episode_mode.hpp"
#include "actors/episode/episode_records.hpp"
#include "actors/episode/patch/text_patch.hpp"
#include "messages/base/digest.hpp"
#include "messages/copied.hpp"

namespace kernelmill {

namespace {

class refine_mode final : public episode_mode {
public:
  explicit refine_mode(episode_state& episode) : episode_(episode) {
    // nop
  }

  void take_answer() override {
    auto& x = *episode_.current;
    if (x.fault.cls != fault_class::none) return episode_.ask_verdict(); // whatever else it says
    read_answer();
    if (auto answer = x.completion.open(); answer->getFinishReason() == "length")
      explain_cut(x.parsed, *x.text, limit_reached(episode_, *answer));
    if (!x.parsed.ok) return episode_.ask_verdict();
    x.candidate_sha256 = sha256_hex(x.parsed.kernel);
    episode_.begin_trial(episode_.full_trial());
  }

  void end_trial(const Message<wire::Verdict>* verdict) override {
    const auto& settings = *episode_.settings;
    auto facts = episode_.current->facts.open();
    auto view = verdict->open();
    episode_.commit_turn(
        *verdict, feedback_text(*facts, *view, settings.feedback_bytes, settings.profile_feedback),
        stop_reason_after(*view));
  }

  void committed(const std::shared_ptr<const std::string>& feedback) override {
    if (episode_.settings->patches && episode_.current->parsed.ok)
      last_ = episode_.current->parsed.kernel;
    remember(episode_.current->text, feedback);
  }

  void restore(wire::TurnRecord::Reader record) override {
    if (auto kernel = text_of(record.getCandidate());
        episode_.settings->patches && !kernel->empty())
      last_ = *kernel;
    remember(text_of(record.getCompletion().getText()), text_of(record.getFeedback()));
  }

private:
  // A change to the last kernel stands for the whole program that it makes.
  void read_answer() {
    auto& x = *episode_.current;
    x.parsed = parse_completion(*x.text);
    const auto& before = episode_.turn == 0 ? episode_.base : last_;
    if (!episode_.settings->patches || before.empty()) return;
    auto patch = patch_of_answer(*x.text);
    if (!patch) return;
    auto made = apply_patch(*patch, before);
    x.parsed.ok = made.has_value();
    x.parsed.problems.clear();
    x.parsed.kernel = made ? std::move(*made) : std::string{};
    x.parsed.kernel_begin = 0;
    if (!made) x.parsed.problems.push_back("the patch was not applied: " + made.error().message);
  }

  void remember(std::shared_ptr<const std::string> answer,
                std::shared_ptr<const std::string> feedback) {
    episode_.conversation.push_back({chat_role::assistant, std::move(answer), {}, {}});
    episode_.conversation.push_back({chat_role::user, std::move(feedback), {}, {}});
  }

  std::string stop_reason_after(wire::Verdict::Reader verdict) const {
    const auto& settings = *episode_.settings;
    if (verdict.getOutcome() == wire::Outcome::INFRASTRUCTURE) return stopped_by_infrastructure;
    bool accepted = verdict.getOutcome() == wire::Outcome::ACCEPTED;
    auto evaluation = episode_.current->evaluation.open();
    auto low = evaluation->getTiming().getSpeedup().getLow();
    if (accepted && settings.stop_on_correct) return "completed";
    if (accepted && !is_unchanged(verdict) && settings.stop_speedup > 0 &&
        low >= settings.stop_speedup)
      return "completed";
    if (episode_.turn + 1 >= settings.max_turns) return "max_turns";
    return {};
  }

  episode_state& episode_;
  std::string last_; // kernel that was read, where answers may be changes to it
};

} // namespace

std::unique_ptr<episode_mode> make_refine_mode(episode_state& episode) {
  return std::make_unique<refine_mode>(episode);
}

} // namespace kernelmill
