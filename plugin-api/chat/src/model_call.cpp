#include <hearth/agent_base.hpp>
#include <hearth/chat/answer.hpp>
#include <hearth/chat/model_call.hpp>
#include <hearth/hash.hpp>

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>

namespace hearth::chat {

namespace {

using std::chrono::milliseconds;

// A model may read a long prompt for minutes; the watchdog has the shorter limit.
constexpr std::chrono::minutes kIdle{10};
constexpr std::chrono::seconds kStopLimit{10};
constexpr std::chrono::seconds kAsideLimit{30};
constexpr std::size_t kMaxErrorBody = std::size_t{64} << 10;
constexpr milliseconds kPollDelay{2'000};
constexpr int kPolls = 300;  // OpenAI keeps an answer for ten minutes
constexpr int kLostPolls = 30;

// Makes chunks from the answer of this call.
AnswerReader reader_of(const Provider& provider, const ModelCall& call, const TakeChunks& take) {
  const std::string ids =
      std::to_string(stable_hash(call.turn)) + "_" + std::to_string(call.number);
  return AnswerReader(provider, ModelAnswer(ids, call.open_text, call.taken_ids), call.used_events,
                      take, call.room);
}

// Stops a request whose answer has no chunk for some time. Pings are no chunks.
struct Watch {
  std::stop_source stop;
  std::chrono::nanoseconds last{};
  bool is_over = false;
  bool is_stalled = false;
};

Task<void> watch_answer(Agent& agent, std::shared_ptr<Watch> watch, milliseconds limit) {
  while (!watch->is_over) {
    const auto left = std::chrono::ceil<milliseconds>(watch->last + limit - agent.uptime());
    if (left <= milliseconds(0)) {
      watch->is_stalled = true;
      watch->stop.request_stop();
      co_return;
    }
    co_await agent.sleep(left);
  }
}

FetchRequest fetch_request(const ModelCall& call, HttpCall http) {
  FetchRequest request;
  request.method = std::move(http.method);
  request.url = call.base_url + http.path;
  request.headers = std::move(http.headers);
  request.json = std::move(http.body);
  request.idle_timeout = kIdle;
  request.credential = call.credential;
  return request;
}

// The host has a smaller buffer for events. A provider may answer with one JSON body all the same.
FetchRequest request_for_events(const ModelCall& call, HttpCall http) {
  FetchRequest request = fetch_request(call, std::move(http));
  const bool says_what = std::ranges::any_of(request.headers, [](const auto& header) {
    return std::ranges::equal(header.first, std::string_view("accept"), {},
                              [](char c) { return static_cast<char>(c | 0x20); });
  });
  if (!says_what) request.headers.emplace_back("Accept", "text/event-stream, application/json");
  return request;
}

// A redirection is one too: the provider is not where base_url says. 0: no status has come.
bool is_refusal(unsigned status) {
  return status != 0 && (status < 200 || status >= 300);
}

Failure failure_of(const FetchError& error) {
  const bool may_pass = !error.is_final() || error.code() == HEARTH_E_CANCELLED;
  return {may_pass ? FailureKind::kTransient : FailureKind::kInvalid, error.what()};
}

// A request to the provider beside the call.
struct Aside {
  unsigned status = 0;  // 0: no whole answer has come
  std::string body = {};

  [[nodiscard]] bool ok() const { return status >= 200 && status < 300; }
  // Asking again would bring no other answer.
  [[nodiscard]] bool is_final() const {
    return status >= 400 && status < 500 && status != 408 && status != 409 && status != 425 &&
           status != 429;
  }
};
Task<Aside> ask_aside(Agent& agent, const ModelCall& call, HttpCall http,
                      std::stop_token stop = {}) {
  Aside aside;
  try {
    FetchRequest request = fetch_request(call, std::move(http));
    request.timeout = kAsideLimit;
    request.stop = std::move(stop);
    FetchResponse response = co_await agent.fetch(std::move(request));
    aside.body = co_await response.text();
    aside.status = response.status();
  } catch (const FetchError& error) {  // the caller has another way
    agent.log.debug("chat: a request beside a call has failed: ", error.what());
  }
  co_return aside;
}

// Not longer than until the stop.
Task<void> rest(Agent& agent, milliseconds time, std::stop_token stop) {
  Signal never(agent);
  try {
    auto resting = agent.with_timeout(never.wait(std::move(stop)), time);
    co_await std::move(resting);
  } catch (const Error& error) {
    if (error.code() != HEARTH_E_TIMEOUT && error.code() != HEARTH_E_CANCELLED) throw;
  }
}

ModelAnswer decoded(const Provider& provider, const PartialAnswer& stored) {
  AnswerReader reader(provider);
  reader.feed_stored(stored);
  return reader.answer();
}

// A background answer goes on without a connection, and is paid for: a caller that drops it
// ends it.
Task<void> stop_answer(Agent& agent, const Provider& provider, const ModelCall& call,
                       const ModelAnswer& answer) {
  if (!call.is_resumable || answer.is_whole()) co_return;
  auto stop = provider.follow_up(FollowUp::kStop, answer);
  if (!stop) co_return;
  try {
    auto asked = agent.with_timeout(ask_aside(agent, call, std::move(*stop)), kStopLimit);
    co_await std::move(asked);
  } catch (const Error& error) {
    if (error.code() != HEARTH_E_TIMEOUT) throw;
    agent.log.warn("chat: the provider has not answered to the end of an answer");
  }
}

// The end of an answer whose bytes have ended, at the server or with it: what a background answer
// still comes to is asked for, unless it is to stop, and one that is dropped is ended at the
// provider. The reader is over then; its last chunks come in the step that settles the call.
Task<void> finish(Agent& agent, const Provider& provider, const ModelCall& call,
                  AnswerReader& reader, std::stop_token stop, std::string how) {
  bool is_gone = false;
  for (int i = 0, lost = 0; call.is_resumable && i < kPolls && lost < kLostPolls; ++i) {
    if (reader.is_over() || is_gone || stop.stop_requested()) break;
    std::optional<HttpCall> poll = provider.follow_up(FollowUp::kPoll, reader.answer());
    if (!poll) break;
    auto asking = ask_aside(agent, call, std::move(*poll), stop);
    const Aside answer = co_await std::move(asking);
    is_gone = answer.is_final();
    const bool is_read =
        answer.ok() && provider.is_answer(Json::parse(answer.body, nullptr, false));
    lost = is_read ? 0 : lost + 1;
    if (is_read) reader.feed_whole(answer.body);
    if (reader.is_over() || is_gone) break;
    auto resting = rest(agent, kPollDelay, stop);
    co_await std::move(resting);
  }
  if (!is_gone) {
    auto stopping = stop_answer(agent, provider, call, reader.answer());
    co_await std::move(stopping);
  }
  if (!reader.is_over()) reader.end(how);
}

// What a trace has of a call (OpenTelemetry's conventions for generative AI): no contents.
// A longer name is none that a provider has.
constexpr std::size_t kMostName = 200;

void describe_request(const OperationAttempt& attempt, const Provider& provider,
                      const ModelCall& call) {
  std::string model = call.request.body.is_object() ? call.request.body.value("model", "") : "";
  if (model.size() > kMostName) model.clear();
  attempt.describe("chat " + model, {{"gen_ai.operation.name", "chat"},
                                     {"gen_ai.provider.name", provider.name().substr(0, kMostName)},
                                     {"gen_ai.request.model", model}});
}

void describe_answer(const OperationAttempt& attempt, const ModelAnswer& answer) {
  Json attributes = Json::object();
  if (const auto tokens = answer.usage().input_tokens)
    attributes["gen_ai.usage.input_tokens"] = *tokens;
  if (const auto tokens = answer.usage().output_tokens)
    attributes["gen_ai.usage.output_tokens"] = *tokens;
  const auto id = answer.notes().find("id");
  if (id != answer.notes().end() && id->is_string() &&
      id->get_ref<const std::string&>().size() <= kMostName)
    attributes["gen_ai.response.id"] = *id;
  attempt.describe({}, attributes);
}

// ---- the call -----------------------------------------------------------------------------------

class Asking {
 public:
  Asking(Agent& agent, const Provider& provider, const ModelCall& call, const TakeChunks& take)
      : agent_(agent),
        provider_(provider),
        call_(call),
        reader_(reader_of(provider, call, take)),
        watch_(std::make_shared<Watch>()),
        stops_(call.stop, [watch = watch_] { watch->stop.request_stop(); }) {}
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;
  ~Asking() { watch_->is_over = true; }

  Task<CallOutcome> run(OperationAttempt attempt) {
    if (call_.stop.stop_requested()) {
      auto stopping = stop(attempt.id);
      co_return co_await std::move(stopping);
    }
    begin_watch();
    FetchRequest request = request_for_events(call_, call_.request);
    describe_request(attempt, provider_, call_);
    request.op = attempt.id;
    request.stop = watch_->stop.get_token();
    request.rest = [this](const PartialAnswer& answer) { return rest_of(answer); };
    std::string how = "the stream ended without its last event";
    bool is_answered = false;
    try {
      FetchResponse response = co_await agent_.fetch(std::move(request));
      is_answered = true;
      if (is_refusal(response.status())) co_await refuse(response);
      co_await read(response);
    } catch (const FetchError& error) {
      // Of a request for the rest the ledger has what came before: that call was made.
      std::optional<PartialAnswer> stored;
      if (!is_answered) stored = begun(attempt.id);
      if (!stored && !error.sent() && error.phase() < FetchPhase::kBody)
        throw NotCalled(failure_of(error));
      const bool was_stopped = watch_->stop.stop_requested();
      const bool is_too_long = error.code() == HEARTH_E_LIMIT && error.phase() == FetchPhase::kBody;
      if (is_too_long)  // and so is the next one
        reader_.fail({FailureKind::kInvalid, error.what()});
      else if (call_.is_resumable && !was_stopped)
        throw;
      if (stored) reader_.feed_stored(*stored);
      how = error.what();
    }
    watch_->is_over = true;
    auto finishing = finish(agent_, provider_, call_, reader_, watch_->stop.get_token(), how);
    co_await std::move(finishing);
    describe_answer(attempt, reader_.answer());
    const auto used = reader_.answer().usage().total();
    if (used && *used >= 0 && reader_.answer().is_whole())
      attempt.set_cost(static_cast<std::uint64_t>(*used));
    co_return reader_.outcome(watch_->is_stalled);
  }

 private:
  // A crash came between the stop and the end of the call.
  Task<CallOutcome> stop(std::string id) {
    const std::optional<PartialAnswer> stored = agent_.partial_answer(id);
    if (!stored || is_refusal(stored->status))
      throw NotCalled({FailureKind::kCut, "the turn was stopped"});
    reader_.feed_stored(*stored);
    auto finishing = finish(agent_, provider_, call_, reader_, call_.stop, "the turn was stopped");
    co_await std::move(finishing);
    co_return reader_.outcome();
  }
  // The stored part of an answer whose head has come.
  [[nodiscard]] std::optional<PartialAnswer> begun(const std::string& id) {
    std::optional<PartialAnswer> stored = agent_.partial_answer(id);
    if (stored && (stored->status == 0 || is_refusal(stored->status))) stored.reset();
    return stored;
  }
  // After a crash in the middle of the answer.
  [[nodiscard]] ResumedFetch rest_of(const PartialAnswer& answer) const {
    std::optional<HttpCall> rest =
        provider_.follow_up(FollowUp::kResume, decoded(provider_, answer));
    if (!rest)
      throw FetchError(HEARTH_E_BUSY, "the provider cannot go on with the answer",
                       FetchPhase::kBody, true);
    return {.request = request_for_events(call_, *std::move(rest)),
            .from = whole_events(answer.body).bytes};
  }
  void begin_watch() {
    watch_->last = agent_.uptime();
    if (call_.stall_timeout <= milliseconds(0)) return;
    Agent& agent = agent_;
    agent_.after_turn([&agent, watch = watch_, limit = call_.stall_timeout] {
      return watch_answer(agent, watch, limit);
    });
  }
  Task<void> refuse(FetchResponse& response) {
    std::string body;
    try {
      while (auto piece = co_await response.next()) {
        body += *piece;
        if (body.size() > kMaxErrorBody) break;
      }
    } catch (const FetchError& error) {  // the status says enough
      agent_.log.debug("chat: the text of a refusal was cut: ", error.what());
    }
    Failure failure = provider_.failure(response.status(), response.headers(), body, agent_.now());
    failure.text = one_line(failure.text);
    throw NotCalled(std::move(failure));
  }
  Task<void> read(FetchResponse& response) {
    const bool is_json = is_one_body(response.header("Content-Type").value_or(""));
    std::string body;
    while (!reader_.is_over()) {
      const auto piece = co_await response.next();
      if (!piece) break;
      if (is_json)
        body += *piece;
      else
        feed(*piece);
    }
    if (is_json) reader_.feed_whole(body);
  }
  void feed(std::string_view piece) {
    if (reader_.feed(piece)) watch_->last = agent_.uptime();
  }

  Agent& agent_;
  const Provider& provider_;
  const ModelCall& call_;
  AnswerReader reader_;
  std::shared_ptr<Watch> watch_;
  std::stop_callback<std::function<void()>> stops_;
};

Task<CallOutcome> ask_model(Agent& agent, const Provider& provider, const ModelCall& call,
                            const TakeChunks& take, OperationAttempt attempt) {
  Asking asking(agent, provider, call, take);
  co_return co_await asking.run(std::move(attempt));
}

// After a crash: what the ledger has of the answer, and what the provider still gives.
Task<Probed> look(Agent& agent, const Provider& provider, const ModelCall& call,
                  const TakeChunks& take, OperationAttempt attempt) {
  AnswerReader reader = reader_of(provider, call, take);
  const std::optional<PartialAnswer> stored = agent.partial_answer(attempt.id);
  if (stored && is_refusal(stored->status)) co_return Probed::not_executed();
  if (stored) reader.feed_stored(*stored);
  auto finishing = finish(agent, provider, call, reader, call.stop,
                          "the server stopped in the middle of the answer");
  co_await std::move(finishing);
  co_return Probed::completed(Json(reader.outcome()));
}

// The next two are of a turn that ends, whatever it has left: they throw nothing.

// What a completed call has used; unknown if an operator has completed it, with any result.
Usage usage_of(Agent& agent, const OperationRecord& completed) {
  try {
    const auto outcome = completed.result.get<CallOutcome>();
    if (outcome.failure.empty()) return outcome.usage;
  } catch (const std::exception& error) {
    agent.log.warn("chat: the result of a call is not one of ours: ", error.what());
  }
  return {};
}

// Nothing: the provider's code cannot read it.
std::optional<ModelAnswer> readable(Agent& agent, const Provider& provider,
                                    const PartialAnswer& stored) {
  try {
    ModelAnswer answer = decoded(provider, stored);
    answer.end();
    return answer;
  } catch (const std::exception& error) {
    agent.log.warn("chat: a stored answer cannot be read: ", error.what());
    return std::nullopt;
  }
}

}  // namespace

Json call_args(const std::string& turn, int number, const std::string& purpose) {
  Json args{{"turn", turn}, {"call", number}};
  if (!purpose.empty()) args["purpose"] = purpose;
  return args;
}

Task<CallOutcome> call_model(Agent& agent, const Provider& provider, ModelCall call,
                             TakeChunks take) {
  OperationCall operation;
  operation.kind = call.is_resumable ? kResumableKind : kModelKind;
  operation.args = call_args(call.turn, call.number, call.purpose);
  operation.cost = call.cost;
  const auto ask = [&](OperationAttempt attempt) -> Task<CallOutcome> {
    return ask_model(agent, provider, call, take, std::move(attempt));
  };
  const auto look_at = [&](OperationAttempt attempt) {
    return look(agent, provider, call, take, std::move(attempt));
  };
  auto running = agent.operation(std::move(operation), ask, look_at);
  co_return co_await std::move(running);
}

Task<std::optional<Usage>> drop_call(Agent& agent, const Provider& provider, ModelCall call,
                                     OperationRecord left) {
  if (left.state == OperationState::kCompleted) co_return usage_of(agent, left);
  CallOutcome outcome;
  const std::optional<PartialAnswer> stored = agent.partial_answer(left.id);
  const bool is_called = left.request && (!stored || !is_refusal(stored->status));
  outcome.failure = failure_name(FailureKind::kCut);
  if (stored && is_called) {
    call.is_resumable = left.kind == kResumableKind;
    if (const auto answer = readable(agent, provider, *stored)) {
      if (answer->is_whole()) outcome.usage = answer->usage();
      auto stopping = stop_answer(agent, provider, call, *answer);
      co_await std::move(stopping);
    }
  }
  agent.resolve_operation(left.id,
                          is_called ? Probed::completed(Json(outcome)) : Probed::not_executed(),
                          "its turn has ended");
  if (!is_called) co_return std::nullopt;
  co_return outcome.usage;
}

OperationKind model_kind() {
  return {.effect = Effect::kProbe,
          .same = "the turn, and the number of the call in it",
          .interrupted = "uses what has arrived, and goes on with another call, which counts",
          .upstream = "makes another answer, and charges for it",
          .unknown = "cannot be: what has arrived is the answer",
          .acts_by_request = true};
}

OperationKind resumable_model_kind() {
  OperationKind kind = model_kind();
  kind.resume = [](const FetchRequest& request, const PartialAnswer& answer) {
    return request.rest(answer);
  };
  return kind;
}

}  // namespace hearth::chat
