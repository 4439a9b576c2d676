// Writes the seeds of the targets whose input is not typed by hand: messages, frames, records, a
// store.
//   fuzz_seeds FOLDER      into FOLDER/frames, FOLDER/parcels and FOLDER/store
// The files in corpus/ were made by it; it is run again when a schema grows.

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include "actors/cluster/parcels.hpp"
#include "messages/base/digest.hpp"
#include "messages/build.capnp.h"
#include "messages/cluster.capnp.h"
#include "messages/evaluate.capnp.h"
#include "messages/identity.hpp"
#include "messages/lineage.capnp.h"
#include "messages/policy.capnp.h"
#include "storage/artifacts.hpp"
#include "storage/lineage/store.hpp"

namespace {

namespace fs = std::filesystem;
using namespace kernelmill;

void write(const fs::path& path, std::string_view bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream out{path, std::ios::binary};
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

template <class T>
std::string_view bytes_of(const Message<T>& x) {
  return {x.data(), x.size()};
}

Message<wire::Record> turn_record() {
  return build<wire::Record>([](wire::Record::Builder record) {
    auto x = record.initTurn();
    x.setTurnId(sha256_hex("turn"));
    auto episode = x.initEpisode();
    episode.setRun("seed");
    episode.setGroup(1);
    episode.setMember(2);
    auto completion = x.initCompletion();
    completion.setModel("m");
    completion.initTokenIds(3).set(0, 5);
    completion.initLogprobs(3).set(0, -0.5f);
  });
}

Message<wire::Record> run_record(const char* state) {
  return build<wire::Record>([&](wire::Record::Builder record) {
    auto x = record.initRun();
    x.setRun("seed");
    x.setState(state);
  });
}

// magic, kind, bytes, words
std::string frame_of(uint32_t kind, std::string_view words) {
  const uint32_t head[2] = {0x4b4d4631, kind};
  uint64_t size = words.size();
  std::string result(reinterpret_cast<const char*>(head), sizeof head);
  result.append(reinterpret_cast<const char*>(&size), sizeof size).append(words);
  return result;
}

void write_frames(const fs::path& folder) {
  auto built = build<wire::BuildResult>([](wire::BuildResult::Builder x) {
    x.setCompiled(true);
    x.setLog("kernel.cpp:1:1: warning: unused");
    x.setLibrarySha256(sha256_hex("library"));
  });
  auto evaluated = build<wire::EvaluateResult>([](wire::EvaluateResult::Builder x) {
    x.setCorrect(true);
    x.initCases(2)[0].setName("small");
    x.initTiming().setClock("outside");
    x.setDevice("cpu");
  });
  auto asked = build<wire::CompletionRequest>([](wire::CompletionRequest::Builder x) {
    x.setSession("run/g3.e1");
    x.initMessages(2)[1].setContent("write a kernel");
    x.initSampling().initStop(1).set(0, "</KERNEL>");
  });
  write(folder / "build_result", bytes_of(built));
  write(folder / "evaluate_result", bytes_of(evaluated));
  write(folder / "completion_request", bytes_of(asked));
  write(folder / "turn", bytes_of(turn_record()));
  write(folder / "two_frames", frame_of(1, bytes_of(built)) + frame_of(2, bytes_of(evaluated)));
}

void write_parcels(const fs::path& folder) {
  auto parcel = build<wire::Parcel>([](wire::Parcel::Builder x) {
    x.setTaskId("native/row_sum");
    x.setTaskDigest(sha256_hex("task"));
    auto files = x.initTaskFiles(2);
    files[0].setPath("task.json");
    files[1].setPath("prompt.md");
    x.setLibrarySha256(sha256_hex("elf"));
    x.setLibrary({reinterpret_cast<const kj::byte*>("elf"), 3});
  });
  write(folder / "parcel", bytes_of(parcel));
  auto offer = build<wire::NodeOffer>([](wire::NodeOffer::Builder x) {
    x.setName("../x");
    x.setBackend("cuda");
    x.initSlots(1).set(0, "gpu0 (NVIDIA H200)");
  });
  write(folder / "offer", bytes_of(offer));
  write(folder / "lines", "\x01"
                          "elf\nnot a digest\nnative/row_sum\ntask\ntask.json\n{}\n");
}

bool write_store(const fs::path& folder) {
  auto place = fs::temp_directory_path() / ("kernelmill-seeds-" + std::to_string(::getpid()));
  {
    auto opened = store::open({place.string(), false, uint64_t{1} << 20, false});
    if (!opened || !opened->commit({run_record("running"), turn_record(), run_record("finished")}))
      return false;
  }
  artifact_store artifacts{(place / "artifacts").string()};
  std::string text(6000, 'x');
  if (!artifacts.put(sha256_hex(text), text)) return false;
  fs::create_directories(folder);
  fs::copy_file(place / "data.mdb", folder / "data.mdb", fs::copy_options::overwrite_existing);
  for (const auto& entry : fs::recursive_directory_iterator{place / "artifacts"})
    if (entry.is_regular_file())
      fs::copy_file(entry.path(), folder / "artifact.zst", fs::copy_options::overwrite_existing);
  write(folder / "turn", bytes_of(turn_record()));
  write(folder / "run", bytes_of(run_record("running")));
  fs::remove_all(place);
  return true;
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: fuzz_seeds FOLDER\n", stderr);
    return 2;
  }
  fs::path root = argv[1];
  write_frames(root / "frames");
  write_parcels(root / "parcels");
  return write_store(root / "store") ? 0 : 1;
}
