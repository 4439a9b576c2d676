# Episode to compiler: source text in, a loadable library out.

@0xab97a484296ed9ea;
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("kernelmill::wire");
using Common = import "common.capnp";

struct BuildRequest {
  task @0 :Text;
  contract @1 :Text;       # "native", "device" or "torch"
  backend @2 :Text;        # "cpu", "cuda"
  source @3 :Text;
  sha256 @4 :Text;         # of the source
  deadlineMs @5 :UInt32;
  taskDir @6 :Text;        # the folder that holds task.json; of "torch" alone
  taskDigest @7 :Text;     # of that folder
}

struct Diagnostic {
  file @0 :Text;
  line @1 :UInt32;
  column @2 :UInt32;
  severity @3 :Text;       # "error", "warning", "note"
  message @4 :Text;
}

struct KernelResources {  # of one GPU kernel, by ptxas
  name @0 :Text;
  registers @1 :UInt32;    # a thread
  spillStores @2 :UInt32;  # bytes a thread
  spillLoads @3 :UInt32;   # bytes a thread
  stackFrame @4 :UInt32;   # bytes a thread
  sharedBytes @5 :UInt32;  # static, a block
  occupancy @6 :Float64;   # share of a multiprocessor's warps that registers let live at once
}

struct BuildResult {
  compiled @0 :Bool;
  libraryPath @1 :Text;    # on the node that built it
  librarySha256 @2 :Text;
  cached @3 :Bool;
  diagnostics @4 :List(Diagnostic);
  log @5 :Text;            # the compiler's own words, paths cleaned, at most 16 KiB
  seconds @6 :Float64;
  toolchain @7 :Text;      # "g++ 12.2.0 -O3 -march=native -fopenmp"
  fault @8 :Common.Fault;  # class none when compiled
  kernels @9 :List(KernelResources);
}
