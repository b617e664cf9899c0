#include "server/expected_classes.hpp"

#include "base/error.hpp"
#include "protocol/class_segment.hpp"
#include "storage/directory.hpp"

#include <string>
#include <string_view>
#include <utility>

namespace hearth::server {
namespace {

// Any thread may serve a class, so each call opens its own connection.
void write_down(const storage::DataDirectory& data, const std::string& segment, Logger& logger) {
  try {
    storage::Directory(data.directory_path(), data.directory_vfs()).record_served(segment);
  } catch (const StorageError& failure) {  // only a status code depends on it
    logger.write(
        LogLevel::kWarn, "class.not_recorded",
        {{"class", segment},
         {"error", std::string_view(failure.what())},
         {"next", "without its library a later server may say that the class never had one"}});
  }
}

}  // namespace

void expect_classes(runtime::ClassRegistry& classes, const storage::DataDirectory& data,
                    const config::ClassConfigs& settings, Logger& logger) {
  storage::Directory directory(data.directory_path(), data.directory_vfs());
  for (const std::string& name : directory.classes())
    classes.expect_again(protocol::kebab_case(name));
  for (const auto& [name, its] : settings) classes.expect(protocol::kebab_case(name), its.settings);
  runtime::ClassRegistry::Segments known;
  for (std::string& segment : directory.served_classes()) known.insert(std::move(segment));
  classes.remember(
      known, [&data, &logger](const std::string& segment) { write_down(data, segment, logger); });
}

}  // namespace hearth::server
