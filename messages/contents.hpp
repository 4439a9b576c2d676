#pragma once

// Every text of a turn that the store may keep as an artifact. Whatever copies, checks, sends or
// fills in a record walks it here, so that a field which is added is added for all of them: a test
// holds this list against the schema.

#include "messages/lineage.capnp.h"

namespace kernelmill {

/// Calls `visit` with each Content of a turn, of a reader or of a builder, and with what it is: "a
/// prompt". The candidate may be a part of the completion, which comes before it.
template <class Turn, class F>
void for_each_content(Turn turn, F&& visit) {
  for (auto part : turn.getPrompt()) visit(part.getContent(), "a prompt");
  visit(turn.getCompletion().getText(), "the completion");
  visit(turn.getCandidate(), "the candidate");
  visit(turn.getFeedback(), "the feedback");
  for (auto call : turn.getCalls()) {
    visit(call.getArguments(), "the arguments of a call");
    visit(call.getObservation(), "the observation of a call");
  }
  for (auto node : turn.getCandidates()) {
    visit(node.getSource(), "the source of a candidate");
    visit(node.getPatch(), "the patch of a candidate");
  }
  for (auto report : turn.getReports()) visit(report.getText(), "a tool's report");
}

} // namespace kernelmill
