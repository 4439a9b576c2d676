# What the store keeps. A record is committed and read as one message.

@0xbd3e50524d4cf121;
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("kernelmill::wire");
using Common = import "common.capnp";
using Build = import "build.capnp";
using Evaluate = import "evaluate.capnp";
using Policy = import "policy.capnp";
using Profile = import "profile.capnp";
using Verdict = import "verdict.capnp";

struct StageSeconds {
  retrieve @0 :Float64;
  policy @1 :Float64;
  build @2 :Float64;
  evaluate @3 :Float64;
  profile @4 :Float64;
  judge @5 :Float64;
}

struct Completion {
  text @0 :Common.Content;
  finishReason @1 :Text;
  model @2 :Text;
  requestId @3 :Text;
  attempts @4 :UInt32;
  promptTokens @5 :UInt32;
  completionTokens @6 :UInt32;
  promptTokenIds @7 :List(Int32);
  tokenIds @8 :List(Int32);
  logprobs @9 :List(Float32);
  weightVersions @10 :List(Policy.WeightSpan);
  audit @11 :Policy.TokenAudit;    # of these ids against the turn before
  route @12 :Text;                 # how the completion was asked for
  callsAsText @13 :Bool;           # its tool calls stand in the text, and were answered as text
}

struct CallRecord {                # one tool call of a turn, done or refused
  id @0 :Text;
  tool @1 :Text;
  arguments @2 :Common.Content;    # JSON as the model wrote it
  observation @3 :Common.Content;  # what the model was told
  status @4 :Text;                 # "ok", "failed" (what was tried did not pass), "refused" (nothing was done), "lost" (to the infrastructure)
  transition @5 :Text;             # "inspect_only", "patch_applied", ...: actors/episode/transition.hpp lists the words
  input @6 :Text;                  # the candidate that it began with: a CandidateNode's id; empty: none
  output @7 :Text;                 # and the one that it ended with
  steps @8 :UInt32;                # of the step budget
  gpuSeconds @9 :Float64;          # of the budget of GPU seconds
  seconds @10 :Float64;
  hidden @11 :Bool;                # its outcome tells something of hidden cases
  facts @12 :Verdict.TurnFacts;    # of a build, an evaluation or a profile; without the kernel text
  verdict @13 :Verdict.Verdict;    # of an evaluation
  measured @14 :Text;              # which tool measured `output`, of a patch that was tested or a replay; empty: `tool`
}

struct CandidateNode {             # of an episode's graph of candidates, in the turn that made it
  id @0 :Text;                     # "c0", "c1", ...: unique in the episode
  parent @1 :Text;                 # empty: of none
  sha256 @2 :Text;
  source @3 :Common.Content;
  role @4 :Text;                   # "baseline", "working", "patched", "branched", "reverted", "promoted", "synthesized"
  origin @5 :Text;                 # "baseline", "patch", "branch", "revert", "promotion", "synthesis"
  depth @6 :UInt32;                # edges to a root
  patch @7 :Common.Content;        # unified diff from the parent; empty: they are the same, or there is none
  patchKind @8 :Text;              # "bug_fix", "perf_transform", "refactor", "instrumentation", "no_op"
  summary @9 :Text;                # in the policy's words
}

struct CandidateMark {             # what a turn found out of a candidate
  id @0 :Text;
  status @1 :Text;                 # "build_passed", "build_failed", "eval_passed", "eval_failed", "benchmarked", "profiled", "promoted", "dominated", "reverted"
  speedup @2 :Common.Interval;     # of a benchmarked one
}

struct StrategyNote {
  name @0 :Text;
  state @1 :Text;                  # "pending", "exploring", "successful", "failed", "partial", "skipped", "combined"
  note @2 :Text;
}

struct TurnRecord {
  turnId @0 :Text;                 # hex SHA-256 of run, task, episode and turn
  episode @1 :Common.EpisodeRef;
  turn @2 :UInt32;
  parentTurnId @3 :Text;
  transition @4 :Text;             # how the candidate came from those before: actors/episode/transition.hpp lists the words
  prompt @5 :List(PromptPart);     # only what this turn added to the conversation
  completion @6 :Completion;
  candidateSha256 @7 :Text;
  candidate @8 :Common.Content;
  facts @9 :Verdict.TurnFacts;     # without the kernel text and the thought, which stand above
  verdict @10 :Verdict.Verdict;
  feedback @11 :Common.Content;    # what the next turn's prompt says of this one
  terminal @12 :Bool;
  stopReason @13 :Text;            # "completed", "max_turns", "policy_failed", ... when terminal
  seconds @14 :StageSeconds;
  startedAt @15 :Float64;          # seconds since 1970
  committedAt @16 :Float64;
  examples @17 :List(Text);        # ids of the retrieved examples
  calls @18 :List(CallRecord);     # of mode `tools`, in order
  candidates @19 :List(CandidateNode);   # that the turn has added to the episode's graph
  marks @20 :List(CandidateMark);
  strategies @21 :List(StrategyNote);    # as they were changed
  active @22 :Text;                # the candidate that the next turn begins with
  idleSteps @23 :UInt32;           # of the step budget, of a turn without a call
  reports @24 :List(ToolReport);   # of the share of turns that `profile.share` keeps them of
  parents @25 :List(Text);         # of a search: the episodes whose candidate the first prompt shows, as "g3.e1"
}

struct ToolReport { tool @0 :Text; name @1 :Text; text @2 :Common.Content; }

struct PromptPart { role @0 :Text; content @1 :Common.Content; }

struct EpisodeRecord {
  episode @0 :Common.EpisodeRef;
  turns @1 :UInt32;
  stopReason @2 :Text;
  outcome @3 :Common.Outcome;      # of the best turn; `infrastructure` when nothing can be trained on
  bestTurn @4 :UInt32;
  rewards @5 :List(Float64);       # of each turn; 0 where its source had a reward before, NaN where it is unpaid or lost to the infrastructure
  returns @6 :List(Float64);       # R_t = r_t + gamma R_(t+1); lost turns are NaN and skipped; NaN up to the last unpaid turn
  bestSpeedup @7 :Float64;         # lower bound, 0 when none
  readiness @8 :Verdict.Readiness;
  seconds @9 :Float64;
  notTimed @10 :UInt32;            # turns that are right and have no time
  committedAt @11 :Float64;        # seconds since 1970
  unspentTurns @12 :UInt32;        # that a stop by speed left; the last reward is paid for each of them, too
  terminalState @13 :Text;         # of mode `tools`: "success", "failure", "blocked" or "budget_exhausted"
  steps @14 :UInt32;               # that its tool calls took
  gpuSeconds @15 :Float64;
}

struct GroupRecord {
  run @0 :Text;
  task @1 :Text;
  group @2 :UInt32;
  returns @3 :List(Float64);       # of the first turn of each member; NaN where left out
  advantages @4 :List(Float64);    # group-relative; NaN where left out
  mean @5 :Float64;
  deviation @6 :Float64;
  leftOut @7 :List(UInt32);        # members without a return: lost to the infrastructure, or with an unpaid turn
  committedAt @8 :Float64;         # seconds since 1970
}

struct RunRecord {
  run @0 :Text;
  configDigest @1 :Text;
  state @2 :Text;                  # "running"; then "finished", "incomplete", "cancelled" or "failed"
  readiness @3 :Text;              # JSON: what a finished run may be used for as a whole, and why
  opening @4 :UInt32;              # 0, and one more for each resume
  at @5 :Float64;                  # seconds since 1970
  fault @6 :Common.Fault;          # why it failed, or left episodes open
}

struct Record {
  union {
    turn @0 :TurnRecord;
    episode @1 :EpisodeRecord;
    group @2 :GroupRecord;
    run @3 :RunRecord;
  }
}

struct Artifact { sha256 @0 :Text; bytes @1 :Data; }

struct ArtifactBatch { artifacts @0 :List(Artifact); }

struct ReadQuery {
  run @0 :Text;
  group @1 :UInt32;
  member @2 :UInt32;
}

struct EpisodeHistory {            # the committed records of one episode, in order
  turns @0 :List(TurnRecord);
  finished @1 :Bool;
  episode @2 :EpisodeRecord;
}
