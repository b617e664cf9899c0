#include "plugins/generation/probe_child.hpp"

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/file_descriptor.hpp"
#include "base/files.hpp"
#include "base/random.hpp"
#include "json/json.hpp"
#include "plugins/admission/process_guard.hpp"
#include "plugins/generation/plugin_generation.hpp"
#include "telemetry/stderr_logger.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <string_view>
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

class VerdictStream {
 public:
  VerdictStream() : descriptor_(::fcntl(3, F_GETFD) >= 0 ? 3 : STDOUT_FILENO) {}

  void step(std::string_view name) { write(Json{{"step", name}}); }
  void accepted() { write(Json{{"verdict", "accepted"}}); }
  void refused(const Finding& why) {
    write(Json{{"verdict", "refused"}, {"rule", why.rule}, {"reason", why.reason}});
  }

 private:
  // At once and unbuffered: the library may crash in the next instruction.
  void write(const Json& line) {
    const std::string text = dump_json(line) + "\n";
    std::string_view rest = text;
    while (!rest.empty()) {
      const ssize_t n = ::write(descriptor_, rest.data(), rest.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return;  // the parent is gone
      rest.remove_prefix(static_cast<std::size_t>(n));
    }
  }

  int descriptor_;
};

// Crashes are expected here: they leave no core file. The child ends if the server ends.
void be_a_probe() {
  keep_from_children();
  const rlimit no_core{.rlim_cur = 0, .rlim_max = 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // A sanitizer's runtime would turn these into an ordinary exit: the parent could not see a crash.
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP}) std::signal(signal, SIG_DFL);
}

Finding changed_process(const std::vector<std::string>& changes) {
  std::string text;
  for (const std::string& each : changes) text += (text.empty() ? "" : ", and ") + each;
  return finding(
      "L5", "after its init() " + text + ": that belongs to the server and to all libraries in it");
}

std::optional<Finding> try_library(const std::filesystem::path& library, VerdictStream& verdict) {
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
  const auto progress = [&verdict](std::string_view step) { verdict.step(step); };
  const ProcessGuard guard;
  auto generation = PluginGeneration::load(library, library.filename().native(),
                                           *std::move(inspection.note), services, progress);
  if (!generation) return generation.error();
  const auto changes = guard.changes();
  // Making a class asks it for its extensions, before any agent: that must not happen in the server
  // first.
  static_cast<void>((*generation)->make_classes());
  // The trial does not ask whether the library can be unloaded, only whether it survives the
  // attempt.
  static_cast<void>((*generation)->retire(progress));
  if (!changes.empty()) return changed_process(changes);
  return std::nullopt;
}

}  // namespace

int run_plugin_probe(const char* library) {
  be_a_probe();
  VerdictStream verdict;
  std::error_code failure;
  const std::filesystem::path path = std::filesystem::absolute(library, failure);
  const auto refused = failure ? finding("F7", failure.message()) : try_library(path, verdict);
  verdict.step("end");
  if (refused) {
    verdict.refused(*refused);
  } else {
    verdict.accepted();
  }
  return 0;
}

}  // namespace hearth::plugins
