#include "plugins/generation/probe_child.hpp"

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/random.hpp"
#include "json/json.hpp"
#include "plugins/admission/process_guard.hpp"
#include "plugins/admission/trial_process.hpp"
#include "plugins/generation/plugin_generation.hpp"
#include "telemetry/stderr_logger.hpp"

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace hearth::plugins {
namespace {

// A probe has no agents: every call for an agent returns HEARTH_E_GONE, from the same code as in
// the server.
class NoAgents final : public extensions::AgentDirectory {
 public:
  Found find(runtime::AgentHandle /*handle*/) override { return {}; }
  bool post(runtime::AgentHandle /*handle*/, std::uint64_t /*token*/) override { return false; }
};

void tell_step(std::string_view name) {
  write_verdict(Json{{"step", name}});
}

Finding changed_process(const std::vector<std::string>& changes) {
  std::string text;
  for (const std::string& each : changes) text += (text.empty() ? "" : ", and ") + each;
  return finding(
      "L5", "after its init() " + text + ": that belongs to the server and to all libraries in it");
}

std::optional<Finding> try_library(const std::filesystem::path& library) {
  const auto bytes = read_file(library, kMaxLibraryBytes);
  if (!bytes) return finding("F7", bytes.error().message);
  Inspection inspection = inspect_library(std::as_bytes(std::span(*bytes)));
  if (const Finding* refusal = inspection.refusal()) return *refusal;
  HEARTH_ASSERT(inspection.note.has_value(), "what nothing refuses has a note");

  NoAgents agents;
  SystemClock clock;
  SystemRandom random;
  const auto logger = make_stderr_logger(LogLevel::kInfo, LogFormat::kHuman);
  const extensions::AbiServices services{
      .agents = agents, .clock = clock, .random = random, .logger = *logger};
  const ProcessGuard guard;
  auto generation = PluginGeneration::load(library, library.filename().native(),
                                           *std::move(inspection.note), services, tell_step);
  if (!generation) return generation.error();
  const auto changes = guard.changes();
  // Making a class asks it for its extensions, before any agent: that must not happen in the server
  // first.
  static_cast<void>((*generation)->make_classes());
  // The trial does not ask whether the library can be unloaded, only whether it survives the
  // attempt.
  static_cast<void>((*generation)->retire(tell_step));
  if (!changes.empty()) return changed_process(changes);
  return std::nullopt;
}

}  // namespace

int run_plugin_probe(const char* library) {
  be_a_trial();
  std::error_code failure;
  const std::filesystem::path path = std::filesystem::absolute(library, failure);
  const auto refused = failure ? finding("F7", failure.message()) : try_library(path);
  tell_step("end");
  write_verdict(
      refused ? Json{{"verdict", "refused"}, {"rule", refused->rule}, {"reason", refused->reason}}
              : Json{{"verdict", "accepted"}});
  return 0;
}

}  // namespace hearth::plugins
