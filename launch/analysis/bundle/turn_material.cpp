#include "launch/analysis/bundle/documents.hpp"
#include "storage/journal/projections.hpp"

namespace kernelmill::bundles {

namespace {

expected<void> take_text(std::string& into, expected<std::string> from) {
  KM_TRY(from);
  into = std::move(*from);
  return {};
}

} // namespace

expected<turn_material> material_of(wire::TurnRecord::Reader turn,
                                    const artifact_store& artifacts) {
  turn_material x{turn, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
  for (auto part : turn.getPrompt()) {
    auto content = artifacts.text(part.getContent());
    KM_TRY(content);
    x.messages.emplace_back(part.getRole().cStr(), std::move(*content));
  }
  KM_TRY(take_text(x.answer, artifacts.text(turn.getCompletion().getText())));
  KM_TRY(take_text(x.code, artifacts.candidate(turn)));
  KM_TRY(take_text(x.feedback, artifacts.text(turn.getFeedback())));
  for (auto one : turn.getReports()) {
    auto text = artifacts.text(one.getText());
    KM_TRY(text);
    x.reports.push_back({one.getTool().cStr(), one.getName().cStr(), std::move(*text)});
  }
  auto trace = turn_trace(turn, artifacts);
  KM_TRY(trace);
  x.trace = std::move(*trace);
  return x;
}

} // namespace kernelmill::bundles
