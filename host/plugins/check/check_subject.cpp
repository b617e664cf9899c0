#include "plugins/check/check_subject.hpp"

#include "base/assert.hpp"
#include "base/escape.hpp"
#include "extensions/abi_status.hpp"
#include "plugins/admission/process_state.hpp"

#include <hearth/ext/fibers.h>
#include <hearth/ext/http.h>
#include <hearth/ext/operations.h>
#include <hearth/ext/queue.h>
#include <hearth/ext/schedule.h>
#include <hearth/ext/schema.h>
#include <hearth/ext/subagents.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

namespace hearth::plugins {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

template <class T>
std::string_view bytes_of_struct(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

}  // namespace

CheckRun::CheckRun(CheckSetting given, CheckVoice& the_voice, GuardedMemory& the_memory)
    : setting(std::move(given)),
      voice(the_voice),
      memory(the_memory),
      random(setting.seed),
      until_late_(setting.time / 2) {}

bool CheckRun::is_late() const {
  return steady_clock::now() - started_ > until_late_;
}

void CheckRun::share_time(std::size_t index, std::size_t count) {
  until_late_ = setting.time * (index + 1) / (2 * count);
}

void CheckRun::note_failure(std::string_view what) {
  if (failure_.empty()) failure_ = what;
}

bool CheckRun::wait_for_threads() {
  constexpr milliseconds kPause{5};
  if (waited_ > setting.time / 4) return false;
  std::this_thread::sleep_for(kPause);
  waited_ += kPause;
  return true;
}

void CheckRun::on_a_thread(const std::function<void()>& body) {
  try {
    std::thread(body).join();
  } catch (const std::system_error& failure) {
    note_failure("make a thread: " + std::string(failure.what()));
  }
}

// ---- the library --------------------------------------------------------------------------------

CheckSubject::CheckSubject(CheckRun& run, SubjectOptions options)
    : run_(run),
      guarded_(options.guarded),
      migrates_(options.migrates),
      file_(options.library.empty() ? run.setting.library : options.library),
      host_(run.setting.library.filename().native(), std::move(options.host), run.memory,
            guarded_ ? &run.memory : nullptr, run.random()) {}

CheckSubject::~CheckSubject() {
  const bool is_over = !initialised_ || deinit() == HEARTH_OK;
  if (!host_.failure().empty()) run_.note_failure(host_.failure());
  if (is_over) return;
  // Code of the library still runs: it must stay mapped until the child ends.
  static_cast<void>(library_.release());  // NOLINT(bugprone-unused-return-value): left mapped
}

bool CheckSubject::load() {
  copy_ = run_.setting.directory / ("copy-" + std::to_string(++run_.copies) + ".so");
  std::error_code failure;
  std::filesystem::copy_file(file_, copy_, failure);
  if (failure)
    throw StorageError("copy the library to " + copy_.native() + ": " + failure.message());
  run_.voice.doing("while it was loaded and its constructors ran");
  auto opened = PluginLibrary::open(copy_);
  // A mapped library stays mapped. The name is not used again.
  std::filesystem::remove(copy_, failure);
  if (!opened) return false;
  library_ = *std::move(opened);
  return true;
}

hearth_status CheckSubject::init() {
  const hearth_status status = enter("in init()", nullptr, [this] {
    return plugin().init(host_.table(), lend("{}", "init()'s config"));
  });
  initialised_ = status == HEARTH_OK;
  return status;
}

bool CheckSubject::start() {
  if (!load()) return false;
  if (init() != HEARTH_OK) return false;
  for (std::uint32_t index = 0; index < plugin().class_count; ++index) {
    const hearth_class* const table = class_at(index);
    if (table == nullptr) return false;
    classes_.push_back(table);
  }
  return true;
}

const hearth_class* CheckSubject::class_at(std::uint32_t index) {
  const hearth_class* table = nullptr;
  enter("in get_class()", nullptr, [&] {
    table = plugin().get_class(index);
    return hearth_status{HEARTH_OK};
  });
  return table;
}

hearth_status CheckSubject::deinit() {
  const hearth_status status = enter("in deinit()", nullptr, [this] { return plugin().deinit(); });
  if (status == HEARTH_OK) {
    initialised_ = false;
    host_.close();
  }
  return status;
}

bool CheckSubject::unload() {
  run_.voice.doing("while it was unloaded and its destructors ran");
  classes_.clear();
  const bool gone = library_->close();
  library_.reset();
  return gone;
}

hearth_status CheckSubject::enter(std::string_view what, CheckAgent* agent,
                                  const std::function<hearth_status()>& call) {
  run_.voice.doing(what);
  const std::size_t mark = run_.memory.mark();
  const auto began = steady_clock::now();
  hearth_status status = HEARTH_E_PLUGIN;
  const auto make_call = [&] {
    CheckAgent* const before = host_.set_running(agent);
    try {
      status = call();
    } catch (const StorageError& failure) {  // from lend(): the host's table throws none
      run_.note_failure(failure.what());
    } catch (...) {
      host_.blame("an exception came out of it " + std::string(what) +
                  ": catch it and return HEARTH_E_PLUGIN");
    }
    host_.set_running(before);
  };
  if (migrates_) {
    run_.on_a_thread(make_call);
  } else {
    make_call();
  }
  const auto took = std::chrono::duration_cast<milliseconds>(steady_clock::now() - began);
  if (took > longest_.took) longest_ = {.what = std::string(what), .took = took};
  if (guarded_) run_.memory.retire(mark);
  return status;
}

hearth_bytes CheckSubject::lend(std::string_view bytes, std::string_view label) {
  if (!guarded_) return {bytes.data(), bytes.size()};
  return {run_.memory.lend(bytes, label), bytes.size()};
}

// ---- an agent -----------------------------------------------------------------------------------

CheckInstance::CheckInstance(CheckSubject& subject, const hearth_class& table, std::string name)
    : subject_(subject), table_(table), name_(std::move(name)) {
  const hearth_operation_kinds_v1* kinds = nullptr;
  if (HEARTH_HAS(&table_, hearth_class, get_extension)) {
    subject_.enter("in get_extension()", nullptr, [this, &kinds] {
      offload_ =
          static_cast<const hearth_offload_v1*>(table_.get_extension(&table_, HEARTH_EXT_OFFLOAD));
      kinds = static_cast<const hearth_operation_kinds_v1*>(
          table_.get_extension(&table_, HEARTH_EXT_OPERATION_KINDS));
      return hearth_status{HEARTH_OK};
    });
  }
  const auto& classes = subject_.classes();
  const auto place = std::ranges::find(classes, &table_);
  if (place != classes.end()) {
    subject_.run().share_time(static_cast<std::size_t>(place - classes.begin()), classes.size());
  }
  // One file for each class and name: a second life finds the data of the first.
  const auto file =
      subject_.run().setting.directory / ("agent-" + std::string(table_.name) + "-" +
                                          std::to_string(std::hash<std::string>{}(name_)) + ".db");
  agent_ = std::make_unique<CheckAgent>(subject_.host(), subject_.host().next_handle(),
                                        storage::AgentKey{table_.name, name_}, file,
                                        offload_ != nullptr && offload_->run != nullptr);
  agent_->kinds = extensions::operation_kinds(kinds);
  agent_->load();
}

CheckInstance::~CheckInstance() {
  destroy();
}

hearth_status CheckInstance::create() {
  return create(subject_.run().setting.options);
}

hearth_status CheckInstance::create(std::string_view options) {
  agent_->creating = true;
  const std::string what = "in create() of " + std::string(table_.name);
  const hearth_status status = subject_.enter(what, agent_.get(), [&] {
    return table_.create(&table_, subject_.host().table(), agent_->handle(),
                         subject_.lend(name_, "create()'s name"),
                         subject_.lend(options, "create()'s options"), &instance_);
  });
  agent_->creating = false;
  agent_->end_turn();
  exists_ = status == HEARTH_OK;
  if (!is_event_status(status))
    subject_.host().blame("its create() returned " + std::to_string(status) +
                          ", which is no status");
  return status;
}

Delivered CheckInstance::deliver(const CheckEvent& event) {
  HEARTH_ASSERT(exists_, "an event needs an instance");
  const bool synchronous =
      event.kind == HEARTH_EVENT_CONNECTING || event.kind == HEARTH_EVENT_STATE_CHECK;
  Delivered delivered;
  if (!synchronous)
    delivered.call = agent_->add_call(static_cast<extensions::EventKind>(event.kind));
  hearth_event passed{.struct_size = event.struct_size,
                      .kind = event.kind,
                      .call = delivered.call,
                      .connection = event.connection,
                      .name = {},
                      .body = {},
                      .deadline_ms = event.deadline_ms,
                      .flags = event.flags,
                      .reserved = 0};
  const bool is_unread =
      event.kind == HEARTH_EVENT_REQUEST && (event.flags & HEARTH_REQUEST_UNREAD_BODY) != 0;
  if (is_unread) agent_->let_body_arrive(delivered.call, event.body);
  std::string what = "in on_event() of " + std::string(table_.name) + ", " + event_name(event.kind);
  if (!event.name.empty()) what += " " + quote_text(event.name, 40);
  delivered.status = subject_.enter(what, agent_.get(), [&] {
    passed.name = subject_.lend(event.name, "event.name of " + event_name(event.kind));
    passed.body = subject_.lend(is_unread ? "" : std::string_view(event.body),
                                "event.body of " + event_name(event.kind));
    // The event of a later host is longer: there may be any bytes behind the known part.
    std::array<char, 4 * sizeof passed> bytes{};
    bytes.fill('\x5a');
    std::memcpy(bytes.data(), &passed, sizeof passed);
    const hearth_bytes whole =
        subject_.lend({bytes.data(), std::min<std::size_t>(event.struct_size, bytes.size())},
                      "the event of " + event_name(event.kind));
    return table_.on_event(instance_, static_cast<const hearth_event*>(whole.ptr));
  });
  agent_->end_turn();
  if (!is_event_status(delivered.status)) {
    subject_.host().blame("its on_event() returned " + std::to_string(delivered.status) + " for " +
                          event_name(event.kind) + ", which is no status");
  }
  if (delivered.call == 0) return delivered;
  CheckCall& call = agent_->open_calls()[delivered.call];
  using State = CheckCall::State;
  if (delivered.status == HEARTH_OK) {
    if (call.state == State::kOffered) call.state = State::kAccepted;
  } else if (call.state == State::kOffered) {
    call.state = State::kRefused;
    call.ok = delivered.status == HEARTH_E_UNSUPPORTED;
    call.code = delivered.status < 0 ? extensions::to_errc(delivered.status) : Errc::kPlugin;
  } else {
    subject_.host().blame("it completes " + event_name(event.kind) + " and then refuses it with " +
                          extensions::status_name(delivered.status));
  }
  return delivered;
}

Delivered CheckInstance::go_through(const CheckEvent& event) {
  const Delivered delivered = deliver(event);
  pump();
  return delivered;
}

bool CheckInstance::pump(int steps) {
  for (int step = 0; step < steps; ++step) {
    if (pump_one()) continue;
    // Only a post from a thread of the library can still come.
    if (pending().empty() || count_threads() <= 1) return true;
    constexpr int kRounds = 100;
    bool something = false;
    for (int round = 0; round < kRounds && !something && !pending().empty(); ++round) {
      if (!subject_.run().wait_for_threads()) return true;
      something = pump_one();
    }
    if (!something) return true;
  }
  return false;
}

bool CheckInstance::pump_one() {
  for (const auto& [handle, token] : subject_.host().take_posts()) {
    if (handle != agent_->handle()) continue;
    give_result(token, HEARTH_OP_POST, HEARTH_OK, {});
    return true;
  }
  if (!agent_->operations().empty()) {
    end_operation();
    return true;
  }
  if (!agent_->changed_states().empty()) {
    CheckEvent changed{.kind = HEARTH_EVENT_STATE_CHANGED,
                       .body = agent_->changed_states().front().json};
    agent_->changed_states().pop_front();
    if ((table_.flags & HEARTH_CLASS_WATCHES_STATE) != 0) deliver(changed);
    return true;
  }
  if (auto due = agent_->next_work()) {
    begin_work(*std::move(due));
    return true;
  }
  for (auto& [id, call] : agent_->open_calls()) {
    using State = CheckCall::State;
    if (!call.work || (call.state != State::kCompleted && call.state != State::kRefused)) continue;
    agent_->work_ended(call);
    agent_->end_turn();
    call.work.reset();
    return true;
  }
  return false;
}

// Or gives the next piece of a body.
void CheckInstance::end_operation() {
  CheckOperation& first = agent_->operations().front();
  if (!first.body.empty()) {
    constexpr std::size_t kPiece = 1024;  // a short body has two
    const std::string piece = first.body.substr(0, std::min(kPiece, first.body.size() / 2 + 1));
    first.body.erase(0, piece.size());
    return give_result(first.token, HEARTH_OP_BODY, HEARTH_OK, piece, 0);
  }
  const CheckOperation operation = std::move(first);
  agent_->operations().pop_front();
  const bool cancelled = operation.id == 0;
  if (operation.operation == HEARTH_OP_OFFLOAD) run_job(operation, cancelled);
  if (cancelled) return;
  if (operation.operation == HEARTH_OP_BODY) {
    give_result(operation.token, HEARTH_OP_BODY, operation.is_cut ? HEARTH_E_GONE : HEARTH_OK,
                operation.is_cut ? "the client has left" : "");
  } else {
    give_result(operation.token, operation.operation,
                operation.is_remote ? HEARTH_E_BUSY : HEARTH_OK,
                operation.is_remote ? "nothing leaves a check" : "");
  }
}

void CheckInstance::begin_work(extensions::DueWork work) {
  const CheckEvent event{.kind = static_cast<std::uint32_t>(work.kind),
                         .name = work.name,
                         .body = work.body,
                         .deadline_ms = static_cast<std::uint64_t>(work.timeout.count())};
  const Delivered delivered = deliver(event);
  agent_->open_calls()[delivered.call].work =
      std::make_unique<extensions::DueWork>(std::move(work));
}

void CheckInstance::run_job(const CheckOperation& operation, bool cancelled) {
  // On a thread of its own, as in a server's pool.
  subject_.run().voice.doing("in offload's run()");
  bool threw = false;
  subject_.run().on_a_thread([&] {
    try {
      static_cast<void>(offload_->run(operation.job, cancelled ? 1U : 0U));
    } catch (...) {
      threw = true;
    }
  });
  if (threw) subject_.host().blame("an exception came out of offload's run()");
}

void CheckInstance::cancel(extensions::CallId call) {
  const auto found = agent_->open_calls().find(call);
  if (found != agent_->open_calls().end() && found->second.state == CheckCall::State::kAccepted)
    found->second.state = CheckCall::State::kCancelled;
  subject_.enter("in on_cancel() of " + std::string(table_.name), agent_.get(), [&] {
    table_.on_cancel(instance_, call);
    return hearth_status{HEARTH_OK};
  });
  agent_->end_turn();
}

void CheckInstance::give_result(std::uint64_t token, std::uint32_t operation, hearth_status status,
                                std::string_view body, std::uint32_t flags) {
  hearth_result result{.struct_size = sizeof(hearth_result),
                       .flags = flags,
                       .status = status,
                       .operation = operation,
                       .token = token,
                       .body = {}};
  subject_.enter("in on_result() of " + std::string(table_.name), agent_.get(), [&] {
    result.body = subject_.lend(body, "result.body");
    const hearth_bytes whole = subject_.lend(bytes_of_struct(result), "the result");
    table_.on_result(instance_, static_cast<const hearth_result*>(whole.ptr));
    return hearth_status{HEARTH_OK};
  });
  agent_->end_turn();
}

void CheckInstance::destroy() {
  if (!exists_) return;
  exists_ = false;
  agent_->destroying = true;
  subject_.enter("in destroy() of " + std::string(table_.name), agent_.get(), [this] {
    table_.destroy(instance_);
    return hearth_status{HEARTH_OK};
  });
  // Jobs outlive their agent. Each is run or freed once.
  const auto jobs = std::exchange(agent_->operations(), {});
  agent_.reset();
  for (const CheckOperation& each : jobs) {
    if (each.operation == HEARTH_OP_OFFLOAD) run_job(each, true);
  }
}

bool CheckInstance::is_pending(extensions::CallId call) {
  const auto found = agent_->open_calls().find(call);
  return found != agent_->open_calls().end() && found->second.state == CheckCall::State::kAccepted;
}

std::vector<extensions::CallId> CheckInstance::pending() {
  std::vector<extensions::CallId> all;
  for (const auto& [id, call] : agent_->open_calls()) {
    if (call.state == CheckCall::State::kAccepted) all.push_back(id);
  }
  return all;
}

// ---- words --------------------------------------------------------------------------------------

std::string event_name(std::uint32_t kind) {
  switch (kind) {
    case HEARTH_EVENT_START: return "START";
    case HEARTH_EVENT_CONNECTING: return "CONNECTING";
    case HEARTH_EVENT_CONNECT: return "CONNECT";
    case HEARTH_EVENT_MESSAGE: return "MESSAGE";
    case HEARTH_EVENT_CLOSE: return "CLOSE";
    case HEARTH_EVENT_CALL: return "CALL";
    case HEARTH_EVENT_REQUEST: return "REQUEST";
    case HEARTH_EVENT_SUB_AGENT: return "SUB_AGENT";
    case HEARTH_EVENT_STATE_CHECK: return "STATE_CHECK";
    case HEARTH_EVENT_STATE_CHANGED: return "STATE_CHANGED";
    case HEARTH_EVENT_EVICT: return "EVICT";
    case HEARTH_EVENT_FIBER_RECOVERED: return "FIBER_RECOVERED";
    case HEARTH_EVENT_SCHEDULE: return "SCHEDULE";
    case HEARTH_EVENT_QUEUE_ITEM: return "QUEUE_ITEM";
    case HEARTH_EVENT_FIBER_SETTLED: return "FIBER_SETTLED";
    case HEARTH_EVENT_OPERATION_UNKNOWN: return "OPERATION_UNKNOWN";
    case HEARTH_EVENT_FIBERS_RECOVERED: return "FIBERS_RECOVERED";
    case HEARTH_EVENT_MIGRATE: return "MIGRATE";
    default: return "the unknown kind " + std::to_string(kind);
  }
}

bool is_event_status(hearth_status status) {
  return status <= HEARTH_OK && status >= HEARTH_E_UNREADABLE;
}

}  // namespace hearth::plugins
