#include "runtime/admission.hpp"

#include "base/assert.hpp"

namespace hearth::runtime {
namespace {

// An agent has up to three (its file, the WAL, the WAL again for syncing). The others are for those
// who come in meanwhile, and so that clients find one for their socket: without clients nobody
// would ask for an agent.
constexpr unsigned kWantedFiles = 8;

// Each of those that end gives back two or more.
constexpr std::size_t kEnoughEnd = kWantedFiles / 2;

// Sockets and other shards give back descriptors too, and do not say so.
constexpr std::chrono::milliseconds kLookAgainAfter{10};

// An agent that becomes idle says so at the end of its turn; this is for what becomes idle without
// one.
constexpr std::chrono::milliseconds kNoneIdleFor{100};

}  // namespace

Admission::Admission(ShardLoop& loop, std::size_t max_live, std::size_t max_objects,
                     std::function<bool(unsigned count)> has_files)
    : loop_(loop),
      max_live_(max_live),
      max_objects_(max_objects),
      has_files_(std::move(has_files)) {}

Admission::Verdict Admission::ask(Applicant& agent) {
  if (agent.place().has_room) return {};
  if (agent.place().waiting) return {Answer::kWait, RoomLack::kAgents};
  const bool is_first = line_.empty();
  const RoomLack lack = is_first ? find_room(agent) : RoomLack::kAgents;
  if (lack == RoomLack::kNothing) return {};
  if (lack == RoomLack::kObjects || (is_first && leaving_ == 0)) return {Answer::kRefused, lack};
  join(agent, false);
  return {Answer::kWait, lack};
}

bool Admission::ask_again(Applicant& agent) {
  Place& place = agent.place();
  const SteadyTime now = loop_.clock().steady_now();
  if (place.lacks_since && now - *place.lacks_since >= kLongestWait) return false;
  join(agent, true);
  return true;
}

void Admission::join(Applicant& agent, bool is_first) {
  if (!agent.place().lacks_since) agent.place().lacks_since = loop_.clock().steady_now();
  agent.place().waiting = line_.insert(is_first ? line_.begin() : line_.end(), &agent);
  if (is_first || timer_ == 0) serve_in(kLookAgainAfter);
}

bool Admission::leave_line(Applicant& agent) {
  Place& place = agent.place();
  if (!place.waiting) return false;
  line_.erase(*place.waiting);
  place.waiting.reset();
  return true;
}

bool Admission::drop_out(Applicant& agent) {
  agent.place().lacks_since.reset();
  return leave_line(agent);
}

void Admission::enter(Applicant& agent) {
  HEARTH_ASSERT(!agent.place().resident, "an agent comes in twice");
  agent.place().resident = residents_.insert(residents_.end(), &agent);
  agent.place().counts_as_object = agent.is_object();
  if (agent.place().counts_as_object) ++objects_;
}

void Admission::left(Applicant& agent) {
  agent.place().lacks_since.reset();
  left_without_files(agent);
}

void Admission::left_without_files(Applicant& agent) {
  Place& place = agent.place();
  HEARTH_ASSERT(place.resident.has_value(), "an agent leaves that did not come in");
  residents_.erase(*place.resident);
  place.resident.reset();
  if (std::exchange(place.counts_as_object, false)) --objects_;
  --leaving_;
  --ending_;
  if (!line_.empty()) serve_in(std::chrono::milliseconds(0));
}

RoomLack Admission::find_room(const Applicant& agent) {
  if (!has_files_(kWantedFiles)) {
    if (ending_ < kEnoughEnd) (void)evict_idle();
    return RoomLack::kFiles;
  }
  // Who is evicted leaves a moment later; the limit is exceeded by one until then.
  if (residents_.size() >= max_live_ && !evict_idle()) return RoomLack::kAgents;
  if (objects_ >= max_objects_ && agent.is_object() && !evict_idle_object())
    return RoomLack::kObjects;
  return RoomLack::kNothing;
}

// Those that are in use keep their places in the order of use.
bool Admission::evict_idle_object() {
  const SteadyTime now = loop_.clock().steady_now();
  if (now < no_object_idle_until_) return false;
  for (Applicant* const agent : residents_) {
    if (!agent->place().counts_as_object || !agent->may_leave_for_room()) continue;
    agent->leave_for_room();
    return true;
  }
  no_object_idle_until_ = now + kNoneIdleFor;
  return false;
}

// All are looked at only if some may have become idle.
bool Admission::evict_idle() {
  const SteadyTime now = loop_.clock().steady_now();
  if (now < none_idle_until_) return false;
  for (std::size_t left = residents_.size(); left > 0; --left) {
    Applicant* const agent = residents_.front();
    if (agent->may_leave_for_room()) {
      agent->leave_for_room();
      return true;
    }
    residents_.splice(residents_.end(), residents_, residents_.begin());  // it is in use
  }
  none_idle_until_ = now + kNoneIdleFor;
  return false;
}

void Admission::serve_in(std::chrono::milliseconds wait) {
  loop_.cancel_timer(timer_);
  timer_ = loop_.call_at(loop_.clock().steady_now() + wait, [this] {
    timer_ = 0;
    serve();
  });
}

void Admission::serve() {
  if (line_.empty()) return;
  const bool goes = serve_first();
  // The next one from the loop: what else is ready comes in between.
  if (!line_.empty()) serve_in(goes ? std::chrono::milliseconds(0) : kLookAgainAfter);
}

bool Admission::serve_first() {
  Applicant& agent = *line_.front();
  if (!agent.is_wanted()) {
    agent.turn_away(RoomLack::kNothing);
    return true;
  }
  const RoomLack lack = find_room(agent);
  if (lack == RoomLack::kNothing) {
    // Making room may have ended the wait of the first one.
    leave_line(agent);
    agent.place().has_room = true;
    agent.come_in();
    agent.place().has_room = false;
    return true;
  }
  const SteadyTime now = loop_.clock().steady_now();
  const std::optional<SteadyTime>& since = agent.place().lacks_since;
  if (leaving_ > 0 && since && now - *since < kLongestWait) return false;
  agent.turn_away(lack);
  return true;
}

}  // namespace hearth::runtime
