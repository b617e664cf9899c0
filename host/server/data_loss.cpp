#include "server/data_loss.hpp"

#include "base/error.hpp"
#include "storage/wal_damage.hpp"

#include <atomic>
#include <memory>
#include <string_view>

namespace hearth::server {

std::function<bool()> loss_of(const storage::DataDirectory& data, Logger& logger) {
  return [&data, &logger, told = std::make_shared<std::atomic<bool>>(false)] {
    if (!data.is_lost()) return false;
    try {
      data.check_not_lost();
      return false;
    } catch (const StorageError& failure) {
      if (!told->exchange(true)) {
        logger.write(LogLevel::kError, "server.data_lost",
                     {{"reason", std::string_view(failure.what())}});
      }
      return true;
    }
  };
}

std::string damage_of(const storage::DataDirectory& data, Logger& logger) {
  const std::string damage = storage::damage_of_wal(data.directory_path());
  if (damage.empty()) return {};
  const std::string file = data.directory_path().native() + "-wal";
  logger.write(LogLevel::kError, "server.directory_damaged",
               {{"file", file},
                {"reason", damage},
                {"advice",
                 "agents' own data is whole, but some may be missing in lists, and not wake for "
                 "their work: stop the server, and run `hearth repair`"}});
  return " (" + file + ": " + damage + ")";
}

}  // namespace hearth::server
