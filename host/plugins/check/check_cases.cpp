#include "plugins/check/check_cases.hpp"

#include "extensions/abi_status.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace hearth::plugins {
namespace {

constexpr std::array kCases = {
    CheckCase{"T101", "The library is loaded within 100 ms.",
              "Move the work of static objects' constructors to init(), or to the first agent.",
              check_load_time},
    CheckCase{"T102", "Loading and init() leave the process as it was.",
              "A server runs many libraries in one process: none may change its threads, signals, "
              "locale, environment or current directory.",
              check_traces_of_init},
    CheckCase{"T103", "init() refuses or works with an older and a newer server.",
              "Use HEARTH_HAS before a member of the host's table, and keep to abi_major.",
              check_other_hosts},
    CheckCase{"T104", "init() refuses or works where extensions are missing.",
              "Return HEARTH_E_UNSUPPORTED if get_extension() gives null for what you need, and "
              "name it in the "
              "note's \"extensions\".",
              check_missing_extensions},
    CheckCase{"T105", "deinit() leaves nothing behind.",
              "Join threads and close descriptors in deinit(), or return HEARTH_E_BUSY until that "
              "can be done.",
              check_traces_of_a_life},
    CheckCase{"T106", "dlclose unmaps the library.",
              "Link with plugin.map, compile with -fno-gnu-unique, and have no thread_local with a "
              "destructor.",
              check_unmapping},
    CheckCase{"T107", "Two copies of the library share nothing.",
              "Link with plugin.map: a replaced library runs beside the new one for a while.",
              check_two_copies},
    CheckCase{"T108", "Loading and unloading 200 times leaves memory and mappings as they were.",
              "Free in deinit() what init() has taken.", check_many_cycles},
    CheckCase{"T201",
              "get_class() answers null for an index that does not exist, and always the same.",
              "Return null for index >= class_count, and constant tables.", check_class_indexes},
    CheckCase{"T202", "Making and destroying an agent hundreds of times takes no memory.",
              "Free everything in destroy(), suspended work too.", check_growth},
    CheckCase{"T203", "create() survives names and options of every kind.",
              "A name is any bytes up to the server's limit; options are any text from a file. "
              "Return an error for what you do not accept.",
              check_odd_names},
    CheckCase{"T204", "Two agents do not disturb each other.",
              "Keep what belongs to an agent in its instance, and use its own hearth_agent in "
              "calls to the host.",
              check_two_agents},
    CheckCase{
        "T205", "An agent comes back from what it has stored.",
        "An eviction may come at any moment: create() and START must work on an existing database.",
        check_second_life},
    CheckCase{
        "T206", "destroy() works at any moment, and nothing is called for the agent afterwards.",
        "destroy() frees all; operations in progress bring no result any more.", check_sudden_end},
    CheckCase{"T207", "Each call may come from another thread.",
              "Keep nothing in thread-local storage between calls: the server has several threads.",
              check_migration},
    CheckCase{"T208", "Data of an older schema version are brought to the newest.",
              "Answer MIGRATE (on_migrate) for every version since the first; change only the "
              "database in it, so that it can be tried again after a crash.",
              check_schema_migration},
    CheckCase{"T209", "An agent that comes back answers as if it had never been away.",
              "Every eviction loses the agent's memory: keep what must last in the database or in "
              "the state, and read it in START.",
              check_memory_of_lives},
    CheckCase{"T210", "create() makes an agent of each class with the options of the check.",
              "If a class needs options, pass them with --options: without an agent nothing of the "
              "class can be tried.",
              check_creation},
    CheckCase{"T301",
              "Every kind of event is answered with a status; unknown ones with UNSUPPORTED.",
              "Have a default case that returns HEARTH_E_UNSUPPORTED.", check_every_kind},
    CheckCase{"T302", "Events and results of a newer server are longer, and still understood.",
              "Read members only; do not compare or copy by struct_size.", check_longer_events},
    CheckCase{"T303", "An accepted event is completed once, a refused one never.",
              "Returning HEARTH_OK is the promise to call complete() for that call exactly once.",
              check_completion},
    CheckCase{
        "T304", "Deadlines may pass.",
        "After on_cancel() the call is over: complete() answers HEARTH_E_GONE, which is normal.",
        check_deadlines},
    CheckCase{"T305", "Events can be cancelled at every step, and calls that are unknown too.",
              "on_cancel() may come for any number at any time.", check_cancelling},
    CheckCase{"T306", "The library survives results of every kind.",
              "A result may be an error, empty, large, or for a token that you do not know.",
              check_results},
    CheckCase{
        "T307", "Methods survive arguments that they do not expect.",
        "Arguments come from clients: check their number and types, and answer HEARTH_E_INVALID.",
        check_methods},
    CheckCase{"T308", "The library survives malformed bodies.",
              "Bodies come from clients: parse them with a library, and answer HEARTH_E_INVALID.",
              check_malformed_bodies},
    CheckCase{"T309", "Each call returns within 250 ms.",
              "A call blocks every agent of its thread: use operations and coroutines to wait, and "
              "hearth/ext/offload.h to compute.",
              check_call_times},
    CheckCase{"T310", "Each job of hearth.offload/1 returns, and so does one that is cancelled.",
              "A job may take long, but must end: until then it keeps a thread, the library in "
              "memory, and a server from stopping. Limit what it waits for; one that only takes "
              "long needs a longer --time-limit.",
              check_jobs},
    CheckCase{"T401", "submit() may fail.",
              "Look at what submit() returns: after an error no result comes.",
              check_failing_submit},
    CheckCase{"T402", "Every function of the host may fail.",
              "Look at each status; after an error out parameters hold nothing.",
              check_failing_host},
    CheckCase{"T501", "What the host lends is not used after the call.",
              "Bytes are borrowed for the duration of the call: copy what you keep.",
              check_lent_memory},
};

}  // namespace

std::span<const CheckCase> check_cases() {
  return kCases;
}

const CheckCase* find_check_case(std::string_view id) {
  const auto found = std::ranges::find(kCases, id, &CheckCase::id);
  return found == kCases.end() ? nullptr : &*found;
}

CaseOutcome outcome_of(const CheckSubject& subject, hearth_status made) {
  const auto blamed = subject.host().blamed();
  if (blamed.empty() && made != HEARTH_OK) {
    return CaseOutcome::skipped("its create() answers " + extensions::status_name(made) +
                                " (T210)");
  }
  if (blamed.empty()) return CaseOutcome::passed();
  std::string text = blamed.front();
  if (blamed.size() > 1) text += " (and " + std::to_string(blamed.size() - 1) + " more)";
  return CaseOutcome::failed(std::move(text));
}

CaseOutcome try_each_class(CheckRun& run, SubjectOptions options, const ForClass& body) {
  CheckSubject subject(run, std::move(options));
  if (!subject.start()) return not_started();
  hearth_status made = HEARTH_OK;
  for (const hearth_class* const table : subject.classes()) made = body(subject, *table);
  return outcome_of(subject, made);
}

CaseOutcome try_each_agent(CheckRun& run, SubjectOptions options, const ForAgent& body) {
  return try_each_class(run, std::move(options),
                        [&body](CheckSubject& subject, const hearth_class& table) {
                          CheckInstance instance(subject, table, "events");
                          const hearth_status made = instance.create();
                          if (made != HEARTH_OK) return made;
                          instance.go_through({.kind = HEARTH_EVENT_START});
                          body(instance);
                          return made;
                        });
}

void play_all(CheckSubject& subject, const std::string& name, const AfterEach& after_each) {
  for (const hearth_class* const table : subject.classes())
    play(subject, *table, name, {.methods = {}}, after_each);
}

AfterEach blame_unfinished(CheckSubject& subject) {
  return [&subject](CheckInstance& instance, const CheckEvent& event, const Delivered& delivered) {
    // An event that waits for the host's answer, or for the library's own thread, may take longer.
    const bool waits = !instance.agent().operations().empty() || subject.has_threads();
    if (delivered.call != 0 && instance.is_pending(delivered.call) && !waits) {
      subject.host().blame("it has accepted " + event_name(event.kind) +
                           ", waits for nothing, and does not complete it");
    }
    return true;
  };
}

CaseOutcome not_started() {
  return CaseOutcome::failed("it could be loaded before, and cannot be now");
}

CaseOutcome out_of_time() {
  return CaseOutcome::error("it takes too long to be tried: give more with --time-limit");
}

}  // namespace hearth::plugins
