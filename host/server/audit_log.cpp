#include "server/audit_log.hpp"

#include "base/escape.hpp"
#include "json/json.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

namespace hearth::server {
namespace {

Json value_of(const LogField& field) {
  return std::visit(
      [](const auto& value) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string_view>) {
          return std::string(cut_text(value, AuditLog::kMaxDetail / 4));
        } else {
          return value;
        }
      },
      field.value);
}

std::string text_of(const LogField& field) {
  const auto* const text = std::get_if<std::string_view>(&field.value);
  return text == nullptr ? std::string() : std::string(cut_text(*text, AuditLog::kMaxDetail / 4));
}

constexpr std::string_view kAgentsOwn = "agent.audit";

storage::AuditKind kind_of(std::string_view event, std::string_view actor) {
  using storage::AuditKind;
  if (event.starts_with("admin.") || actor == "administrator" || actor == "console")
    return AuditKind::kAdministrators;
  for (const std::string_view of_users : {"object.", "alarm.", "agent."}) {
    if (event.starts_with(of_users)) return AuditKind::kUsers;
  }
  return AuditKind::kServer;
}

// JSON already, and bounded by hearth.audit/1.
void add_agents_own(const LogField& field, Json& detail) {
  const auto* const text = std::get_if<std::string_view>(&field.value);
  if (text == nullptr || text->empty()) return;
  if (auto json = parse_json(*text)) detail["detail"] = *std::move(json);
}

storage::AuditEntry entry_of(std::string_view event, std::span<const LogField> fields,
                             std::int64_t now_ms) {
  storage::AuditEntry entry;
  entry.at_ms = now_ms;
  entry.event = audit_name(event);
  entry.actor = event.starts_with("admin.") ? "administrator" : "server";
  Json detail = Json::object();
  for (const LogField& field : fields) {
    if (field.key == "class") {
      entry.agent_class = text_of(field);
    } else if (field.key == "agent") {
      entry.agent = text_of(field);
    } else if (field.key == "actor") {
      entry.actor = text_of(field);
    } else if (event == kAgentsOwn && field.key == "detail") {
      add_agents_own(field, detail);
    } else {
      detail[std::string(field.key)] = value_of(field);
    }
  }
  entry.kind = kind_of(event, entry.actor);
  if (!detail.empty()) entry.detail = dump_json(detail);
  // Too long together: leaves all fields out, since half a JSON document is of no use.
  if (entry.detail.size() > AuditLog::kMaxDetail) entry.detail = R"({"cut":true})";
  return entry;
}

}  // namespace

std::string audit_name(std::string_view event) {
  std::string name;
  bool begins_word = true;
  for (const char each : event) {
    if (each == '.' || each == '_') {
      begins_word = true;
      continue;
    }
    const bool is_lower = each >= 'a' && each <= 'z';
    name += begins_word && is_lower ? static_cast<char>(each - 'a' + 'A') : each;
    begins_word = false;
  }
  return name;
}

AuditLog::AuditLog(Logger& next, const Clock& clock, config::AuditConfig options, Metrics& metrics)
    : next_(next),
      clock_(clock),
      options_(std::move(options)),
      lost_(metrics.counter("hearth_audit_lost_total",
                            "Entries of the audit log that could not be written.")) {
  if (!options_.file.empty()) file_.emplace(options_.file);
}

AuditLog::~AuditLog() {
  stop();
}

void AuditLog::open(const std::filesystem::path& store) {
  if (options_.max_entries > 0) store_.emplace(store);
  const MutexLock lock(mutex_);
  is_open_ = true;
  begin_writing();
}

void AuditLog::stop() {
  writer_.stop();
  write_waiting();  // the writer's thread has ended, so this thread may write
}

void AuditLog::keep(std::string_view event, std::span<const LogField> fields) {
  if (options_.max_entries == 0 && options_.file.empty()) return;
  storage::AuditEntry entry = entry_of(event, fields, unix_millis(clock_.wall_now()));
  {
    const MutexLock lock(mutex_);
    if (waiting_.size() < kMaxWaiting) {
      waiting_.push_back(std::move(entry));
      begin_writing();
      return;
    }
  }
  lose(1, "too many wait for the disk");
}

void AuditLog::begin_writing() {
  if (!is_open_ || is_writing_) return;
  is_writing_ = writer_.run([this](bool cancelled) {
    if (!cancelled) write_waiting();
  });
}

bool AuditLog::read(storage::AuditQuery query, std::function<void(Page)> answer) {
  return writer_.run([this, query = std::move(query), answer = std::move(answer)](bool cancelled) {
    if (cancelled) return answer(Error{Errc::kClosing, "the server is shutting down"});
    if (!store_) return answer(std::vector<storage::AuditEntry>());
    write_waiting();
    // trim() runs only now and then: skip entries that are too old.
    storage::AuditQuery kept = query;
    kept.since_ms = std::max(query.since_ms.value_or(0), oldest_ms());
    try {
      answer(store_->read(kept));
    } catch (const StorageError& failure) {
      next_.write_limited(LogLevel::kError, "audit.unreadable", {},
                          {{"reason", std::string_view(failure.what())}});
      answer(Error{Errc::kUnavailable, "the audit log cannot be read; the log says why"});
    }
  });
}

// ---- on the writer's thread ---------------------------------------------------------------------

void AuditLog::write_waiting() {
  for (;;) {
    std::vector<storage::AuditEntry> entries;
    {
      const MutexLock lock(mutex_);
      if (!is_open_) return;
      entries.swap(waiting_);
      is_writing_ = !entries.empty();
      if (entries.empty()) return;
    }
    store(entries);
  }
}

void AuditLog::store(std::vector<storage::AuditEntry>& entries) {
  if (store_) {
    try {
      store_->append(entries);
      since_trim_ += entries.size();
      if (since_trim_ >= kTrimEvery) trim(*store_);
    } catch (const StorageError& failure) {
      lose(entries.size(), failure.what());
    }
  }
  if (!file_) return;
  if (const auto written = file_->append(entries); !written)
    lose(entries.size(), written.error().message);
}

std::int64_t AuditLog::oldest_ms() const {
  return unix_millis(clock_.wall_now() - options_.keep);
}

void AuditLog::trim(storage::AuditStore& store) {
  since_trim_ = 0;
  store.trim(options_.max_entries, oldest_ms());
}

void AuditLog::lose(std::size_t entries, std::string_view reason) {
  lost_.add(entries);
  next_.write_limited(LogLevel::kError, "audit.lost", {},
                      {{"entries", entries}, {"reason", reason}});
}

}  // namespace hearth::server
