# Episode to gpu_runner, and gpu_runner to referee: a library in, measured facts out.

@0x8eb985bfe2109e86;
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("kernelmill::wire");
using Common = import "common.capnp";

struct TimingPolicy {
  enabled @0 :Bool = true;
  halfWidth @1 :Float64 = 0.03;    # stop when the interval is narrower than this, relative
  clock @2 :Text = "device";       # what is rewarded: "device" (the GPU's work) or "call" (launches included)
  widest @3 :Float64 = 0.5;        # half of a wider interval, relative, says nothing: not timed
}

struct EvaluateRequest {
  taskDir @0 :Text;                # the folder that holds task.json
  taskDigest @1 :Text;
  candidateSha256 @2 :Text;
  libraryPath @3 :Text;
  librarySha256 @4 :Text;
  timing @5 :TimingPolicy;
  seed @6 :Data;                   # 32 bytes to replay an evaluation; empty: drawn after load
  deadlineMs @7 :UInt32;
  profile @8 :Bool;                # count instead of time
  contract @9 :Text;               # "native", "device" or "torch"; empty: native
  mode @10 :Text;                  # of "torch": "honest", "suite" or "kernelbench"; empty: honest
  language @11 :Text;              # of "torch": "cuda", "triton", "torch", "hip"; empty or "any": any
  float32 @12 :Text;               # of "torch": "ieee" or "tf32"; empty: ieee
  taskId @13 :Text;                # "native/row_sum"
  sanitize @14 :Text;              # "on_accept" or "always": checks of memory, too; empty: not
  sanitizeMs @15 :UInt32;          # of deadlineMs, for that
  source @16 :Text;                # of a library for the CPU whose memory is checked: it is built again
  lostBefore @17 :Bool;            # another referee was lost beside this candidate
  visibleOnly @18 :Bool;           # no hidden case is run and nothing is timed
  reports @19 :Bool;               # tools that look at it leave what they wrote
  baseline @20 :Text;              # "eager", "compile", "compile_max_autotune", "file" or "best"; empty: the task's own
  baselineProduct @21 :Data;       # of "file" and "best": a library or artifact, as builds of candidates make them
  baselineSha256 @22 :Text;        # of its source
  baselineNote @23 :Text;          # what the verdict says of it
  shapes @24 :UInt32;              # of "torch": variants judged, drawn by the seed; 0: all
}

struct CaseResult {
  name @0 :Text;
  shape @1 :Text;                  # "rows=64 cols=256"
  hidden @2 :Bool;
  distribution @3 :Text;
  maxError @4 :Float64;            # largest |got - want|; infinity when not finite
  bound @5 :Float64;               # the bound at that element
  pass @6 :Bool;
  badCount @7 :UInt64;             # elements outside their bound
  firstBad @8 :Text;               # "y[3]: got 1.5, want 2.25 (bound 1e-6)"
}

struct KindTime {
  name @0 :Text;                   # of contents: "signs", "outliers"
  candidateMs @1 :Float64;         # medians of the calls on contents of this kind
  referenceMs @2 :Float64;
  calls @3 :UInt32;
  speedupLow @4 :Float64;          # of a shape, its interval; 0: not known
  speedupHigh @5 :Float64;
}

struct TimedPair {                 # one measurement of both, beside each other
  candidateMs @0 :Float32;
  referenceMs @1 :Float32;
}

enum NotTimed {                    # what kept a right candidate from being timed
  no @0;                           # it has a time, or none was asked for
  machine @1;                      # the baseline beside it could not be timed either: to be tried again
  candidate @2;                    # the baseline could be timed
}

struct Timing {
  measured @0 :Bool;
  candidateMs @1 :Float64;         # median of the calls
  referenceMs @2 :Float64;         # the same for the task's baseline, interleaved
  speedup @3 :Common.Interval;     # referenceMs / candidateMs, 95 % interval
  samples @4 :UInt32;              # candidate calls that were timed and checked
  clock @5 :Text;                  # "outside"
  overheadMs @6 :Float64;          # of a call that does nothing, part of both figures
  rooflineMs @7 :Float64;          # no honest kernel is faster on this machine
  shape @8 :Text;
  note @9 :Text;                   # why timing ended
  candidateCallMs @10 :Float64;    # back to back, launches included; 0: not measured, as are those below
  referenceCallMs @11 :Float64;
  candidateDeviceMs @12 :Float64;  # the GPU's work alone: launches are queued before the clock starts
  referenceDeviceMs @13 :Float64;
  kinds @14 :List(KindTime);       # by contents, where timed rows had several kinds
  notTimed @15 :NotTimed;          # of a right candidate that is not `measured`
  pairs @16 :List(TimedPair);      # in order, at most 256: the first and then evenly thinned
  baseline @17 :Text;              # what referenceMs is of: as of the request, or "eager" where torch.compile refused; empty: the task's own
  baselineNote @18 :Text;          # why it is another than was asked for, or how it was made
  eagerMs @19 :Float64;            # a short estimate of the problem's own model as it is; 0: referenceMs is that, or it was not estimated
}

struct MemoryChecks {              # by compute-sanitizer or g++'s sanitizers, on visible cases with contents of their own
  complete @0 :Bool;               # each check that the backend has came to its end
  findings @1 :List(Common.Finding);     # warning: it is one; info: the tool itself is not sure
  problems @2 :List(Text);         # why a check has no report
  reports @3 :List(Common.Report); # the tools' own words, where they were asked for
}

struct EvaluateResult {
  correct @0 :Bool;
  deterministic @1 :Bool;
  cases @2 :List(CaseResult);
  findings @3 :List(Common.Finding);
  timing @4 :Timing;
  output @5 :Text;                 # what the candidate printed until `sealed`, at most 4 KiB, control bytes removed
  counters @6 :List(Common.Quantity);
  seconds @7 :Float64;
  seed @8 :Data;
  device @9 :Text;                 # "Intel(R) Xeon(R), 2 cores"
  fault @10 :Common.Fault;         # class none when every case passed
  missing @11 :List(Text);         # counters that a profile could not read here, and why
  spans @12 :List(Common.Quantity);      # seconds of the slot, in order: "task", "candidate", ...
  conditions @13 :List(Common.Quantity); # of the GPU while it was timed: clocks, heat, power
  sealed @14 :Bool;                # a hidden case or a timed row began: what was said later may carry what it saw
  caseCount @15 :UInt32;           # of the task; `cases` lists those that ran; 0: unknown
  deviceUuid @16 :Text;            # "GPU-..." of the card that judged; empty: a CPU
  memory @18 :MemoryChecks;        # empty: they were not asked for
  layers @17 :List(Text);          # of the sandbox that stood while it was judged: "namespaces", "seccomp", ...
}

struct CheckRequest { taskDir @0 :Text; }   # `task check` to referee; empty: a ping

struct CheckResult {
  ok @0 :Bool;
  problems @1 :List(Text);         # each says which degenerate output passes, on which cases, and why
  notes @2 :List(Text);
  seconds @3 :Float64;
}
