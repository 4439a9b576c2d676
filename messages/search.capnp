# Episode to search: where it sets out from.

@0xd27c1b6f0e5a4b91;
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("kernelmill::wire");

struct SearchOpening {
  parents @0 :List(Text);          # episodes whose candidate the prompt shows, as "g3.e1"; none: the task alone
  text @1 :Text;                   # behind the task in the first prompt; may be empty
  base @2 :Text;                   # that candidate's program, of which the first answer may be a change; may be empty
}
