#include "server/data_loss.hpp"

#include "base/error.hpp"

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

}  // namespace hearth::server
