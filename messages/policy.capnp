# Episode to policy_client: a conversation in, a completion out.

@0x94d0671730194534;
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("kernelmill::wire");
using Common = import "common.capnp";

struct ChatMessage { role @0 :Text; content @1 :Text; }

struct Sampling {
  temperature @0 :Float64 = 1.0;
  topP @1 :Float64 = 1.0;
  maxTokens @2 :UInt32 = 4096;
  seed @3 :Int64 = -1;             # below 0: not sent
  stop @4 :List(Text);
  logprobs @5 :Bool;
}

struct CompletionRequest {
  session @0 :Text;                # "RUN/g3.e1": server affinity, the same over all turns
  turn @1 :UInt32;
  messages @2 :List(ChatMessage);
  sampling @3 :Sampling;
  deadlineMs @4 :UInt32;
}

struct CompletionResult {
  text @0 :Text;
  finishReason @1 :Text;           # "stop", "length", ...
  model @2 :Text;
  requestId @3 :Text;              # of the attempt that answered
  attempts @4 :UInt32;
  promptTokens @5 :UInt32;
  completionTokens @6 :UInt32;
  promptTokenIds @7 :List(Int32);  # empty when the server does not offer them
  tokenIds @8 :List(Int32);
  logprobs @9 :List(Float32);      # of the sampled tokens, same length as tokenIds when both exist
  seconds @10 :Float64;
  fault @11 :Common.Fault;
}
