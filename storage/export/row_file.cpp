#include "storage/export/row_file.hpp"

#include <optional>
#include <vector>

#include <zstd.h>

#include "messages/base/digest.hpp"
#include "storage/files.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::exports {

namespace {

constexpr int compression_level = 3;

struct free_stream {
  void operator()(ZSTD_CCtx* x) const { ZSTD_freeCCtx(x); }
};

} // namespace

struct row_file::state {
  std::optional<atomic_file> file;
  byte_taker stream;
  sha256_stream digest;
  std::unique_ptr<ZSTD_CCtx, free_stream> packer;
  std::vector<char> packed;
  written_file facts;

  explicit state(bool zstd) {
    if (!zstd) return;
    packer.reset(ZSTD_createCCtx());
    ZSTD_CCtx_setParameter(packer.get(), ZSTD_c_compressionLevel, compression_level);
    ZSTD_CCtx_setParameter(packer.get(), ZSTD_c_checksumFlag, 1);
    packed.resize(ZSTD_CStreamOutSize());
  }

  expected<void> write(std::string_view bytes) {
    digest.add(bytes);
    facts.bytes += bytes.size();
    return file ? file->append(bytes) : stream(bytes);
  }

  expected<void> pack(std::string_view bytes, ZSTD_EndDirective how) {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    for (bool done = false; !done;) {
      ZSTD_outBuffer out{packed.data(), packed.size(), 0};
      auto left = ZSTD_compressStream2(packer.get(), &out, &in, how);
      if (ZSTD_isError(left))
        return infrastructure_error("io_error", std::string{"failed to compress rows: "} +
                                                    ZSTD_getErrorName(left));
      if (auto ok = write({packed.data(), out.pos}); !ok) return ok;
      done = how == ZSTD_e_end ? left == 0 : in.pos == in.size;
    }
    return {};
  }
};

row_file::row_file(std::unique_ptr<state> x) : state_(std::move(x)) {
  // nop
}

row_file::row_file(row_file&&) noexcept = default;
row_file& row_file::operator=(row_file&&) noexcept = default;
row_file::~row_file() = default;

expected<row_file> row_file::create(const std::string& path, bool zstd) {
  auto file = atomic_file::create(path);
  KM_TRY(file);
  auto result = std::make_unique<state>(zstd);
  result->file = std::move(*file);
  return row_file{std::move(result)};
}

row_file row_file::stream(byte_taker to, bool zstd) {
  auto result = std::make_unique<state>(zstd);
  result->stream = std::move(to);
  return row_file{std::move(result)};
}

expected<void> row_file::append(const nlohmann::ordered_json& row) {
  auto line = json_line(row);
  line += '\n';
  ++state_->facts.rows;
  return state_->packer ? state_->pack(line, ZSTD_e_continue) : state_->write(line);
}

expected<written_file> row_file::finish() {
  if (state_->packer) KM_TRY(state_->pack({}, ZSTD_e_end));
  state_->facts.sha256 = state_->digest.hex();
  if (state_->file) KM_TRY(state_->file->commit());
  return state_->facts;
}

} // namespace kernelmill::exports
