#include "server/expected_classes.hpp"

#include "base/error.hpp"
#include "base/random.hpp"
#include "protocol/class_segment.hpp"
#include "storage/directory.hpp"

#include <string>
#include <string_view>
#include <utility>

namespace hearth::server {
namespace {

// A class that was never served has agents if host.db was lost, with its objects, and `hearth
// repair` has listed them.
void list_objects(storage::Directory& directory, const std::string& segment) {
  constexpr std::size_t kPage = 1000;
  SystemRandom random;
  for (const std::string& name : directory.classes()) {
    if (protocol::kebab_case(name) != segment) continue;
    std::string after;
    for (auto page = directory.list(name, after, kPage); !page.empty();
         page = directory.list(name, after, kPage)) {
      after = page.back().key.name;
      for (const auto& [key, created_at_ms] : page) {
        if (!key.is_sub_agent()) directory.record_object(key, make_uuid(random), created_at_ms);
      }
    }
  }
}

// Any thread may serve a class, so each call opens its own connection.
void write_down(const storage::DataDirectory& data, const std::string& segment, bool is_object,
                Logger& logger) {
  try {
    storage::Directory directory(data.directory_path(), data.directory_vfs());
    if (is_object) list_objects(directory, segment);
    directory.record_served(segment);
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
  classes.remember(known, [&classes, &data, &logger](const std::string& segment) {
    write_down(data, segment, classes.last_settings(segment).is_object, logger);
  });
}

}  // namespace hearth::server
