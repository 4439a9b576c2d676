#include "storage/lineage/candidate_graph.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace kernelmill {

namespace {

constexpr size_t most_problems = 20;

std::string as_string(capnp::Text::Reader x) {
  return {x.begin(), x.size()};
}

std::optional<candidate_speedup> interval_of(wire::Interval::Reader x) {
  candidate_speedup result{x.getEstimate(), x.getLow(), x.getHigh()};
  bool sound = std::isfinite(result.low) && std::isfinite(result.high) && result.low > 0 &&
               result.low <= result.high;
  return sound ? std::optional{result} : std::nullopt;
}

std::optional<bool> rightness_of(std::string_view status) {
  if (status == "build_failed" || status == "eval_failed") return false;
  if (status == "eval_passed" || status == "benchmarked" || status == "profiled") return true;
  return std::nullopt;
}

class graph_maker {
public:
  candidate_graph run(const std::vector<Message<wire::Record>>& turns) {
    bool has_nodes = std::any_of(turns.begin(), turns.end(), [](const auto& record) {
      auto view = record.open();
      auto turn = view->getTurn();
      return turn.getCandidates().size() > 0 || turn.getCalls().size() > 0;
    });
    for (size_t i = 0; i < turns.size(); ++i) {
      auto view = turns[i].open();
      if (!view->isTurn()) continue;
      if (has_nodes)
        take_nodes(view->getTurn(), i);
      else
        take_turn(view->getTurn(), i);
    }
    settle_kinds();
    settle_best();
    if (untold_ > 0) graph_.problems.push_back(std::to_string(untold_) + " more problems");
    return std::move(graph_);
  }

private:
  void report(wire::TurnRecord::Reader turn, const std::string& what) {
    if (graph_.problems.size() < most_problems)
      graph_.problems.push_back("turn t" + std::to_string(turn.getTurn()) + ": " + what);
    else
      ++untold_;
  }

  candidate_entry* find(const std::string& id) {
    auto found = places_.find(id);
    return found == places_.end() ? nullptr : &graph_.entries[found->second];
  }

  // A parent is among the entries before, so no circle can be.
  candidate_entry* add(wire::TurnRecord::Reader turn, candidate_entry x) {
    if (x.id.empty() || places_.contains(x.id)) {
      report(turn, "a candidate has the id '" + x.id + "', which another has or which is none");
      return nullptr;
    }
    auto* parent = x.parent.empty() ? nullptr : find(x.parent);
    if (!x.parent.empty() && parent == nullptr) {
      report(turn, x.id + " has the parent '" + x.parent + "', which is no candidate before it");
      x.parent.clear();
    }
    auto depth = parent == nullptr ? 0 : parent->depth + 1;
    if (x.node && x.depth != depth && (parent != nullptr || x.parent.empty()))
      report(turn,
             x.id + " has the depth " + std::to_string(x.depth) + ", not " + std::to_string(depth));
    x.depth = depth;
    x.turn = turn.getTurn();
    places_.emplace(x.id, graph_.entries.size());
    return &graph_.entries.emplace_back(std::move(x));
  }

  // -- mode tools ---------------------------------------------------------------------------------

  void take_nodes(wire::TurnRecord::Reader turn, size_t record) {
    auto nodes = turn.getCandidates();
    for (unsigned i = 0; i < nodes.size(); ++i) {
      candidate_entry x;
      x.id = as_string(nodes[i].getId());
      x.parent = as_string(nodes[i].getParent());
      x.sha256 = as_string(nodes[i].getSha256());
      x.role = as_string(nodes[i].getRole());
      x.origin = as_string(nodes[i].getOrigin());
      x.patch_kind = as_string(nodes[i].getPatchKind());
      x.summary = as_string(nodes[i].getSummary());
      x.depth = nodes[i].getDepth();
      x.record = record;
      x.node = i;
      add(turn, std::move(x));
    }
    for (auto call : turn.getCalls()) {
      auto* made = find(as_string(call.getOutput()));
      if (made == nullptr || made->record != record || !made->tool.empty()) continue;
      made->call = as_string(call.getId());
      made->tool = as_string(call.getTool());
    }
    for (auto mark : turn.getMarks()) take_mark(turn, mark);
    auto active = as_string(turn.getActive());
    if (!active.empty()) set_active(turn, active);
  }

  void take_mark(wire::TurnRecord::Reader turn, wire::CandidateMark::Reader mark) {
    auto* x = find(as_string(mark.getId()));
    if (x == nullptr)
      return report(turn, "'" + as_string(mark.getId()) + "' is marked and is no candidate");
    x->status = as_string(mark.getStatus());
    if (auto right = rightness_of(x->status)) x->right = right;
    if (auto speedup = interval_of(mark.getSpeedup())) x->speedup = speedup;
    if (x->right == false) x->speedup.reset(); // it was timed before it was found out
  }

  void set_active(wire::TurnRecord::Reader turn, const std::string& id) {
    auto* x = find(id);
    if (x == nullptr) return report(turn, "'" + id + "' is active and is no candidate");
    for (auto& other : graph_.entries) other.active = false;
    x->active = true;
  }

  // -- mode refine --------------------------------------------------------------------------------

  void take_turn(wire::TurnRecord::Reader turn, size_t record) {
    auto sha256 = as_string(turn.getCandidateSha256());
    if (sha256.empty()) return;
    auto* x = last_.empty() ? nullptr : find(last_);
    if (x == nullptr || x->sha256 != sha256) x = add_candidate(turn, record, sha256);
    if (x == nullptr) return;
    last_ = x->id;
    auto verdict = turn.getVerdict();
    if (verdict.getOutcome() == wire::Outcome::ACCEPTED ||
        verdict.getOutcome() == wire::Outcome::REJECTED) {
      x->right = verdict.getOutcome() == wire::Outcome::ACCEPTED;
      auto facts = turn.getFacts();
      auto timing = facts.getEvaluation().getTiming();
      if (*x->right && timing.getMeasured()) x->speedup = interval_of(timing.getSpeedup());
      x->status = *x->right                        ? (x->speedup ? "benchmarked" : "eval_passed")
                  : facts.getBuild().getCompiled() ? "eval_failed"
                                                   : "build_failed";
    }
    set_active(turn, last_);
  }

  candidate_entry* add_candidate(wire::TurnRecord::Reader turn, size_t record,
                                 const std::string& sha256) {
    candidate_entry x;
    x.id = "c" + std::to_string(graph_.entries.size());
    x.sha256 = sha256;
    x.record = record;
    x.parent = last_;
    x.role = last_.empty() ? "synthesized" : "working";
    x.origin = "synthesis";
    auto before = std::find_if(graph_.entries.rbegin(), graph_.entries.rend(),
                               [&](const candidate_entry& y) { return y.sha256 == sha256; });
    if (before != graph_.entries.rend()) { // it is that one again, not a change of the last
      x.parent = before->id;
      x.role = "reverted";
      x.origin = "revert";
    }
    bool said = turn.getTransition() == "reverted";
    if (said != (before != graph_.entries.rend()))
      report(turn, "its transition is '" + as_string(turn.getTransition()) +
                       "', and its candidate " + (said ? "is a new one" : "is an earlier one"));
    return add(turn, std::move(x));
  }

  // -- all ----------------------------------------------------------------------------------------

  // Where the texts did not tell it, verdicts that came later do.
  void settle_kinds() {
    for (auto& x : graph_.entries) {
      auto* parent = x.parent.empty() ? nullptr : find(x.parent);
      if (parent == nullptr || !x.patch_kind.empty()) continue;
      if (parent->sha256 == x.sha256) continue; // a branch or a revert: nothing was changed
      if (parent->right == false && x.right == true)
        x.patch_kind = "bug_fix";
      else if (parent->right == true)
        x.patch_kind = "perf_transform";
    }
  }

  void settle_best() {
    candidate_entry* best = nullptr;
    for (auto& x : graph_.entries) {
      if (x.right != true) continue;
      bool better =
          best == nullptr || !best->speedup || (x.speedup && x.speedup->low > best->speedup->low);
      if (better) best = &x;
    }
    if (best == nullptr) return;
    best->best = true;
    if (!best->speedup) return;
    for (auto& x : graph_.entries)
      x.dominated = x.right == true && x.speedup && x.speedup->high < best->speedup->low;
  }

  candidate_graph graph_;
  std::unordered_map<std::string, size_t> places_;
  std::string last_; ///< of mode `refine`
  size_t untold_ = 0;
};

} // namespace

const candidate_entry* candidate_graph::find(std::string_view id) const {
  auto found = std::find_if(entries.begin(), entries.end(),
                            [&](const candidate_entry& x) { return x.id == id; });
  return found == entries.end() ? nullptr : &*found;
}

candidate_graph graph_of(const std::vector<Message<wire::Record>>& turns) {
  return graph_maker{}.run(turns);
}

expected<std::string> source_of(const candidate_entry& x,
                                const std::vector<Message<wire::Record>>& turns,
                                const artifact_store& artifacts) {
  auto view = turns.at(x.record).open();
  auto turn = view->getTurn();
  return x.node ? artifacts.text(turn.getCandidates()[*x.node].getSource())
                : artifacts.candidate(turn);
}

} // namespace kernelmill
