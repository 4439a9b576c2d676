# Episode to profiler: why is this kernel as fast as it is?

@0x85f8ed1fbe308f3a;
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("kernelmill::wire");
using Common = import "common.capnp";
using Evaluate = import "evaluate.capnp";

struct ProfileRequest {
  evaluation @0 :Evaluate.EvaluateRequest;
  bytes @1 :Float64;               # moved by one call at the timed shape, from the task
  flops @2 :Float64;
}

struct BottleneckCard {
  bottleneck @0 :Text;             # "memory_bandwidth", "compute", "launch_overhead", "latency", "unknown"
  confidence @1 :Float64;          # 0 to 1
  evidence @2 :List(Text);
  nextActions @3 :List(Text);
}

struct ProfileResult {
  available @0 :Bool;
  counters @1 :List(Common.Quantity);
  missing @2 :List(Text);          # what could not be read here, and why
  card @3 :BottleneckCard;
  seconds @4 :Float64;
  fault @5 :Common.Fault;
  reports @6 :List(Common.Report); # the profiler's own tables, where they were asked for
}
