#pragma once
// What the model gets of the transcript: the newest messages that fit, and a summary in the place
// of those that were compacted. Messages stay as they are, but for calls that no answer can reach
// any more: those are repaired in the transcript, too.

#include <hearth/chat/context.hpp>
#include <hearth/chat/options.hpp>
#include <hearth/chat/streams.hpp>
#include <hearth/chat/transcript.hpp>
#include <hearth/chat/turns.hpp>
#include <hearth/json.hpp>

#include <string>
#include <vector>

namespace hearth {
class ChatAgent;
}

namespace hearth::chat {

class History {
 public:
  History(ChatAgent& agent, const ChatOptions& options, Transcript& transcript, Turns& turns,
          Streams& streams)
      : agent_(agent),
        options_(options),
        transcript_(transcript),
        turns_(turns),
        streams_(streams) {}
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  // For a call of this turn, without the answer itself.
  // Cost  reads all that fits: once for each call
  [[nodiscard]] Json of(const TurnRecord& turn);
  // Of its messages those that no turn before it has answered; if there are none, all.
  [[nodiscard]] std::vector<std::string> own_ids(const TurnRecord& turn) const;
  // The messages of users that wait for their turn.
  [[nodiscard]] std::vector<std::string> waiting_ids() const;
  // Those, and of the turn that runs its messages and its answer, which may not be stored yet. No
  // client writes or removes them.
  [[nodiscard]] std::vector<std::string> ids_in_use() const;

  [[nodiscard]] Summary summary_for(const TurnRecord& turn);
  void keep(const Summary& summary);
  void forget_summary();

 private:
  ChatAgent& agent_;
  const ChatOptions& options_;
  Transcript& transcript_;
  Turns& turns_;
  Streams& streams_;
};

}  // namespace hearth::chat
