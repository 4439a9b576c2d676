#include "actors/episode/asking.hpp"
#include "actors/episode/episode_mode.hpp"
#include "actors/episode/episode_records.hpp"
#include "messages/base/digest.hpp"

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
    x.parsed = parse_completion(*x.text);
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
    remember(episode_.current->text, feedback);
  }

  void restore(wire::TurnRecord::Reader record) override {
    remember(text_of(record.getCompletion().getText()), text_of(record.getFeedback()));
  }

private:
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
    bool copied = std::string_view{verdict.getCategory().cStr()} == "unchanged";
    if (accepted && !copied && settings.stop_speedup > 0 && low >= settings.stop_speedup)
      return "completed";
    if (episode_.turn + 1 >= settings.max_turns) return "max_turns";
    return {};
  }

  episode_state& episode_;
};

} // namespace

std::unique_ptr<episode_mode> make_refine_mode(episode_state& episode) {
  return std::make_unique<refine_mode>(episode);
}

} // namespace kernelmill
