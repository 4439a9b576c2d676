// Frames between our processes over a socket, and every message that the schemas know, as it comes
// from the wire.

#include <sys/socket.h>
#include <unistd.h>

#include "gpu/process/spawn_protocol.hpp"
#include "gpu/python/packets.hpp"
#include "messages/build.capnp.h"
#include "messages/cluster.capnp.h"
#include "messages/evaluate.capnp.h"
#include "messages/framing.hpp"
#include "messages/lineage.capnp.h"
#include "messages/policy.capnp.h"
#include "messages/profile.capnp.h"
#include "messages/retrieve.capnp.h"
#include "messages/run.capnp.h"
#include "messages/verdict.capnp.h"
#include "tests/fuzz/support.hpp"
#include "tests/fuzz/targets.hpp"

namespace kernelmill::fuzz {

namespace {

constexpr size_t most_written = 64 << 10; // what a socket takes at once

template <class... Ts>
void read_as_all(std::string_view bytes) {
  (read_message<Ts>(bytes), ...);
}

void read_messages(std::string_view bytes) {
  using namespace wire;
  read_as_all<ArtifactBatch, BuildRequest, BuildResult, CompletionRequest, CompletionResult,
              EpisodeHistory, EpisodeOutcome, EvaluateRequest, EvaluateResult, CheckResult,
              ProfileRequest, ProfileResult, ReadQuery, Record, RetrieveRequest, RetrieveResult,
              RunSummary, Snapshot, TurnFacts, Verdict, NodeOffer, Welcome, Parcel, ControlRequest,
              ControlReply, PolicyServer>(bytes);
}

// As they come over a socket that was closed behind them.
void read_frames(std::string_view bytes) {
  int ends[2];
  promise(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "there are sockets");
  bytes = bytes.substr(0, most_written);
  auto sent = ::send(ends[0], bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  promise(sent == static_cast<ssize_t>(bytes.size()), "a socket takes the input at once");
  ::shutdown(ends[0], SHUT_WR);
  while (auto frame = receive_frame(ends[1], 1000, size_t{1} << 20)) {
    promise(frame->descriptors.empty(), "the peer sent no descriptor");
    auto words = frame->words.asBytes();
    read_messages({reinterpret_cast<const char*>(words.begin()), words.size()});
  }
  ::close(ends[0]);
  ::close(ends[1]);
}

void read_spawn_request(std::string_view bytes) {
  spawn_protocol::reader from{bytes.data(), bytes.size()};
  from.number();
  for (auto n = from.count(); n > 0 && from.ok(); --n) {
    std::string_view text = from.text();
    promise(text.size() <= bytes.size(), "a text lies in its packet");
  }
  for (int i = 0; i < 8; ++i) from.count();
}

} // namespace

void frames(std::string_view bytes) {
  read_frames(bytes);
  read_messages(bytes);
  read_spawn_request(bytes);
}

} // namespace kernelmill::fuzz
