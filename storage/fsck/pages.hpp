#pragma once

// Reads a store's data.mdb without LMDB, which trusts its own pages: a branch that points nowhere would end
// the process. Every offset is checked here, what cannot be followed is named, and the rest is read.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "messages/error.hpp"

namespace kernelmill {

/// Thread safety: none. The file must not be written meanwhile: hold the store's writer.lock.
class data_pages {
public:
  /// Errors: those of files. A file that is none of LMDB's is not an error: it has flaws and no trees.
  static expected<data_pages> open(const std::string& path);

  data_pages(data_pages&&) noexcept;
  data_pages& operator=(data_pages&&) noexcept;
  ~data_pages();

  /// Keys and values live as long as this object.
  using visitor = std::function<void(std::string_view key, std::string_view value)>;

  /// Visits what the named database's tree leads to, in the order of its keys.
  void visit(const std::string& database, const visitor& visit);

  /// Visits every entry of every page that looks like a leaf, in or out of a tree: also of pages that are
  /// free, or whose branch is damaged. What it finds may be old, or of a transaction that never ended.
  void visit_leaves(const visitor& visit) const;

  /// What is wrong with pages that were read so far, for people.
  const std::vector<std::string>& flaws() const noexcept;

private:
  struct state;
  explicit data_pages(std::unique_ptr<state> x);
  std::unique_ptr<state> state_;
};

} // namespace kernelmill
