# Episode to retriever: examples for a prompt.

@0x8643351580c7c2cd;
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("kernelmill::wire");
using Common = import "common.capnp";

struct RetrieveRequest {
  query @0 :Text;
  count @1 :UInt32;
  excludeTask @2 :Text;            # nothing that solves this task comes back
  operatorFamily @3 :Text;
  backend @4 :Text;
  reference @5 :Text;              # the computation itself as code; empty: words alone
  language @6 :Text;               # what kernels are written in: cpp, cuda, hip, triton; empty: any
  excludeReference @7 :Text;       # the excluded task's computation; empty: it is `reference`
}

struct Example {
  id @0 :Text;
  kind @1 :Text;                   # "card" or "kernel"
  title @2 :Text;
  text @3 :Text;
  source @4 :Text;                 # a card's file, or the turn that verified the kernel
  task @5 :Text;                   # empty for cards
  score @6 :Float64;
  language @7 :Text;               # of a kernel's text, as a fence names it; empty: "cpp"
  reference @8 :Text;              # the computation that a kernel replaces, in PyTorch; may be empty
  speedup @9 :Float64;             # lower bound; 0: nothing measured it
  device @10 :Text;                # that measured it; may be empty
  date @11 :Text;                  # of the measurement; may be empty
  origin @12 :Text;                # of a row of a corpus; empty: a run verified it
  rightsSource @13 :Text;          # whose licence counts; may be empty
}

struct RetrieveResult {
  examples @0 :List(Example);
  withheld @1 :UInt32;             # hits the leak guard removed
  fault @2 :Common.Fault;          # class none unless the embedder failed; then examples is empty
}
