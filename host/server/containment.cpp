#include "server/containment.hpp"

#include "base/work_mark.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::server {
namespace {

void tell_unknown(Logger& logger, const std::string& why) {
  logger.write(LogLevel::kError, "server.crashes_unknown", {{"reason", why}});
}

}  // namespace

Containment::Containment(const std::filesystem::path& data, plugins::VersionLedger& ledger,
                         Logger& logger)
    : logger_(logger), ledger_(ledger), history_(data) {
  const auto pending = history_.take_pending();
  if (!pending) tell_unknown(logger_, pending.error().message);
  if (pending) {
    crash_before_ = *pending;
    if (crash_before_) count(*crash_before_);
  }
  recorder_.emplace(history_.pending());
  if (recorder_->lacks_file())
    tell_unknown(logger_, history_.pending().native() + " cannot be written");
}

std::optional<runtime::AgentCrash> Containment::crash_of_work() const {
  if (!crash_before_) return std::nullopt;
  // The calls that may go on with durable work, if the library does not report with which. Clients'
  // requests run in other calls. on_start may take fibers up.
  constexpr std::array<std::string_view, 3> kCallsOfWork = {"offload", "on_result", "start"};
  const std::optional<WorkMark>& work = crash_before_->work;
  const bool may_be =
      work ? *work != WorkMark()
           : std::ranges::find(kCallsOfWork, crash_before_->call) != kCallsOfWork.end();
  if (!may_be) return std::nullopt;
  runtime::AgentCrash crash{.agent_class = crash_before_->agent_class,
                            .agent_digest = crash_before_->agent_digest,
                            .sender = 0,
                            .how = {}};
  if (work) {
    crash.sender = work->sender;
    crash.how.row = work->row;
  }
  return crash;
}

bool Containment::catch_up() {
  const bool is_written = ledger_.catch_up();
  // NOLINTNEXTLINE(bugprone-unchecked-optional-access): made by the constructor
  diagnosis::CrashRecorder& recorder = *recorder_;
  if (recorder.lacks_file() && history_.make_directory()) recorder.make_file();
  return is_written && !recorder.lacks_file();
}

void Containment::count(const diagnosis::CrashRecord& crash) const {
  tell(crash);
  const auto counted = ledger_.crashed(crash);
  if (!counted.written) tell_unknown(logger_, counted.written.error().message);
  if (!counted.is_quarantined) return;
  logger_.record(
      LogLevel::kError, "class.quarantined",
      {{"class", crash.agent_class},
       {"library", crash.library},
       {"sha256", crash.sha256},
       {"reason", crash.reason},
       {"advice",
        std::string(crash.reason == diagnosis::kHung ? "a call did not return"
                                                     : "it ended the server too often") +
            ", and it is not served: replace the library, or run `hearth quarantine release` for "
            "the class"}});
}

void Containment::tell(const diagnosis::CrashRecord& crash) const {
  if (crash.library.empty()) {
    logger_.write(LogLevel::kError, "server.crashed_before",
                  {{"reason", crash.reason}, {"pid", crash.pid}, {"stack", crash.stack}});
    return;
  }
  std::vector<LogField> fields = {{"reason", crash.reason},         {"pid", crash.pid},
                                  {"library", crash.library},       {"sha256", crash.sha256},
                                  {"generation", crash.generation}, {"class", crash.agent_class},
                                  {"agent", crash.agent},           {"event_kind", crash.call},
                                  {"method", crash.method}};
  if (crash.event_number != 0) fields.push_back({"call", crash.event_number});
  if (!crash.trace.empty()) fields.push_back({"trace", crash.trace});
  if (crash.work && crash.work->sender == 0 && crash.work->row < kOperationRows)
    fields.push_back({"job", crash.work->row});
  fields.push_back({"running_ms", crash.running_ms});
  fields.push_back({"stack", crash.stack});
  logger_.write(LogLevel::kError, "server.crashed_before", fields);
}

}  // namespace hearth::server
