#include "server/containment.hpp"

#include <utility>

namespace hearth::server {
namespace {

void tell_unknown(Logger& logger, const std::string& why) {
  logger.write(LogLevel::kError, "server.crashes_unknown", {{"reason", why}});
}

plugins::Quarantine load_quarantine(const std::filesystem::path& data, Logger& logger) {
  auto quarantine = plugins::Quarantine::load(data);
  if (quarantine) return *std::move(quarantine);
  tell_unknown(logger, quarantine.error().message);
  return plugins::Quarantine::none(data);
}

}  // namespace

Containment::Containment(const std::filesystem::path& data, Logger& logger)
    : logger_(logger), history_(data), quarantine_(load_quarantine(data, logger)) {
  const auto pending = history_.take_pending();
  if (!pending) tell_unknown(logger_, pending.error().message);
  if (pending) before_ = *pending;
  if (before_) {
    const diagnosis::CrashRecord& crash = *before_;
    tell(crash);
    if (quarantine_.count(crash)) {
      logger_.write(LogLevel::kError, "class.quarantined",
                    {{"class", crash.agent_class},
                     {"library", crash.library},
                     {"sha256", crash.sha256},
                     {"reason", crash.reason},
                     {"advice", std::string(crash.reason == diagnosis::kHung
                                                ? "a call did not return"
                                                : "it ended the server too often") +
                                    ", and it is not served: replace the library, or run "
                                    "`hearth quarantine release` for the class"}});
    }
    const auto saved = quarantine_.save();
    if (!saved) tell_unknown(logger_, saved.error().message);
    is_saved_ = saved.has_value();
  }
  recorder_.emplace(history_.pending());
  if (recorder_->lacks_file())
    tell_unknown(logger_, history_.pending().native() + " cannot be written");
}

bool Containment::catch_up() {
  const MutexLock one_at_a_time(releasing_);
  if (!is_saved_) is_saved_ = current().save().has_value();
  // NOLINTNEXTLINE(bugprone-unchecked-optional-access): made by the constructor
  diagnosis::CrashRecorder& recorder = *recorder_;
  if (recorder.lacks_file() && history_.make_directory()) recorder.make_file();
  return is_saved_ && !recorder.lacks_file();
}

std::string Containment::refusal(const runtime::AgentClass& agent_class) const {
  const MutexLock lock(mutex_);
  if (!quarantine_.holds(agent_class.name(), agent_class.sha256())) return {};
  return "the class " + std::string(agent_class.name()) +
         " is in quarantine: its code ended the server";
}

std::string Containment::refusal_of_library(const std::string& sha256) const {
  const MutexLock lock(mutex_);
  const plugins::QuarantinedClass* const held = quarantine_.find_barred(sha256);
  if (held == nullptr) return {};
  return "it is in quarantine and not loaded: it ended the server (" + held->reason + " in " +
         held->call + "). Replace it, or run `hearth quarantine release " + held->agent_class + "`";
}

std::vector<plugins::QuarantinedClass> Containment::quarantined() const {
  const MutexLock lock(mutex_);
  return quarantine_.all();
}

plugins::Quarantine Containment::current() const {
  const MutexLock lock(mutex_);
  return quarantine_;
}

void Containment::replace(plugins::Quarantine quarantine) {
  const MutexLock lock(mutex_);
  quarantine_ = std::move(quarantine);
}

Result<std::vector<plugins::QuarantinedClass>> Containment::release(const std::string& given) {
  const MutexLock one_at_a_time(releasing_);
  plugins::Quarantine after = current();
  auto released = plugins::release_class(after, given);
  if (!released) return released.error();
  if (const auto saved = after.save(); !saved) return saved.error();
  is_saved_ = true;
  replace(std::move(after));
  logger_.write(LogLevel::kInfo, "class.released",
                {{"class", released->front().agent_class},
                 {"library", released->front().library},
                 {"versions", released->size()}});
  return released;
}

void Containment::tell(const diagnosis::CrashRecord& crash) const {
  if (crash.library.empty()) {
    logger_.write(LogLevel::kError, "server.crashed_before",
                  {{"reason", crash.reason}, {"pid", crash.pid}, {"stack", crash.stack}});
    return;
  }
  logger_.write(LogLevel::kError, "server.crashed_before",
                {{"reason", crash.reason},
                 {"pid", crash.pid},
                 {"library", crash.library},
                 {"sha256", crash.sha256},
                 {"generation", crash.generation},
                 {"class", crash.agent_class},
                 {"agent", crash.agent},
                 {"call", crash.call},
                 {"method", crash.method},
                 {"running_ms", crash.running_ms},
                 {"stack", crash.stack}});
}

}  // namespace hearth::server
