#include "storage/lineage/store_failure.hpp"

#include <cerrno>
#include <cstring>

#include <lmdb.h>

#include "storage/files.hpp"

namespace kernelmill {

error store_failure(int code, const char* verb, const std::string& where) {
  auto text = std::string{"failed to "} + verb + " the store " + where + ": ";
  switch (code) {
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_INVALID:
    case MDB_VERSION_MISMATCH:
    case MDB_INCOMPATIBLE:
    case MDB_BAD_DBI:
      return {fault_class::infrastructure, "store_damaged", text + mdb_strerror(code),
              "restore it from a copy"};
    case MDB_PANIC:
      return {fault_class::infrastructure, "store_damaged",
              text + "an earlier write failed and it could not be opened again",
              "check the disk, then resume"};
    case MDB_NOTFOUND:
      return {fault_class::configuration, "not_found", text + "it holds no store", {}};
    case MDB_READERS_FULL:
      return {fault_class::infrastructure, "store_busy",
              text + "all " + std::to_string(max_store_readers) + " readers are taken",
              "end some of the programs that read it"};
    case ENOMEM:
      return {fault_class::infrastructure, "out_of_memory", text + std::strerror(code),
              "raise the limit on address space (ulimit -v)"};
    default: break;
  }
  if (code < 0) return {fault_class::infrastructure, "store_failed", text + mdb_strerror(code), {}};
  auto result = file_error(code, verb, "the store " + where);
  if (result.category == "read_only") {
    result.category = "store_read_only";
    result.hint = "make the folder writable for this user or choose another (run.dir=PATH)";
  }
  return result;
}

} // namespace kernelmill
