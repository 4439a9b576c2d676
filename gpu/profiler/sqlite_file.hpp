#pragma once

// An SQLite database that a stranger made, read without trust in its bytes or its schema: a schema
// holds views, and a view is a program. What a query may touch, how long it works and how much
// memory it takes are bounded; nothing is written, and nothing beside the file is opened.

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "messages/error.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace kernelmill {

/// Of one database, for all of its queries together.
struct sqlite_budget {
  uint64_t steps = 4'000'000'000; ///< of SQLite's virtual machine
  unsigned seconds = 60;          ///< one step may take long: a function of a view
};

/// The rows of one query. Lives no longer than its database.
class sqlite_rows {
public:
  /// Goes to the next row. False at the end, and when the query failed.
  bool next();

  /// The columns of the current row, in the order that they were asked for. Nothing of another
  /// type: SQLite lets each cell have any.
  std::optional<int64_t> integer(int column) const;
  std::optional<double> number(int column) const;
  std::string text(int column, size_t most) const;

private:
  friend class sqlite_file;
  struct closer {
    void operator()(sqlite3_stmt* x) const;
  };
  sqlite3* db_ = nullptr;
  std::string* trouble_ = nullptr;
  std::unique_ptr<sqlite3_stmt, closer> statement_;
};

/// Thread safety: one thread at a time.
class sqlite_file {
public:
  /// A wrong file shows here or when it is first read.
  static expected<sqlite_file> open(const std::string& path, sqlite_budget budget = {});

  sqlite_file(sqlite_file&&) noexcept;
  sqlite_file& operator=(sqlite_file&&) noexcept;
  ~sqlite_file();

  /// Columns of a table or view, in small letters. Empty: there is none, or it cannot be read.
  std::set<std::string, std::less<>> columns(std::string_view table);

  /// All rows of a table or view. A column that it lacks is NULL in each row: versions of tools
  /// differ in theirs. The names are ours, never the file's.
  sqlite_rows select(std::string_view table, const std::vector<std::string_view>& names);

  /// The same of the rows in which the integer column `key` has this value.
  sqlite_rows select(std::string_view table, const std::vector<std::string_view>& names,
                     std::string_view key, int64_t value);

  /// What SQLite said when a query failed first. Empty: none did.
  const std::string& trouble() const;

private:
  struct state;
  explicit sqlite_file(std::unique_ptr<state> x);
  sqlite_rows prepare(const std::string& sql);
  std::unique_ptr<state> state_;
};

/// Whether a file begins as SQLite's do.
bool is_sqlite(std::string_view first_bytes);

} // namespace kernelmill
