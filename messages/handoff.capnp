# What the hand-off of groups to trainers keeps: one event after the other, never changed. The table
# (actors/handoff/lease_table.hpp) is what they add up to.

@0xc1f2a35de9b7410f;
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("kernelmill::wire");

struct HandoffOrder {
  id @0 :Text;                     # also the run's name
  digest @1 :Text;                 # of what the client asked for
  config @2 :Text;                 # of the run, resolved, as JSON
  form @3 :Text;                   # of the rows
  groups @4 :UInt32;
  groupSize @5 :UInt32;
  maxOffPolicy @6 :Int64 = -1;     # in versions of the weights; -1: any
  maxReady @7 :UInt32;             # groups that may wait for a trainer; 0: any number
  deadlineMs @8 :Int64;            # since 1970; 0: none
  client @9 :Text;                 # that owns it; empty: it has no owner
}

struct HandoffReady {              # its record is committed, and a trainer can learn from it
  order @0 :Text;
  group @1 :UInt32;
  delivered @2 :UInt32;            # members with rows
  versions @3 :List(Text);         # of the weights that its tokens came from
}

struct HandoffDropped {
  order @0 :Text;
  groups @1 :List(UInt32);
  reason @2 :Text;                 # "stale", "incomplete", ...
}

struct HandoffLease {
  lease @0 :UInt64;                # 1, 2, ...
  order @1 :Text;
  groups @2 :List(UInt32);
  consumer @3 :Text;
  generation @4 :UInt64;           # of the consumer
  request @5 :Text;                # the consumer's name for it; may be empty
  asked @6 :UInt32;                # groups
  untilMs @7 :Int64;               # since 1970
}

struct HandoffRelease {            # those of its groups that are not acknowledged are ready again
  lease @0 :UInt64;
  why @1 :Text;                    # "expired"
}

struct HandoffAck {
  lease @0 :UInt64;
  groups @1 :List(UInt32);
  step @2 :Int64;                  # of the optimizer that learns from them
}

struct HandoffStep {
  consumer @0 :Text;
  step @1 :Int64;
}

struct HandoffWeights {
  version @0 :Text;
  ordinal @1 :UInt64;              # 1, 2, ...: the order in which they were declared
}

struct HandoffEvent {
  at @0 :Int64;                    # milliseconds since 1970
  union {
    order @1 :HandoffOrder;
    withdrawn @2 :Text;            # an order whose run was never begun
    ready @3 :HandoffReady;
    dropped @4 :HandoffDropped;
    leased @5 :HandoffLease;
    released @6 :HandoffRelease;
    acked @7 :HandoffAck;
    committed @8 :HandoffStep;     # a checkpoint holds what was learned up to this step
    rolledBack @9 :HandoffStep;    # the consumer went back to it: later groups are ready again
    weights @10 :HandoffWeights;
    cancelled @11 :Text;           # an order
  }
}
