# Episode to policy_client: a conversation in, a completion out.

@0x94d0671730194534;
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("kernelmill::wire");
using Common = import "common.capnp";

struct ToolCall {
  id @0 :Text;                     # as the server or the episode named it; unique within a conversation
  name @1 :Text;
  arguments @2 :Text;              # JSON as the model wrote it, broken or not
}

struct Tool {
  name @0 :Text;
  description @1 :Text;
  parameters @2 :Text;             # a JSON Schema
}

struct ChatMessage {
  role @0 :Text;                   # "system", "user", "assistant" or "tool"
  content @1 :Text;
  calls @2 :List(ToolCall);        # of an assistant
  callId @3 :Text;                 # of a tool: what it answers
}

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
  threadIds @5 :List(Int32);       # prompt and completion of the turn before, as the server used them; empty: none kept
  threadSampled @6 :UInt32;        # how many of them, at the end, were sampled
  exactTokens @7 :Bool;            # asked in token ids; of attached servers, one that takes them is chosen
  tools @8 :List(Tool);            # what the policy may call; empty: it writes text alone
  toolChoice @9 :Text;             # "auto", "required" or "none"; empty: not sent
}

struct WeightSpan {                # which weights made which tokens of a completion
  version @0 :Text;
  start @1 :UInt32;                # half-open, in tokens of the completion
  end @2 :UInt32;
}

enum TokenState {
  unknown @0;                      # of a record that is older than the audit
  exact @1;                        # ids are there, and the prompt goes on from the turn before
  branch @2;                       # ids are there, and the prompt departs from the turn before
  inexact @3;                      # ids of the prompt or of the completion are missing
}

struct TokenAudit {
  state @0 :TokenState;
  position @1 :UInt32;             # first token of the prompt that is not the kept one's; `exact`: all that was kept
  kept @2 :UInt32;                 # tokens that were kept of the turn before
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
  weightVersions @12 :List(WeightSpan);
  route @13 :Text;                 # "tokens", or "chat" and why not tokens when they were asked for
  calls @14 :List(ToolCall);       # in the order in which they are to be answered
}

struct PolicyServer {              # what `kernelmill policy attach` says of a server
  name @0 :Text;                   # unique among those that are attached
  url @1 :Text;                    # "http://host:8000/v1"
  kind @2 :Text;                   # "openai", "vllm", "sglang", "llamacpp"
  model @3 :Text;
  maxInFlight @4 :UInt32 = 64;
  apiKeyEnv @5 :Text;              # the name of a variable of the head's; keys themselves never travel
  apiKeyFile @6 :Text;             # a file on the head's machine
  tokens @7 :Text;                 # "exact": it takes and gives token ids; "chat": it does not; "": as its kind does
}
