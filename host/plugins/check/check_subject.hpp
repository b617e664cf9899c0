#pragma once
// The library of a check, loaded, and its agents, driven by hand: every call into the library of a
// case is made here.

#include "base/error.hpp"
#include "plugins/admission/plugin_library.hpp"
#include "plugins/admission/plugin_note.hpp"
#include "plugins/check/check_agent.hpp"
#include "plugins/check/check_host.hpp"
#include "plugins/check/check_voice.hpp"
#include "plugins/check/guarded_memory.hpp"

#include <hearth/abi.h>
#include <hearth/ext/offload.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::plugins {

// What a child is asked to try, and what its cases share.
struct CheckSetting {
  std::filesystem::path library;    // the file; cases load private copies
  std::filesystem::path directory;  // of this child alone, empty at first; removed by the parent
  std::uint64_t seed = 1;
  std::string options = "{}";              // for create()
  std::vector<std::string> methods;        // to call; empty: those that are found
  bool may_call = true;                    // false: no method but one that does not exist
  std::chrono::milliseconds time{10'000};  // until the parent loses patience
  std::filesystem::path older = {};        // an older version of the library; empty: none
};

// Lifetime  One in a child, as long as its case.  Threads  The child's first.
class CheckRun {
 public:
  CheckRun(CheckSetting setting, CheckVoice& voice, GuardedMemory& memory);

  const CheckSetting setting;
  CheckVoice& voice;
  GuardedMemory& memory;
  std::mt19937_64 random;  // from the seed
  std::size_t copies = 0;  // of the library, made so far

  // Waits a little for what a thread of the library may do. False: the case has waited long enough
  // for such things.
  bool wait_for_threads();

  // Runs `body` on a thread of its own, to its end.
  void on_a_thread(const std::function<void()>& body);

  // Whether a case that could go on for ever should end: half of the time has passed, or the part
  // of it that the class on trial may use.
  [[nodiscard]] bool is_late() const;

  // The class on trial is number `index` of `count`: those after it have their parts of the time
  // left when it is late.
  void share_time(std::size_t index, std::size_t count);

  // The check itself has failed: what the case finds from now on says nothing of the library. The
  // first failure is kept.
  void note_failure(std::string_view what);
  [[nodiscard]] const std::string& failure() const { return failure_; }

 private:
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::chrono::milliseconds until_late_;
  std::chrono::milliseconds waited_{0};
  std::string failure_;
};

struct SubjectOptions {
  HostVariant host;
  bool guarded = false;                // what is lent is taken back after each call
  bool migrates = false;               // each call comes from another thread
  std::filesystem::path library = {};  // empty: that of the setting
};

// A copy of the library of its own, from dlopen to dlclose.
//
// Promises  An exception that comes out of the library is put down with blame() and counts as
//           HEARTH_E_PLUGIN.
// Failure   Memory or a thread that the check itself needs and does not get is noted in the run,
//           and the call counts as above. StorageError: load() cannot copy the library.
// Lifetime  Its agents go before it. Destroyed without unload(), it calls deinit() if that is due
//           and unmaps the library; if deinit() answers BUSY, the library stays mapped.
class CheckSubject {
 public:
  explicit CheckSubject(CheckRun& run, SubjectOptions options = {});
  ~CheckSubject();
  CheckSubject(const CheckSubject&) = delete;
  CheckSubject& operator=(const CheckSubject&) = delete;

  // The steps of a generation. load() first; false: the dynamic loader refuses (the probe has said
  // so).
  bool load();
  hearth_status init();
  // load() and init() and the classes; false if one of them does not work.
  bool start();
  hearth_status deinit();
  // Whether nothing of it is mapped any more.
  bool unload();

  [[nodiscard]] CheckRun& run() { return run_; }
  [[nodiscard]] CheckHost& host() { return host_; }
  [[nodiscard]] const CheckHost& host() const { return host_; }
  [[nodiscard]] const hearth_plugin& plugin() const { return library_->plugin(); }
  [[nodiscard]] const std::vector<const hearth_class*>& classes() const { return classes_; }
  [[nodiscard]] bool has_threads() const {
    return (library_->plugin().flags & HEARTH_PLUGIN_THREADS) != 0;
  }

  // Calls into the library with `agent` (or null) as the one that runs.
  hearth_status enter(std::string_view what, CheckAgent* agent,
                      const std::function<hearth_status()>& call);
  // `bytes` as a slice for the library, guarded if this subject is.
  [[nodiscard]] hearth_bytes lend(std::string_view bytes, std::string_view label);
  [[nodiscard]] bool guarded() const { return guarded_; }

  // The call that has taken the longest since the last look, and how long.
  struct Longest {
    std::string what;
    std::chrono::milliseconds took{0};
  };
  Longest take_longest() { return std::exchange(longest_, {}); }

 private:
  CheckRun& run_;
  const bool guarded_;
  const bool migrates_;
  const std::filesystem::path file_;
  bool initialised_ = false;
  Longest longest_;
  CheckHost host_;
  std::filesystem::path copy_;
  std::unique_ptr<PluginLibrary> library_;
  std::vector<const hearth_class*> classes_;
};

// One event as a client or the host would cause it.
struct CheckEvent {
  std::uint32_t kind = 0;
  std::string name;
  std::string body;
  std::uint32_t flags = 0;
  std::uint64_t connection = 0;
  std::uint32_t struct_size = sizeof(hearth_event);
  std::uint64_t deadline_ms = 0;
};

// What on_event() said, and the call if it has one.
struct Delivered {
  hearth_status status = HEARTH_OK;
  extensions::CallId call = 0;
};

// One agent of a subject, from create() to destroy().
//
// Lifetime  The subject outlives it. The destructor destroys the instance.
class CheckInstance {
 public:
  CheckInstance(CheckSubject& subject, const hearth_class& table, std::string name);
  ~CheckInstance();
  CheckInstance(const CheckInstance&) = delete;
  CheckInstance& operator=(const CheckInstance&) = delete;

  // Once. `options` are setting.options unless given.
  hearth_status create();
  hearth_status create(std::string_view options);
  [[nodiscard]] bool exists() const { return exists_; }

  Delivered deliver(const CheckEvent& event);
  // Ends operations, runs jobs, hands in posts and begins durable work until nothing is left to do
  // or `steps` are done. True: nothing was left.
  bool pump(int steps = 100);
  // deliver(), then pump().
  Delivered go_through(const CheckEvent& event);
  void cancel(extensions::CallId call);
  // A result that nobody asked for, or that pump() would give otherwise.
  void give_result(std::uint64_t token, std::uint32_t operation, hearth_status status,
                   std::string_view body, std::uint32_t flags = HEARTH_RESULT_FINAL);
  void destroy();

  [[nodiscard]] CheckAgent& agent() { return *agent_; }
  [[nodiscard]] const hearth_class& table() const { return table_; }
  [[nodiscard]] bool is_pending(extensions::CallId call);
  // Accepted, and not yet completed.
  [[nodiscard]] std::vector<extensions::CallId> pending();

 private:
  bool pump_one();
  void run_job(const CheckOperation& operation, bool cancelled);
  void begin_work(extensions::DueWork work);

  CheckSubject& subject_;
  const hearth_class& table_;
  const std::string name_;
  const hearth_offload_v1* offload_ = nullptr;
  std::unique_ptr<CheckAgent> agent_;
  void* instance_ = nullptr;
  bool exists_ = false;
};

// "CALL": how messages name a kind.
[[nodiscard]] std::string event_name(std::uint32_t kind);

// HEARTH_OK, or an error that the contract has.
[[nodiscard]] bool is_event_status(hearth_status status);

}  // namespace hearth::plugins
