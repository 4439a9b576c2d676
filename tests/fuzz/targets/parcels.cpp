// Parcels, offers and commands that come from other machines. A parcel is checked before a byte of
// it is believed, and nothing of it lands outside of the shelf.

#include <filesystem>

#include "actors/cluster/parcels.hpp"
#include "launch/config/address.hpp"
#include "messages/base/digest.hpp"
#include "tests/fuzz/support.hpp"
#include "tests/fuzz/targets.hpp"

namespace kernelmill::fuzz {

namespace {

namespace fs = std::filesystem;

const std::string& shelf_folder() {
  static const std::string folder = [] {
    auto path = scratch_folder() + "/around/shelf";
    fs::create_directories(path);
    return path;
  }();
  return folder;
}

void put_on_shelf(wire::Parcel::Reader parcel) {
  parcel_shelf shelf{shelf_folder()};
  try {
    for (const auto& place : {shelf.task(parcel), shelf.library(parcel)}) {
      check(place);
      if (place) promise(place->starts_with(shelf_folder()), "what came lies on the shelf");
    }
  } catch (const kj::Exception&) {
    // Bytes that are no message; the actor that reads them answers for it.
  }
  auto around = fs::path{shelf_folder()}.parent_path();
  promise(std::distance(fs::directory_iterator{around}, {}) == 1, "nothing lands beside the shelf");
  std::error_code ignored;
  for (const auto& one : fs::directory_iterator{shelf_folder()})
    fs::remove_all(one.path(), ignored);
}

// A parcel made of the input's pieces, with digests that are right where the input says so.
Message<wire::Parcel> parcel_of(std::string_view bytes) {
  auto kind = take_byte(bytes);
  auto lines = lines_of(bytes, 6);
  lines.resize(6);
  return build<wire::Parcel>([&](wire::Parcel::Builder x) {
    auto library = lines[0];
    x.setLibrarySha256((kind & 1) != 0 ? sha256_hex(library) : lines[1]);
    x.setLibrary({reinterpret_cast<const kj::byte*>(library.data()), library.size()});
    x.setTaskId(lines[2]);
    x.setTaskDigest(sha256_hex(lines[3]));
    auto files = x.initTaskFiles(2);
    files[0].setPath(lines[4]);
    files[0].setBytes({reinterpret_cast<const kj::byte*>(lines[5].data()), lines[5].size()});
    files[1].setPath("task.json");
  });
}

} // namespace

void parcels(std::string_view bytes) {
  auto message = Message<wire::Parcel>::from_bytes(bytes.data(), bytes.size());
  check(message);
  if (message) put_on_shelf(*message->open());
  put_on_shelf(*parcel_of(bytes).open());
  read_message<wire::NodeOffer>(bytes);
  read_message<wire::ControlRequest>(bytes);
}

} // namespace kernelmill::fuzz
