#include "app/quarantine_command.hpp"

#include "app/quarantine.hpp"
#include "base/escape.hpp"
#include "config/diagnostic.hpp"
#include "config/parse.hpp"
#include "protocol/class_segment.hpp"
#include "storage/data_directory.hpp"

#include <chrono>
#include <ctime>
#include <string>
#include <system_error>

namespace hearth::app {
namespace {

constexpr std::size_t kMaxShown = 4096;

Answer failed(const std::string& why) {
  return Answer{kExitFailed, "hearth: " + why + "\n"};
}

// "2026-01-02T12:00:00Z"
std::string moment(std::int64_t unix_ms) {
  const std::time_t seconds = unix_ms / 1000;
  std::tm parts{};
  char text[32] = "";
  if (::gmtime_r(&seconds, &parts) != nullptr)
    (void)std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string list(const Quarantine& quarantine) {
  if (quarantine.all().empty()) return "no class is in quarantine\n";
  std::string text;
  for (const QuarantinedClass& each : quarantine.all()) {
    std::string line = each.agent_class + "  since " + moment(each.since_ms) + "  " + each.reason +
                       " in " + each.call + "  " + each.library + "  sha256 " + each.sha256;
    append_escaped(text, line, EscapeStyle::kHuman);
    text += '\n';
  }
  return text;
}

Answer release(const QuarantineCommand& command, const std::filesystem::path& data) {
  // Nobody else has it, and nobody takes it, until the file is written.
  const auto held = storage::DataDirectory::open(data);
  if (!held) return failed(held.error().message);
  auto quarantine = Quarantine::load(data);
  if (!quarantine) return failed(quarantine.error().message);
  const std::string name = quote_text(command.release, kMaxShown);
  // As URLs spell it, too: `ChatRoom` and `chat-room` are one class here.
  const std::string segment = protocol::kebab_case(command.release);
  std::string found;
  for (const QuarantinedClass& each : quarantine->all()) {
    if (protocol::kebab_case(each.agent_class) == segment) found = each.agent_class;
  }
  if (!quarantine->release(found)) return failed("the class " + name + " is not in quarantine");
  if (const auto saved = quarantine->save(); !saved) return failed(saved.error().message);
  return Answer{kExitClean, "the class " + name + " is served from the next start on\n"};
}

}  // namespace

Answer answer(const QuarantineCommand& command) {
  std::filesystem::path data;
  if (command.data) {
    data = std::filesystem::absolute(*command.data);
  } else {
    const config::LoadResult loaded = config::load_config(command.config);
    if (!loaded) {
      std::string mistakes;
      for (const config::Diagnostic& mistake : loaded.error())
        mistakes += to_string(mistake) + "\n";
      return Answer{kExitBadUsage, mistakes};
    }
    data = loaded->server.data;
  }
  std::error_code failure;
  if (!std::filesystem::is_directory(data, failure))
    return failed("there is no data directory " + quote_text(data.native(), kMaxShown));
  if (!command.release.empty()) return release(command, data);
  const auto quarantine = Quarantine::load(data);
  if (!quarantine) return failed(quarantine.error().message);
  return Answer{kExitClean, list(*quarantine)};
}

}  // namespace hearth::app
