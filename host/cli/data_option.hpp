#pragma once
// --config and --data of the commands that work on a data directory without a server.

#include "cli/command_line.hpp"

#include <filesystem>
#include <optional>

namespace hearth::cli {

// The data directory that `--data` names, or otherwise the server file. It exists, if it must.
//   Failure  `mistake`, the command's answer: a mistake in the server file, or there is no such
//            directory.
struct FoundData {
  std::filesystem::path data;
  std::optional<Answer> mistake;
};
[[nodiscard]] FoundData find_data(const std::optional<std::filesystem::path>& config,
                                  const std::optional<std::filesystem::path>& data,
                                  bool must_exist = true);

// The answer of a command that failed.
[[nodiscard]] Answer failed_answer(const std::string& why);

}  // namespace hearth::cli
