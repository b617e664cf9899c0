#include "server/why.hpp"

#include "base/assert.hpp"
#include "base/escape.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <tuple>

namespace hearth::server {
namespace {

using extensions::Wait;
using extensions::WaitKind;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr milliseconds kNeverLong{-1};

// {s}: the subject, {d}: the detail, {i}: the id, {a}: the agent, {p}: the agent as CLASS/NAME. A
// sentence with {d} is left out if there is no detail. A command is pasted into a shell: it gets
// names as words.
struct WaitRow {
  WaitKind kind;
  std::string_view word;
  Urgency urgency;  // kPerson: at once. kLong: after `long_after`
  milliseconds long_after;
  bool is_plan;  // it has nothing to do until then
  std::string_view what;
  std::string_view detail;
  std::string_view ends;
  std::string_view action;   // if it is urgent
  std::string_view command;  // the same
};

using enum Urgency;

// clang-format off
constexpr std::array kWaitRows = {
    WaitRow{WaitKind::kLoop, "loop", kLong, seconds(1), false,
        "The event loop that it lives on does not answer.", "{s} holds it up: {d}.", "It ends when that call returns; limits.hard_hang ends the process.", "correct the code that does not return", ""},
    WaitRow{WaitKind::kCall, "call", kLong, minutes(1), false,
        "{s} is in progress.", "It holds its event loop up: {d}.", "It ends when the code returns, and at call_timeout at the latest.", "", "hearth evict {a}"},
    WaitRow{WaitKind::kStart, "start", kLong, seconds(30), false,
        "Its instance is being made.", "", "It ends when on_start returns.", "", "hearth evict {a}"},
    WaitRow{WaitKind::kEviction, "eviction", kLong, minutes(1), false,
        "It leaves memory.", "The reason is {d}.", "It ends when on_evict returns, and at evict_grace at the latest.", "", ""},
    WaitRow{WaitKind::kBehind, "client", kLong, minutes(1), false,
        "The client {s} does not read.", "Waiting for it: {d}.", "It ends when the client reads, or is dropped at its limit.", "", ""},
    WaitRow{WaitKind::kLent, "lent", kLong, seconds(30), false,
        "Another thread writes its database to the device.", "", "It ends when the device has answered.", "look at the load of the disk", ""},
    WaitRow{WaitKind::kRequest, "request", kLong, minutes(5), false,
        "A request to {s} is in progress.", "{d}.", "It ends with the answer, and at the timeout of the request.", "", ""},
    WaitRow{WaitKind::kAgentCall, "agent_call", kLong, minutes(1), false,
        "It calls {s}.", "The method is {d}.", "It ends with the answer, and at the timeout of the call.", "", "hearth why {s}"},

    WaitRow{WaitKind::kRoom, "room", kLong, seconds(10), false,
        "It waits for room in memory.", "", "It ends when another agent leaves.", "raise limits.max_live_agents, or lower idle_timeout of the classes", ""},
    WaitRow{WaitKind::kPermit, "permit", kLong, minutes(1), false,
        "It waits for its turn to start.", "Only so many agents start at once because {d}.", "It ends when the agents before it have started.", "look why these take long", "hearth stuck"},
    WaitRow{WaitKind::kTrial, "trial", kLong, minutes(5), false,
        "It failed to start on the new version, which is under trial.", "The failure is {d}.", "It ends when the trial is decided; clients are answered then.", "", "hearth plugins"},
    WaitRow{WaitKind::kOnTrial, "on_trial", kNone, kNeverLong, true,
        "It runs on a version of its library, or of its settings, that is on trial.", "On trial: {d}.", "It ends when the version has run long enough; crashes and failed starts take it back.", "", ""},
    WaitRow{WaitKind::kNoClass, "no_class", kPerson, kNeverLong, false,
        "No library serves its class.", "{d}.", "It ends when a library with this class is served.", "put the library into the plugin directory", "hearth reload"},
    WaitRow{WaitKind::kQuarantine, "quarantine", kPerson, kNeverLong, false,
        "Its class crashed the server too often and is not served.", "The crash was {d}.", "It ends when the class is released, or its library is replaced.", "", "hearth quarantine release {s}"},
    WaitRow{WaitKind::kRemoval, "removal", kLong, minutes(1), false,
        "The files of a destroyed agent of this name are being removed.", "", "It ends when they are gone.", "", ""},

    WaitRow{WaitKind::kRunning, "fiber", kLong, hours(1), false,
        "The fiber {s} runs.", "", "It ends when its work returns.", "", ""},
    WaitRow{WaitKind::kRetry, "retry", kLong, hours(1), false,
        "The fiber {s} waits for its next try.", "The last one failed: {d}.", "", "correct what fails, or end it", "hearth fibers cancel {p} {i}"},
    WaitRow{WaitKind::kLane, "lane", kLong, hours(1), false,
        "The fiber {s} waits for those before it in its lane.", "The lane is {d}.", "It ends when they have ended.", "", ""},
    WaitRow{WaitKind::kCode, "code", kPerson, kNeverLong, false,
        "Work waits for code that knows it and can read what it has stored.", "The last try of {s}: {d}.", "It ends when such a version of the library is served.", "serve a version that reads it, or end it", "hearth fibers show {p} {i}"},
    WaitRow{WaitKind::kUnknown, "unknown", kPerson, kNeverLong, false,
        "It is not known whether the operation {s} was executed.", "Its kind is {d}.", "It ends when an administrator or the class resolves it.", "find out whether it was executed, and record it with hearth resolve", "hearth operations {a} {s}"},
    WaitRow{WaitKind::kBudget, "budget", kNone, kNeverLong, true,
        "Today's budget of operations of the kind {s} is used up.", "", "", "raise per_day or cost_per_day of the kind", ""},
    WaitRow{WaitKind::kDeadFiber, "dead_fiber", kPerson, kNeverLong, false,
        "The fiber {s} has used up its tries.", "The last one failed: {d}.", "It ends when it is revived or resolved.", "correct what fails, and revive it", "hearth fibers revive {p} {i}"},
    WaitRow{WaitKind::kDeadItem, "dead_letter", kPerson, kNeverLong, false,
        "An item of the queue for {s} has used up its tries.", "The last one failed: {d}.", "It ends when it is tried again or dropped.", "correct what fails, and deliver it again", "hearth queue retry {p} {i}"},
    WaitRow{WaitKind::kDeadSchedule, "dead_schedule", kPerson, kNeverLong, false,
        "The schedule for {s} has used up its tries.", "The last one failed: {d}.", "It ends when it is revived or cancelled.", "correct what fails, and revive it", "hearth schedules revive {p} {i}"},
    WaitRow{WaitKind::kDeadNotice, "dead_notice", kPerson, kNeverLong, false,
        "The notification or alarm {i} for {s} has used up its tries.", "The last one failed: {d}.", "It stays until it is removed.", "correct what fails, and remove it: in the agent's code with remove_notification(id) or cancel_alarm(id), an object's alarm with DELETE /objects/CLASS/NAME/alarms/ID", ""},
    WaitRow{WaitKind::kNoCallback, "no_callback", kPerson, kNeverLong, false,
        "The class does not list the callback {s}, or cannot read its payload.", "The last try: {d}.", "It ends when a version that can is served.", "serve a version that lists it", ""},
    WaitRow{WaitKind::kPaused, "paused", kNone, kNeverLong, true,
        "The schedule {s} is paused.", "", "It ends when it is resumed.", "", ""},
    WaitRow{WaitKind::kItem, "item", kLong, hours(1), false,
        "An item of the queue for {s} waits for its turn.", "The last try failed: {d}.", "", "correct what fails", ""},
    WaitRow{WaitKind::kSchedule, "schedule", kNone, kNeverLong, true,
        "The schedule for {s} waits for its time.", "", "", "", ""},
    WaitRow{WaitKind::kAlarm, "alarm", kNone, kNeverLong, true,
        "An alarm waits for its time.", "", "", "", ""},
    WaitRow{WaitKind::kPerson, "person", kPerson, kNeverLong, false,
        "It waits for a person.", "Its code says: {d}.", "It ends when its code says so.", "do what it asks for", ""},
    WaitRow{WaitKind::kApproval, "approval", kPerson, kNeverLong, false,
        "The chat waits until a call of the tool {s} is approved or denied.", "The call is {d}.", "It ends with the answer of a client, and with the next message.", "answer it as a client of the chat, or in the console", ""},
    WaitRow{WaitKind::kClientTool, "client_tool", kLong, hours(1), false,
        "The chat waits for a client that executes the tool {s}.", "The call is {d}.", "It ends with the result of a client, and with the next message.", "look why no client has answered", ""},
    WaitRow{WaitKind::kMore, "more", kNone, kNeverLong, true,
        "It has more work than is named here.", "", "", "", ""},
    WaitRow{WaitKind::kNotice, "notice", kLong, minutes(5), false,
        "A notification to {s} is not delivered yet.", "The last try failed: {d}.", "", "", "hearth why {s}"},
};
// clang-format on

const WaitRow& wait_row(WaitKind kind) {
  const auto index = static_cast<std::size_t>(kind);
  HEARTH_ASSERT(index < kWaitRows.size() && kWaitRows[index].kind == kind, "rows stand in order");
  return kWaitRows[index];
}

std::string fill_in(std::string_view text, std::string_view subject, std::string_view detail,
                    std::string_view agent, std::string_view id = {}) {
  std::string all;
  while (!text.empty()) {
    const std::size_t at = std::min(text.find('{'), text.size());
    all += text.substr(0, at);
    text.remove_prefix(at);
    if (text.empty()) break;
    const std::size_t space = agent.find(' ');
    const std::string_view agent_class = agent.substr(0, space);
    const std::string_view name = agent.substr(space + 1);
    switch (text[1]) {
      case 's': all += subject; break;
      case 'd': all += detail; break;
      case 'i': all += shell_word(id); break;
      case 'a':
        if (name.starts_with('-')) all += "-- ";  // it is no option
        all.append(shell_word(agent_class)).append(" ").append(shell_word(name));
        break;
      default: all += shell_word(std::string(agent_class).append("/").append(name)); break;
    }
    text.remove_prefix(3);
  }
  return all;
}

}  // namespace

Urgency urgency_of(const Wait& wait, std::int64_t now_ms) {
  const WaitRow& row = wait_row(wait.kind);
  // A wait that should be over is no plan any more.
  const bool is_overdue =
      wait.until_ms && now_ms - *wait.until_ms > milliseconds(minutes(1)).count();
  if (row.urgency == kPerson) return row.urgency;
  if (row.is_plan) return is_overdue ? kLong : kNone;
  const bool is_old = wait.since_ms && now_ms - *wait.since_ms >= row.long_after.count();
  return is_old ? row.urgency : kNone;
}

Explanation explain(const Wait& wait, std::string_view agent, std::int64_t now_ms) {
  constexpr std::size_t kShown = 1000;
  const WaitRow& row = wait_row(wait.kind);
  const std::string subject = wait.subject.empty() ? "" : quote_text(wait.subject, kShown);
  const std::string detail = wait.detail.empty() ? "" : quote_text(wait.detail, kShown);
  Explanation told;
  told.kind = row.word;
  told.urgency = urgency_of(wait, now_ms);
  told.what = fill_in(row.what, subject, detail, agent, wait.id);
  if (!detail.empty() && !row.detail.empty())
    told.what += ' ' + fill_in(row.detail, subject, detail, agent);
  told.ends = row.ends;
  const bool is_asked = told.urgency != kNone || wait.kind == WaitKind::kBudget;
  if (!is_asked) return told;
  told.action = row.action;
  told.command = fill_in(row.command, shell_word(wait.subject), detail, agent, wait.id);
  return told;
}

void sort_by_urgency(std::vector<Wait>& waits, std::int64_t now_ms) {
  const auto place = [now_ms](const Wait& wait) {
    return std::tuple(-static_cast<int>(urgency_of(wait, now_ms)), wait_row(wait.kind).is_plan,
                      !wait.since_ms, wait.since_ms.value_or(0), std::string_view(wait.subject));
  };
  std::ranges::sort(waits, [&](const Wait& a, const Wait& b) { return place(a) < place(b); });
}

}  // namespace hearth::server
