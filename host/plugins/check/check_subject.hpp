#pragma once
// The loaded library of a check, and its agents. All calls of a case into the library are made
// here.

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

// What a child must try, and what its cases share.
struct CheckSetting {
  std::filesystem::path library;    // the file; cases load private copies
  std::filesystem::path directory;  // of this child alone, empty at first; the parent removes it
  std::uint64_t seed = 1;
  std::string options = "{}";              // for create()
  std::vector<std::string> methods;        // to call; empty: those that are found
  bool may_call = true;                    // false: only a method that does not exist
  std::chrono::milliseconds time{10'000};  // then the parent kills the child
  std::filesystem::path older = {};        // an older version of the library; empty: none
};

// Lifetime  One in a child, as long as its case.  Threads  The child's first thread.
class CheckRun {
 public:
  CheckRun(CheckSetting setting, CheckVoice& voice, GuardedMemory& memory);

  const CheckSetting setting;
  CheckVoice& voice;
  GuardedMemory& memory;
  std::mt19937_64 random;  // from the seed
  std::size_t copies = 0;  // of the library, made so far

  // Waits a moment for threads of the library. False: the case has waited long enough for threads.
  bool wait_for_threads();

  // Runs `body` on a thread of its own, to its end.
  void on_a_thread(const std::function<void()>& body);

  // Whether a case that could go on for ever must end: half of the time has passed, or the share of
  // the class that is tried now.
  [[nodiscard]] bool is_late() const;

  // Class `index` of `count` is tried now. When it is late, the later classes still have their
  // shares.
  void share_time(std::size_t index, std::size_t count);

  // The check itself has failed: what the case finds from now on says nothing about the library.
  // Keeps the first failure.
  void note_failure(std::string_view what);
  [[nodiscard]] const std::string& failure() const { return failure_; }

 private:
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::chrono::milliseconds until_late_;
  std::chrono::milliseconds waited_{0};
  std::string failure_;
};

struct SubjectOptions {
  HostVariant host = {};
  bool guarded = false;                // lent memory is taken back after each call
  bool migrates = false;               // each call comes from another thread
  std::filesystem::path library = {};  // empty: the library of the setting
};

// A private copy of the library, from dlopen to dlclose.
//
// Promises  An exception from the library is recorded with blame() and counts as HEARTH_E_PLUGIN.
// Failure   If the check itself gets no memory or thread, the run records it, and the call counts
//           as HEARTH_E_PLUGIN. StorageError: load() cannot copy the library.
// Lifetime  Its agents are destroyed before it. Without unload(), the destructor calls deinit() if
//           that is due and unmaps the library; if deinit() answers BUSY, the library stays mapped.
class CheckSubject {
 public:
  explicit CheckSubject(CheckRun& run, SubjectOptions options = {});
  ~CheckSubject();
  CheckSubject(const CheckSubject&) = delete;
  CheckSubject& operator=(const CheckSubject&) = delete;

  // The steps of a generation. load() first; false: the dynamic loader refuses (the probe reports
  // it).
  bool load();
  hearth_status init();
  // load(), init() and the classes; false if one of these fails.
  bool start();
  // get_class(); null: it gives none.
  const hearth_class* class_at(std::uint32_t index);
  hearth_status deinit();
  // True: the library is not mapped any more.
  bool unload();

  [[nodiscard]] CheckRun& run() { return run_; }
  [[nodiscard]] CheckHost& host() { return host_; }
  [[nodiscard]] const CheckHost& host() const { return host_; }
  [[nodiscard]] const hearth_plugin& plugin() const { return library_->plugin(); }
  [[nodiscard]] const std::vector<const hearth_class*>& classes() const { return classes_; }
  [[nodiscard]] bool has_threads() const {
    return (library_->plugin().flags & HEARTH_PLUGIN_THREADS) != 0;
  }

  // Calls into the library, with `agent` (or null) as the running agent.
  hearth_status enter(std::string_view what, CheckAgent* agent,
                      const std::function<hearth_status()>& call);
  // `bytes` as a slice for the library, guarded if this subject is.
  [[nodiscard]] hearth_bytes lend(std::string_view bytes, std::string_view label);
  [[nodiscard]] bool guarded() const { return guarded_; }

  // The longest call since the last take_longest().
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
  std::string name = {};
  std::string body = {};  // also if it has not arrived yet (HEARTH_REQUEST_UNREAD_BODY)
  std::uint32_t flags = 0;
  std::uint64_t connection = 0;
  std::uint32_t struct_size = sizeof(hearth_event);
  std::uint64_t deadline_ms = 0;
};

// The status of on_event(), and the call if the event has one.
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
  // Ends operations, runs jobs, delivers posts and begins durable work, until nothing is left to do
  // or `steps` are done. True: nothing is left.
  bool pump(int steps = 100);
  // deliver(), then pump().
  Delivered go_through(const CheckEvent& event);
  void cancel(extensions::CallId call);
  // Delivers a result, also one for no operation or in place of the result from pump().
  void give_result(std::uint64_t token, std::uint32_t operation, hearth_status status,
                   std::string_view body, std::uint32_t flags = HEARTH_RESULT_FINAL);
  void destroy();

  [[nodiscard]] CheckSubject& subject() { return subject_; }
  [[nodiscard]] CheckAgent& agent() { return *agent_; }
  [[nodiscard]] const hearth_class& table() const { return table_; }
  [[nodiscard]] bool is_pending(extensions::CallId call);
  // Accepted, and not yet completed.
  [[nodiscard]] std::vector<extensions::CallId> pending();

 private:
  bool pump_one();
  void end_operation();
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

// "CALL": the name of a kind in messages.
[[nodiscard]] std::string event_name(std::uint32_t kind);

// Whether it is HEARTH_OK or an error of the contract.
[[nodiscard]] bool is_event_status(hearth_status status);

}  // namespace hearth::plugins
