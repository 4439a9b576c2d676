# Episode to governance: the facts of a turn in, a verdict out.

@0xd238b88002a45137;
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("kernelmill::wire");
using Common = import "common.capnp";
using Build = import "build.capnp";
using Evaluate = import "evaluate.capnp";
using Profile = import "profile.capnp";

struct ParsedCompletion {
  ok @0 :Bool;
  thought @1 :Text;
  kernel @2 :Text;
  language @3 :Text;
  diagnosis @4 :Text;              # the label of a `diagnose` task
  problems @5 :List(Text);         # what was wrong with the format, in order
}

struct EvidenceCheck {             # of a `diagnose` task: what a profile must show if the diagnosis is right
  name @0 :Text;                   # of a counter
  hidden @1 :Bool;                 # the policy is not told that it is looked at
  right @2 :Bool;
  note @3 :Text;                   # what was said or measured
}

struct TurnFacts {
  task @0 :Text;
  verb @1 :Text;
  operatorFamily @2 :Text;
  backend @3 :Text;
  contract @4 :Text;
  candidateSha256 @5 :Text;
  parsed @6 :ParsedCompletion;
  build @7 :Build.BuildResult;
  evaluation @8 :Evaluate.EvaluateResult;
  profile @9 :Profile.ProfileResult;
  fault @10 :Common.Fault;         # of the turn as a whole, e.g. the policy server is gone
  diagnosisRight @11 :Bool = true; # false only when a `diagnose` task got another label
  turn @12 :UInt32;
  maxTurns @13 :UInt32;
  unchanged @14 :Text;             # what the code is a copy of but for comments and spaces; empty: of nothing shown
  evidence @15 :List(EvidenceCheck);
  sameStrategy @16 :Text;          # of a `reformulate` task: why it computes as its starter did; empty: it does not
}

enum GateStatus { pass @0; fail @1; notRun @2; blocked @3; }

struct Gate { name @0 :Text; status @1 :GateStatus; reason @2 :Text; }

struct RewardComponent { name @0 :Text; value @1 :Float64; weight @2 :Float64; }

struct Verdict {
  outcome @0 :Common.Outcome;
  gates @1 :List(Gate);            # format, build, correctness, determinism, integrity, memory_safety, performance, originality
  reward @2 :Float64;              # NaN when the outcome is `infrastructure`, or when `unpaid`
  components @3 :List(RewardComponent);
  findings @4 :List(Common.Finding);
  category @5 :Text;               # "success", "format_error", "compile_error", "wrong_result", "not_timed", ...
  fault @6 :Common.Fault;
  unpaid @7 :Bool;                 # accepted, but the machine could not time it: it has no reward
}

enum EpisodeKind {
  usablePositiveSft @0;
  usableNegativeDebug @1;
  usableNegativeTransition @2;
  benchmarkOnly @3;
  unusable @4;
}

struct Readiness { kind @0 :EpisodeKind; reasons @1 :List(Text); }
