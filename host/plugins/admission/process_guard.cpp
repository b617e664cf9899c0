#include "plugins/admission/process_guard.hpp"

#include "base/escape.hpp"
#include "base/files.hpp"
#include "plugins/admission/trial_process.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cfenv>
#include <clocale>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

#include <pthread.h>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace hearth::plugins {
namespace {

// Empty if the system does not have the file.
std::string text_of(const char* file) {
  constexpr std::size_t kMaxText = std::size_t{64} << 10;
  auto text = read_file(file, kMaxText);
  return text ? *std::move(text) : std::string();
}

// umask(2) can only be read by changing it. That would affect files that other threads make at that
// moment.
mode_t current_mask() {
  constexpr std::string_view kKey = "\nUmask:";
  const std::string status = text_of("/proc/self/status");
  if (const std::size_t at = status.find(kKey); at != std::string::npos)
    return static_cast<mode_t>(std::strtoul(status.c_str() + at + kKey.size(), nullptr, 8));
  const mode_t mask = ::umask(077);
  ::umask(mask);
  return mask;
}

// The timers of timer_create(), of all threads.
std::size_t count_timers() {
  constexpr std::string_view kKey = "ID:";
  const std::string timers = text_of("/proc/self/timers");
  std::size_t count = 0;
  for (std::size_t at = 0; (at = timers.find(kKey, at)) != std::string::npos; ++at)
    if (at == 0 || timers[at - 1] == '\n') ++count;
  return count;
}

bool is_same(const rlimit& a, const rlimit& b) {
  return a.rlim_cur == b.rlim_cur && a.rlim_max == b.rlim_max;
}

// The time that is left differs from look to look.
bool is_same(const itimerval& a, const itimerval& b) {
  const auto is_set = [](const itimerval& timer) { return timerisset(&timer.it_value); };
  return is_set(a) == is_set(b) && a.it_interval.tv_sec == b.it_interval.tv_sec &&
         a.it_interval.tv_usec == b.it_interval.tv_usec;
}

template <class Values>
bool all_same(const Values& a, const Values& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) { return is_same(x, y); });
}

constexpr unsigned kStickyFlags = 0x3f;  // of the vector unit: exceptions that have happened

ProcessSettings::Arithmetic current_arithmetic() {
  ProcessSettings::Arithmetic arithmetic{
      .rounding = std::fegetround(), .traps = ::fegetexcept(), .control = 0};
#if defined(__SSE__)
  arithmetic.control = _mm_getcsr() & ~kStickyFlags;
#endif
  return arithmetic;
}

void restore_arithmetic(const ProcessSettings::Arithmetic& arithmetic) {
  std::fesetround(arithmetic.rounding);
  ::fedisableexcept(FE_ALL_EXCEPT);
  std::feclearexcept(FE_ALL_EXCEPT);
  ::feenableexcept(arithmetic.traps);
#if defined(__SSE__)
  _mm_setcsr(arithmetic.control);
#endif
}

bool is_same(const struct sigaction& a, const struct sigaction& b) {
  // The C library adds and hides this flag.
  constexpr int kRestorer = 0x04000000;
  return a.sa_handler == b.sa_handler && (a.sa_flags & ~kRestorer) == (b.sa_flags & ~kRestorer);
}

bool is_same(const sigset_t& a, const sigset_t& b) {
  for (int signal = 1; signal < static_cast<int>(ProcessSettings::kSignals); ++signal) {
    if (::sigismember(&a, signal) != ::sigismember(&b, signal)) return false;
  }
  return true;
}

std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

// NOLINTBEGIN(concurrency-mt-unsafe): it undoes what a library has done; see Threads.
void restore_environment(const std::vector<std::string>& before,
                         const std::vector<std::string>& after) {
  for (const std::string& each : after) {
    const std::string_view name = name_of(each);
    const bool was_there = std::ranges::any_of(
        before, [name](const std::string& old) { return name_of(old) == name; });
    if (!was_there) ::unsetenv(std::string(name).c_str());
  }
  for (const std::string& each : before) {
    if (std::ranges::find(after, each) != after.end()) continue;
    const std::string_view name = name_of(each);
    if (name.size() == each.size()) continue;  // not "NAME=value": cannot be set again
    ::setenv(std::string(name).c_str(), each.c_str() + name.size() + 1, 1);
  }
}

void restore_locale(const ProcessSettings& before, const ProcessSettings& after) {
  // The C++ locale first: it may set the C locale too.
  if (before.global_locale != after.global_locale) std::locale::global(before.global_locale);
  if (before.locale != after.locale || before.global_locale != after.global_locale)
    std::setlocale(LC_ALL, before.locale.c_str());
}
// NOLINTEND(concurrency-mt-unsafe)

// A setting that is different, and the end of a sentence that says how.
struct Change {
  int setting;  // a signal's number, or a Setting
  std::string text;
};
enum Setting : int {
  kTerminate = ProcessSettings::kSignals,
  kNew,
  kDirectory,
  kMask,
  kEnvironment,
  kLocale,
  kBlocked,
  kArithmetic,
  kLimits,
  kAlarms,
  kTimers,
  kGroup,
};

std::vector<Change> process_changes(const ProcessSettings& before, const ProcessSettings& after) {
  std::vector<Change> found;
  for (int signal = 1; signal < static_cast<int>(ProcessSettings::kSignals); ++signal) {
    const auto at = static_cast<std::size_t>(signal);
    if (is_same(before.actions[at], after.actions[at])) continue;
    found.push_back({signal, signal_name(signal) + " is handled differently"});
  }
  if (before.on_terminate != after.on_terminate)
    found.push_back({kTerminate, "std::set_terminate was called"});
  if (before.on_new != after.on_new) found.push_back({kNew, "std::set_new_handler was called"});
  if (before.directory != after.directory)
    found.push_back({kDirectory, "the current directory is " + quote_text(after.directory)});
  if (before.mask != after.mask) found.push_back({kMask, "the umask is another"});
  if (before.environment != after.environment)
    found.push_back({kEnvironment, "the environment was changed"});
  if (before.locale != after.locale) {
    found.push_back({kLocale, "the locale is " + quote_text(after.locale)});
  } else if (before.global_locale != after.global_locale) {
    found.push_back({kLocale, "std::locale::global was called"});
  }
  if (!all_same(before.limits, after.limits))
    found.push_back({kLimits, "a limit of the process's resources is another"});
  if (!all_same(before.time_left, after.time_left))
    found.push_back({kAlarms, "an alarm or an interval timer runs or is stopped"});
  if (before.timers < after.timers) found.push_back({kTimers, "a timer of timer_create() is left"});
  if (before.group != after.group || before.session != after.session)
    found.push_back({kGroup, "the process is in another process group or session"});
  return found;
}

// Loading a library that was linked with -ffast-math changes them.
std::vector<Change> thread_changes(const ProcessSettings& before, const ProcessSettings& after) {
  std::vector<Change> found;
  if (!is_same(before.blocked, after.blocked))
    found.push_back({kBlocked, "the thread blocks other signals"});
  if (before.arithmetic != after.arithmetic) {
    found.push_back(
        {kArithmetic, "the thread computes differently (rounding, traps or tiny numbers)"});
  }
  return found;
}

std::vector<std::string> texts_of(std::vector<Change> changes) {
  std::vector<std::string> texts;
  texts.reserve(changes.size());
  for (Change& each : changes) texts.push_back(std::move(each.text));
  return texts;
}

std::uintptr_t address_of(const struct sigaction& action) {
  return reinterpret_cast<std::uintptr_t>(action.sa_handler);
}
template <class Result>
std::uintptr_t address_of(Result (*handler)()) {
  return reinterpret_cast<std::uintptr_t>(handler);
}

// The handler to set when a library is unloaded: never one of the library.
template <class Handler>
Handler wanted_handler(const diagnosis::CodeRange& library, const Handler& first,
                       const Handler& before, const Handler& after) {
  if (!library.contains(address_of(before))) return before;
  return library.contains(address_of(after)) ? first : after;
}

}  // namespace

ProcessSettings ProcessSettings::take() {
  ProcessSettings settings;
  for (int signal = 1; signal < static_cast<int>(kSignals); ++signal)
    ::sigaction(signal, nullptr, &settings.actions[static_cast<std::size_t>(signal)]);
  settings.on_terminate = std::get_terminate();
  settings.on_new = std::get_new_handler();
  std::error_code failure;
  settings.directory = std::filesystem::current_path(failure).native();
  settings.mask = current_mask();
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable)
    settings.environment.emplace_back(*variable);
  const char* const locale = std::setlocale(LC_ALL, nullptr);  // NOLINT(concurrency-mt-unsafe)
  settings.locale = locale != nullptr ? locale : "";
  for (std::size_t i = 0; i < settings.limits.size(); ++i)
    ::getrlimit(static_cast<int>(i), &settings.limits[i]);
  for (std::size_t i = 0; i < settings.time_left.size(); ++i)
    ::getitimer(static_cast<int>(i), &settings.time_left[i]);
  settings.timers = count_timers();
  settings.group = ::getpgrp();
  settings.session = ::getsid(0);
  ::pthread_sigmask(SIG_SETMASK, nullptr, &settings.blocked);
  settings.arithmetic = current_arithmetic();
  return settings;
}

std::vector<std::string> differences(const ProcessSettings& before, const ProcessSettings& after) {
  return texts_of(process_changes(before, after));
}

ProcessGuard::ProcessGuard()
    : directory_(::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC)), before_(ProcessSettings::take()) {}

std::vector<std::string> ProcessGuard::changes() const {
  return differences(before_, ProcessSettings::take());
}

std::vector<std::string> ProcessGuard::restore() {
  return restore_to(before_, ProcessSettings::take());
}

std::vector<std::string> ProcessGuard::restore_without(const diagnosis::CodeRange& library,
                                                       const ProcessSettings& first) {
  const ProcessSettings after = ProcessSettings::take();
  ProcessSettings wanted = before_;
  for (std::size_t signal = 1; signal < ProcessSettings::kSignals; ++signal) {
    wanted.actions[signal] = is_same(after.actions[signal], first.actions[signal])
                                 ? after.actions[signal]
                                 : wanted_handler(library, first.actions[signal],
                                                  before_.actions[signal], after.actions[signal]);
  }
  const auto stay_as_at_first = [&](auto setting) {
    if (after.*setting == first.*setting) wanted.*setting = after.*setting;
  };
  wanted.on_terminate =
      wanted_handler(library, first.on_terminate, before_.on_terminate, after.on_terminate);
  wanted.on_new = wanted_handler(library, first.on_new, before_.on_new, after.on_new);
  stay_as_at_first(&ProcessSettings::on_terminate);
  stay_as_at_first(&ProcessSettings::on_new);
  stay_as_at_first(&ProcessSettings::directory);
  stay_as_at_first(&ProcessSettings::mask);
  stay_as_at_first(&ProcessSettings::environment);
  stay_as_at_first(&ProcessSettings::locale);
  stay_as_at_first(&ProcessSettings::arithmetic);
  stay_as_at_first(&ProcessSettings::group);
  if (all_same(after.limits, first.limits)) wanted.limits = after.limits;
  // A timer that ran before deinit() may be the library's own.
  wanted.time_left = first.time_left;
  if (is_same(after.blocked, first.blocked)) wanted.blocked = after.blocked;
  // std::locale::global() sets the C locale too.
  if (after.global_locale != first.global_locale) wanted.locale = first.locale;
  wanted.global_locale = first.global_locale;
  return restore_to(wanted, after);
}

std::vector<std::string> ProcessGuard::restore_to(const ProcessSettings& wanted,
                                                  const ProcessSettings& after) {
  std::vector<Change> changed = process_changes(wanted, after);
  std::ranges::move(thread_changes(wanted, after), std::back_inserter(changed));
  if (changed.empty()) return {};
  for (std::size_t signal = 1; signal < ProcessSettings::kSignals; ++signal) {
    if (!is_same(wanted.actions[signal], after.actions[signal]))
      ::sigaction(static_cast<int>(signal), &wanted.actions[signal], nullptr);
  }
  std::set_terminate(wanted.on_terminate);
  std::set_new_handler(wanted.on_new);
  // By descriptor: the directory may have been renamed.
  const bool is_there = wanted.directory == after.directory ||
                        (directory_.is_open() && ::fchdir(directory_.get()) == 0);
  if (wanted.mask != after.mask) ::umask(wanted.mask);
  restore_environment(wanted.environment, after.environment);
  restore_locale(wanted, after);
  ::pthread_sigmask(SIG_SETMASK, &wanted.blocked, nullptr);
  restore_arithmetic(wanted.arithmetic);
  for (std::size_t i = 0; i < wanted.limits.size(); ++i) {
    if (!is_same(wanted.limits[i], after.limits[i]))
      ::setrlimit(static_cast<int>(i), &wanted.limits[i]);
  }
  for (std::size_t i = 0; i < wanted.time_left.size(); ++i) {
    if (!is_same(wanted.time_left[i], after.time_left[i]))
      ::setitimer(static_cast<int>(i), &wanted.time_left[i], nullptr);
  }
  if (wanted.group != after.group) ::setpgid(0, wanted.group);
  // A setting cannot be put back if that needs rights that the server does not have.
  const std::vector<Change> left = process_changes(wanted, ProcessSettings::take());
  for (Change& each : changed) {
    const bool is_left = std::ranges::find(left, each.setting, &Change::setting) != left.end();
    const bool stays = each.setting == kDirectory ? !is_there : is_left;
    if (stays) each.text += " (it stays)";
  }
  return texts_of(std::move(changed));
}

}  // namespace hearth::plugins
