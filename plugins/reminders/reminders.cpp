// Reminders at a time: after a delay, at a date, or by the local clock of a time zone.
//
//   methods   remind_in(text, seconds) -> id                    0.5 is half a second
//             remind_at(text, unix_ms) -> id
//             remind_when(text, cron, time_zone = UTC) -> id    "0 9 * * mon-fri", "Europe/Berlin"
//             list() -> [{"id", "text", "type", "next", "paused"}]
//             cancel(id), pause(id), resume(id) -> true if it exists
//             fired() -> [{"text", "due", "at"}], oldest first
//   frames    {"type": "reminder", "id", "text", "due", "at"} to every client, at its time
//   table     fired(text, due, at): each reminder that was sent. Times are Unix milliseconds

#include <hearth/agent.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

class Reminders : public hearth::Agent {
 public:
  Reminders() { sql("CREATE TABLE IF NOT EXISTS fired (text TEXT, due INTEGER, at INTEGER)"); }

  static void methods(hearth::Methods<Reminders>& m) {
    m.add("remind_in", &Reminders::remind_in);
    m.add("remind_at", &Reminders::remind_at);
    m.add("remind_when", &Reminders::remind_when, hearth::kIdempotent);
    m.add("list", &Reminders::list, hearth::kIdempotent);
    m.add("cancel", &Reminders::cancel);
    m.add("pause", &Reminders::pause);
    m.add("resume", &Reminders::resume);
    m.add("fired", &Reminders::fired, hearth::kIdempotent);
    m.callback("remind", &Reminders::remind);
  }

  std::string remind_in(const std::string& text, double seconds) {
    check(text);
    return schedule(std::chrono::duration<double>(seconds), "remind", text).id;
  }
  std::string remind_at(const std::string& text, std::int64_t unix_ms) {
    check(text);
    return schedule(hearth::Time(std::chrono::milliseconds(unix_ms)), "remind", text).id;
  }
  // The same text at the same times is one reminder, even if it is requested again.
  std::string remind_when(const std::string& text, const std::string& cron,
                          const std::optional<std::string>& time_zone) {
    check(text);
    return schedule(hearth::Cron(cron, time_zone.value_or("UTC")), "remind", text).id;
  }

  hearth::Json list() {
    hearth::Json all = hearth::Json::array();
    for (const hearth::Schedule& each : list_schedules({.limit = 1'000})) {
      const hearth::Json record = each;  // the server's record; clients need less
      all.push_back({{"id", each.id},
                     {"text", each.payload},
                     {"type", record.at("type")},
                     {"next", record.at("time")},
                     {"paused", each.state == hearth::ScheduleState::kPaused}});
    }
    return all;
  }

  bool cancel(const std::string& id) { return cancel_schedule(id); }
  bool pause(const std::string& id) { return pause_schedule(id); }
  bool resume(const std::string& id) { return resume_schedule(id); }

  struct Fired {
    std::string text;
    std::int64_t due = 0;
    std::int64_t at = 0;
    HEARTH_FIELDS(text, due, at)
  };
  std::vector<Fired> fired() {
    return sql("SELECT text, due, at FROM fired ORDER BY rowid").rows<Fired>();
  }

 private:
  // The row and the end of the schedule are one commit: a reminder that is in the table does not
  // come again. Clients get it after that.
  void remind(const std::string& text, const hearth::ScheduleRun& run) {
    const Fired reminder = {text, run.scheduled_for.time_since_epoch().count(),
                            now().time_since_epoch().count()};
    sql("INSERT INTO fired VALUES (?, ?, ?)", text, reminder.due, reminder.at);
    hearth::Json frame = reminder;
    frame.update({{"type", "reminder"}, {"id", run.id}});
    broadcast(frame);
  }

  static void check(const std::string& text) {
    if (text.empty() || text.size() > 1'000)
      throw hearth::Error(HEARTH_E_INVALID, "text: 1 to 1000 bytes");
  }
};

HEARTH_PLUGIN("reminders", "1.0.0", Reminders)
