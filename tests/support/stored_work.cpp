#include "support/stored_work.hpp"

#include "support/built.hpp"

#include <sqlite3.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>

namespace hearth::testing {

void make_stored_work(const std::filesystem::path& path, const std::string& more) {
  const std::ifstream file(built::sources() / "tests" / "support" / "stored_work.sql");
  std::filesystem::remove(path);
  std::ostringstream sql;
  sql << "PRAGMA page_size=4096; PRAGMA journal_mode=WAL;" << file.rdbuf() << more;
  sqlite3* opened = nullptr;
  const int status = sqlite3_open(path.c_str(), &opened);
  const std::unique_ptr<sqlite3, int (*)(sqlite3*)> connection(opened, &sqlite3_close);
  if (status != SQLITE_OK ||
      sqlite3_exec(connection.get(), sql.str().c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    throw std::runtime_error(sqlite3_errmsg(connection.get()));
}

}  // namespace hearth::testing
