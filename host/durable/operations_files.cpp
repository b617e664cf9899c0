// The files of operations, which are removed with their rows.
#include "durable/operations.hpp"

#include <filesystem>
#include <system_error>

namespace hearth::durable {

namespace fs = std::filesystem;

// An id is a hash in hexadecimal digits, so no text from outside is part of a path.
Result<std::string> Operations::path_of(std::string_view id) {
  const Running* const running = find_running(id);
  if (running == nullptr) return Error{Errc::kNotFound, "no operation of this id runs"};
  const fs::path directory = database_.files_directory();
  std::error_code failure;
  if (fs::create_directory(directory, failure))
    fs::permissions(directory, fs::perms::owner_all, failure);
  if (failure)
    return Error{Errc::kUnavailable, "the directory of the agent's files cannot be made"};
  return (directory / running->id).native();
}

// Removes the files before the commit. If the commit fails, the row stays, but it is settled and
// needs no file. A file whose row was removed first could stay for ever.
std::int64_t Operations::remove_rows(std::string_view sql, std::span<const storage::Param> params) {
  std::vector<std::string> gone;
  {
    storage::Rows rows = database_.kept(sql).query(params);
    while (rows.next()) gone.emplace_back(rows.text(0));
  }
  std::error_code ignored;
  if (const fs::path directory = database_.files_directory(); fs::exists(directory, ignored)) {
    for (const std::string& id : gone) fs::remove(directory / id, ignored);
  }
  return static_cast<std::int64_t>(gone.size());
}

}  // namespace hearth::durable
