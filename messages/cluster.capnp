# Between the head and its nodes, and between a user's command and the head.

@0xc3f1a6d2b97e4d05;
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("kernelmill::wire");
using Common = import "common.capnp";

struct NodeOffer {       # what a node has to give, when it joins
  name @0 :Text;         # unique in the cluster: the host's name unless told otherwise
  build @1 :Text;        # "0.1.0 (4425404…)": nodes of another build are refused
  epoch @2 :UInt64;      # drawn when the process started: a node that came back is another one
  backend @3 :Text;      # "cpu" or "cuda"
  architecture @4 :Text; # what is built there runs on nodes of the same one alone: "sm_90"
  hardware @5 :Text;
  toolchain @6 :Text;
  compilers @7 :UInt32;
  slots @8 :List(Text);  # for evaluations: "gpu0 (NVIDIA H200)"
  sandboxComplete @9 :Bool;
  layers @10 :List(Text); # of the sandbox, that stand there
}

struct Welcome {         # the head's answer
  epoch @0 :UInt64;      # of the head's process
  fault @1 :Common.Fault;
  name @2 :Text;         # the node's name: another node may have had the one that it asked for
}

struct ParcelFile { path @0 :Text; bytes @1 :Data; }

# What a job needs and a node does not have yet. Content names itself: it travels once to each node.
struct Parcel {
  taskId @0 :Text;
  taskDigest @1 :Text;
  taskFiles @2 :List(ParcelFile);   # empty: sent before
  librarySha256 @3 :Text;
  library @4 :Data;                 # empty: sent before
}

struct ControlRequest {  # of `kernelmill submit`, `status`, `drain`, ...
  verb @0 :Text;
  subject @1 :Text;      # a run, a node, a policy server
  document @2 :Text;     # JSON
  protocol @3 :UInt16;   # of the command; a head refuses another one than its own
}

struct ControlReply {
  document @0 :Text;     # JSON
  fault @1 :Common.Fault;
}
