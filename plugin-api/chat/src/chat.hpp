#pragma once
// The parts of a chat, which its agent owns.

#include "account.hpp"
#include "history.hpp"

#include <hearth/chat/chat_agent.hpp>
#include <hearth/chat/tool_calls.hpp>

#include <algorithm>
#include <cstdint>
#include <list>
#include <set>

namespace hearth::chat {

// Longer frames and bodies are parsed on another thread.
inline constexpr std::size_t kParsedHere = std::size_t{256} << 10;
inline constexpr const char* kTooManyTurns = "Too many messages wait for an answer.";
inline constexpr const char* kNoFiber = "The chat is too busy to answer. Send it again later.";

// The text of an author, also of another agent's. That of the host may have names and addresses.
[[nodiscard]] bool is_for_clients(const std::exception& error);

// Events that are handled one after the other, also across their waits.
class InOrder {
 public:
  explicit InOrder(Agent& agent) : changed_(agent) {}

  class Place {
   public:
    // `client`: the number of a connection; 0: none.
    explicit Place(InOrder& order, std::uint64_t client = 0)
        : order_(order), at_(order.line_.insert(order.line_.end(), client)) {}
    ~Place() {
      order_.line_.erase(at_);
      order_.changed_.notify();
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    [[nodiscard]] bool is_first() const { return at_ == order_.line_.begin(); }
    [[nodiscard]] bool is_first_of_client() const {
      return std::find(order_.line_.begin(), at_, *at_) == at_;
    }

   private:
    InOrder& order_;
    std::list<std::uint64_t>::iterator at_;
  };
  [[nodiscard]] Task<void> reach(const Place& place, std::stop_token stop = {}) {
    while (!place.is_first()) co_await changed_.wait(stop);
  }

 private:
  Signal changed_;
  std::list<std::uint64_t> line_;
};

// A message of a client while it is read.
struct LongMessage {
  explicit LongMessage(Message given) : message(std::move(given)) {}

  Message message;
  std::optional<LongFrame> split;
  SentList sent;
  std::optional<ClientFrame> frame;
};

// The client of a frame, which counts also if the client leaves before it is handled.
struct Sender {
  explicit Sender(Connection of) : client(of), id(client.id()), was_readonly(client.readonly()) {}
  [[nodiscard]] bool is_readonly() const;

  Connection client;
  std::string id;
  bool was_readonly;  // when the frame came
};

// Of a turn. Clients change no message by its id.
enum class Origin : std::uint8_t { kAgent, kClient };

using ToolNames = std::set<std::string, std::less<>>;

struct Prepared {
  Json messages;
  std::vector<std::int64_t> hashes;
};

struct Chat {
  Chat(ChatAgent& owner, ChatOptions given, std::unique_ptr<const Provider> model)
      : agent(owner),
        options(std::move(given)),
        provider(std::move(model)),
        transcript(owner),
        turns(owner),
        log(owner),
        streams(owner, transcript, turns, log, {}),
        history(owner, options, transcript, turns, streams),
        account(owner, options.budget),
        order(owner),
        own_tools(owner.kv().get<ToolNames>(kToolsKey).value_or(ToolNames())),
        changed(streams.changed()) {}
  Chat(const Chat&) = delete;
  Chat& operator=(const Chat&) = delete;

  // ---- frames (frames.cpp)

  Task<void> read_long(std::shared_ptr<LongMessage> message);
  Task<void> handle(Sender sender, ClientFrame frame, SentList sent);
  Task<void> accept(Sender sender, ChatRequest request, SentList sent);
  [[nodiscard]] std::set<std::string> answers_in(const std::vector<std::string>& ids) const;
  Task<void> set_messages(Sender sender, SetMessages frame, SentList sent);
  void handle_now(const Sender& sender, const ClientFrame& frame);
  void refuse(const Connection& client, const Refusal& refusal);
  // The first turn of the line runs, if none does. False: the agent has too many fibers now, and
  // this is tried again.
  bool start_head();
  bool begin_fiber(const std::string& turn, FiberPolicy ended = FiberPolicy::kJoin);
  Task<void> try_again();
  // Whether this turn could begin if it were the first one. What says no has changed nothing.
  bool has_room(const TurnRequest& request);
  // Removes some of the oldest records of ended turns whose ends were told to the author, and says
  // how many.
  std::uint64_t drop_records();
  // The records that are kept for people leave room for other fibers of the agent.
  void bound_records();
  // A turn is over, of whatever outcome, and clients get to know.
  void show_skipped(const std::vector<TurnInLine>& turns);
  bool cancel(std::string_view id);
  void clear(const std::optional<Connection>& except);
  // Sanitises messages of a client, the author's hook last, and hashes them.
  Task<Prepared> prepare(Json messages);
  // Sanitises a message as it is stored.
  // Failure   TurnFailed: the author's hook has failed
  void clean(Json& message);
  void ask_sanitizer(Json& message);  // the author's hook alone
  // Changes a call's part in the running answer, or in a stored message.
  void answer(const Sender& sender, const std::string& call, bool auto_continue, const Json& tools,
              const std::function<Answer(Json&)>& change);
  // The turn's id.
  // Failure   Error: INVALID (a message that cannot be stored, or of a client with an id that is
  //           there), LIMIT (too many turns wait, or fibers exist); nothing has changed
  std::string start(TurnRequest request, std::vector<Json> messages,
                    Origin origin = Origin::kAgent);

  // ---- HTTP (door.cpp)

  Task<Response> serve(const Request& request);
  Task<Response> stream_turn(const Request& request, std::string id);
  Task<bool> read_turn(std::string id, std::uint64_t wanted,
                       std::function<Drained(const LoggedChunk&)> take);

  // ---- the turn that runs (run_turn.cpp)

  Task<void> run(std::string id, FiberContext& fiber);
  Task<void> go_on(Turn& given, FiberContext& fiber);
  // However a turn ends, no call of the model goes on behind it.
  Task<void> end_call(Turn& given, const FiberContext& fiber);
  // Settles what is left of them: what has arrived is in the log.
  Task<void> drop_calls(TurnRecord& turn, std::string fiber);
  void end(RunningTurn& turn, TurnState state, std::string text, const std::string& fiber);
  // The ends of calls of tools that this turn has begun or was to begin: no later one begins them.
  std::vector<Json> ends_of_calls(const RunningTurn& turn, const std::string& fiber);
  // Why the answer cannot be stored, if so.
  std::optional<TurnFailed> store_answer(RunningTurn& turn);
  void tell_error(const std::string& text, const std::string& classification);
  // A fiber of a turn has ended otherwise than with its turn.
  Task<void> give_up(TurnRecord record, std::string fiber, bool is_cancelled, std::string why);
  Task<void> exhaust(RunningTurn& turn, GiveUp reason);
  // Calls on_exhausted, once for a turn.
  Task<void> tell_exhausted(RunningTurn& turn, std::string reason, std::string why);
  Task<bool> settle(RunningTurn& turn);
  void show_recovering(RunningTurn& turn);
  Task<void> interrupted(Turn& given, Interruption interruption, bool is_of_turn);
  Task<RecoveryChoice> ask_hook(const RunningTurn& turn);
  Task<bool> asks_to_keep_on(const RunningTurn& turn);
  Task<void> rest_until(RunningTurn& turn, Time at);
  RecoveryContext context_of(const RunningTurn& turn);

  static constexpr const char* kToolsKey = "hearth.chat.tools";
  // The answer in which a client wants to go on once all its calls have results. The next call of
  // the model has them, so this is forgotten then, and with a clear.
  static constexpr const char* kContinuesKey = "hearth.chat.continues";

  ChatAgent& agent;
  ChatOptions options;
  std::unique_ptr<const Provider> provider;
  Transcript transcript;
  Turns turns;
  ChunkLog log;
  Streams streams;
  History history;
  Account account;
  InOrder order;
  ToolNames own_tools;  // that a turn has had, with a function of the server
  Signal& changed;      // a turn has ended, or has more chunks
  RunningTurn* running = nullptr;
  std::multiset<std::string> read_turns;  // whose logs callers of read_turn() read
  bool is_leaving = false;                // the agent leaves memory: no call of the model begins
  bool is_storing = false;                // a turn and its messages: no turn begins
  bool tries_again = false;               // the first turn has no fiber yet
  Time last_refusal = {};
};

// The end of a turn whose message would be larger than a stored one may be.
[[nodiscard]] TurnFailed too_large();

// Makes a turn the one that runs.
class Runs {
 public:
  Runs(Chat& chat, RunningTurn& turn) : chat_(chat), turn_(&turn) { chat.running = &turn; }
  ~Runs() {
    if (chat_.running == turn_) chat_.running = nullptr;
    chat_.changed.notify();
  }
  Runs(const Runs&) = delete;
  Runs& operator=(const Runs&) = delete;

 private:
  Chat& chat_;
  RunningTurn* turn_;
};

// While it exists, a turn may have its fiber, and does not begin: a host begins no fiber while a
// savepoint is open.
class Storing {
 public:
  explicit Storing(Chat& chat) : chat_(chat) { chat_.is_storing = true; }
  ~Storing() {
    chat_.is_storing = false;
    chat_.changed.notify();
  }
  Storing(const Storing&) = delete;
  Storing& operator=(const Storing&) = delete;

 private:
  Chat& chat_;
};

// One message of the user, without an id.
[[nodiscard]] std::vector<Json> user_text(std::string_view text);

}  // namespace hearth::chat
