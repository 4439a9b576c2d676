# Words that more than one conversation uses.

@0x9671dea3e4f73bdc;
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("kernelmill::wire");

enum FaultClass {
  none @0;
  candidate @1;        # the kernel is at fault: this is a normal answer and gets a reward
  policy @2;           # the completion is at fault: no kernel could be taken from it
  configuration @3;    # the user is at fault: the run stops with exit code 2
  infrastructure @4;   # we are at fault: retried, never a reward
}

struct Fault {
  class @0 :FaultClass;
  category @1 :Text;   # snake_case, from the list in docs/reference/errors.md
  message @2 :Text;    # what happened, in one or two sentences
  hint @3 :Text;       # the next step
}

enum Severity { info @0; warning @1; critical @2; }   # critical rejects the candidate

struct Finding {
  rule @0 :Text;       # e.g. "input_overwrite", "late_write", "impossible_speed"
  severity @1 :Severity;
  evidence @2 :Text;   # the numbers that make the case
}

enum Outcome {
  accepted @0;
  rejected @1;
  infrastructure @2;
  open @3;             # of a turn that asked for no verdict: its tool calls only looked, tried and changed
}

struct Quantity { name @0 :Text; value @1 :Float64; unit @2 :Text; }

struct Interval { estimate @0 :Float64; low @1 :Float64; high @2 :Float64; }

struct ArtifactRef { sha256 @0 :Text; size @1 :UInt64; }

struct TextSpan { begin @0 :UInt32; size @1 :UInt32; }   # in bytes

struct Content {   # a text: inline when short, else an artifact of the store
  union {
    inline @0 :Text;
    artifact @1 :ArtifactRef;
    ofCompletion @2 :TextSpan;   # of a candidate: where the completion of its turn holds it
  }
}

struct Report { name @0 :Text; text @1 :Text; }   # what a tool wrote, as a file

struct EpisodeRef {
  run @0 :Text;
  task @1 :Text;
  group @2 :UInt32;
  member @3 :UInt32;   # the number of the episode within its group
}
