# Introspection and control of a run.

@0x93ca5e352e9bcfff;
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("kernelmill::wire");
using Common = import "common.capnp";
using Verdict = import "verdict.capnp";

struct Snapshot {                  # what every actor says of itself
  actor @0 :Text;                  # "episode"
  id @1 :Text;                     # "g3.e1"
  state @2 :Text;                  # the name of its state
  since @3 :Float64;               # seconds since 1970 at which it entered that state
  detail @4 :Text;
  numbers @5 :List(Common.Quantity);
  children @6 :List(Snapshot);
}

struct Totals {
  groups @0 :UInt32;
  episodes @1 :UInt32;
  turns @2 :UInt32;
  accepted @3 :UInt32;             # episodes
  rejected @4 :UInt32;
  infrastructure @5 :UInt32;
  dropped @6 :UInt32;              # ended because their group had its quorum
  notTimed @7 :UInt32;             # turns that are right and have no time
  unpaid @8 :UInt32;               # episodes with such a turn that the machine could not time: in no comparison
}

struct RunSummary {
  run @0 :Text;
  directory @1 :Text;
  totals @2 :Totals;
  outcome @3 :Text;                # "finished", "incomplete", "cancelled", "failed"
  seconds @4 :Float64;
  stages @5 :List(Common.Quantity);
  fault @6 :Common.Fault;          # why the run failed
  alarms @7 :List(Text);           # lost turns that go with something that the policy does
}

struct EpisodeOutcome {            # episode to run, when it ends
  episode @0 :Common.EpisodeRef;
  turns @1 :UInt32;
  outcome @2 :Common.Outcome;
  return @3 :Float64;              # NaN where a turn is unpaid
  bestReward @4 :Float64;          # NaN where no turn has a reward
  bestSpeedup @5 :Float64;
  stopReason @6 :Text;
  seconds @7 :List(Common.Quantity);
  fault @8 :Common.Fault;
  closed @9 :Bool;                 # its own record is committed; false: resume takes it up again
  readiness @10 :Verdict.EpisodeKind;
  notTimed @11 :UInt32;            # turns that are right and have no time
  sketches @12 :List(TurnSketch);  # of its committed turns, in order
}

struct TurnSketch {                # what a loss might go with
  language @0 :Text;               # as the answer's fence names it
  length @1 :UInt32;               # of the completion, in bytes
  lost @2 :Bool;                   # to the infrastructure
}
