#include "runtime/admission.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <iterator>

namespace hearth::runtime {
namespace {

// An agent needs up to three descriptors: its file, the WAL, and the WAL again for syncing. The
// others are for agents that come in meanwhile, and for clients' sockets: no agent is needed
// without clients.
constexpr unsigned kWantedFiles = 8;

// Each ending agent gives back two or more.
constexpr std::size_t kEnoughEnd = kWantedFiles / 2;

// Sockets and other shards give back descriptors too, without telling Admission.
constexpr std::chrono::milliseconds kLookAgainAfter{10};

// An agent that becomes idle tells Admission at the end of its turn. This wait is for agents that
// become idle without a turn.
constexpr std::chrono::milliseconds kNoneIdleFor{100};

// Enough for the threads that close databases; each end takes the loop a moment.
constexpr std::size_t kMostSentAway = 8;
constexpr std::size_t kMostAsked = 4;

}  // namespace

Admission::Admission(ShardLoop& loop, std::size_t max_live, ObjectPlaces& places,
                     std::function<bool(unsigned count)> has_files)
    : loop_(loop), max_live_(max_live), places_(places), has_files_(std::move(has_files)) {
  places_.join(loop, *this);
}

Admission::Verdict Admission::ask(Applicant& agent) {
  Place& place = agent.place();
  if (place.has_room) return {};
  const Need need = agent.need();
  if (place.waiting) {
    Lanes& lanes = is_in(lanes_, place) ? lanes_ : object_lanes_;
    if (place.line == &lanes[1] && need.is_awaited) {
      leave_line(agent);
      join(lanes, agent, true);
    }
    return {Answer::kWait, RoomLack::kAgents};
  }
  const bool others_wait = need.is_object && size(object_lanes_) > 0;
  const RoomLack lack = others_wait ? RoomLack::kObjects : find_room(agent, need);
  if (lack == RoomLack::kNothing) return {};
  Lanes& lanes = lanes_for(lack);
  if (size(lanes) == 0 && !may_come(lack)) {
    give_back_place(agent);
    return {Answer::kRefused, lack};
  }
  join(lanes, agent, need.is_awaited);
  if (lack == RoomLack::kAgents) make_room();
  if (timer_ == 0) serve_in(kLookAgainAfter);
  return {Answer::kWait, lack};
}

bool Admission::ask_again(Applicant& agent) {
  Place& place = agent.place();
  const SteadyTime now = loop_.clock().steady_now();
  if (place.lacks_since && now - *place.lacks_since >= kLongestWait) return false;
  // First of its lane: as if it had asked when that one did.
  const bool is_awaited = agent.need().is_awaited;
  const Line& lane = lanes_[is_awaited ? 0 : 1];
  if (!lane.empty())
    place.lacks_since =
        std::min(place.lacks_since.value_or(now), lane.front()->place().lacks_since.value_or(now));
  join(lanes_, agent, is_awaited, true);
  serve_in(kLookAgainAfter);
  return true;
}

// In the order in which they first asked.
void Admission::join(Lanes& lanes, Applicant& agent, bool is_awaited, bool is_first) {
  Place& place = agent.place();
  if (!place.lacks_since) place.lacks_since = loop_.clock().steady_now();
  if (!is_awaited) places_.work_waits();
  Line& lane = lanes[is_awaited ? 0 : 1];
  auto before = is_first ? lane.begin() : lane.end();
  while (before != lane.begin() && (*std::prev(before))->place().lacks_since > place.lacks_since)
    --before;
  place.waiting = lane.insert(before, &agent);
  place.line = &lane;
  note_place(agent);
}

bool Admission::is_in(const Lanes& lanes, const Place& place) {
  return place.waiting && (place.line == &lanes[0] || place.line == &lanes[1]);
}

void Admission::note_place(Applicant& agent) {
  Place& place = agent.place();
  const bool has_one = is_in(lanes_, place) && place.has_object_place;
  if (has_one == place.waits_with_place) return;
  place.waits_with_place = has_one;
  places_in_line_ = has_one ? places_in_line_ + 1 : places_in_line_ - 1;
}

bool Admission::leave_line(Applicant& agent) {
  Place& place = agent.place();
  if (!place.waiting) return false;
  if (place.line == &lanes_[1] || place.line == &object_lanes_[1]) places_.work_goes_on();
  place.line->erase(*place.waiting);
  place.waiting.reset();
  note_place(agent);
  return true;
}

bool Admission::drop_out(Applicant& agent) {
  agent.place().lacks_since.reset();
  if (!leave_line(agent)) return false;
  give_back_place(agent);
  return true;
}

void Admission::enter(Applicant& agent) {
  HEARTH_ASSERT(!agent.place().resident, "an agent comes in twice");
  agent.place().resident = residents_.insert(residents_.end(), &agent);
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
  if (std::exchange(place.was_sent_away, false)) --sent_away_;
  if (std::exchange(place.has_object_place, false)) {
    const std::function<void()> heir = std::exchange(place.heir, {});
    places_.has_left(heir != nullptr);
    if (heir) heir();
  }
  --leaving_;
  --ending_;
  if (size(lanes_) + size(object_lanes_) > 0) serve_in(std::chrono::milliseconds(0));
}

RoomLack Admission::find_room(Applicant& agent, const Need& need) {
  if (need.is_object && !find_object_place(agent)) return RoomLack::kObjects;
  const Place& place = agent.place();
  const bool is_first = is_in(lanes_, place) && place.line->front() == &agent;
  if (size(lanes_) > 0 && !is_first) return RoomLack::kAgents;
  if (!has_files_(kWantedFiles)) {
    if (ending_ < kEnoughEnd) (void)evict_idle();
    return RoomLack::kFiles;
  }
  if (residents_.size() < max_live_) return RoomLack::kNothing;
  make_room();
  return RoomLack::kAgents;
}

void Admission::make_room() {
  const std::size_t wanted = std::clamp<std::size_t>(size(lanes_), 1, kMostSentAway);
  while (sent_away_ < wanted && evict_idle()) {
  }
}

bool Admission::may_come(RoomLack lack) const {
  if (lack == RoomLack::kObjects)
    return asked_ > 0 || places_in_line_ > 0 || places_.may_be_free_soon();
  return leaving_ > 0;
}

bool Admission::find_object_place(Applicant& agent) {
  bool& has_place = agent.place().has_object_place;
  if (has_place) return true;
  // A further object gets no place while objects with a place wait for room.
  if (places_in_line_ > 0) return false;
  has_place = std::exchange(has_place_, false) || places_.take();
  if (!has_place) ask_for_places();
  return has_place;
}

void Admission::ask_for_places() {
  const std::size_t wanted = std::clamp<std::size_t>(size(object_lanes_), 1, kMostAsked);
  const SteadyTime now = loop_.clock().steady_now();
  for (; asked_ < wanted && now >= none_idle_anywhere_until_; ++asked_) {
    const auto answer =
        places_.ask(loop_, [this](ObjectPlaces::Answer later) { places_answered(later); });
    if (answer == ObjectPlaces::Answer::kNone) return;
  }
}

void Admission::places_answered(ObjectPlaces::Answer answer) {
  --asked_;
  has_place_ = answer == ObjectPlaces::Answer::kPlace;
  if (answer == ObjectPlaces::Answer::kNone)
    none_idle_anywhere_until_ = loop_.clock().steady_now() + kNoneIdleFor;
  serve();
  // The first object may not need it any more.
  if (std::exchange(has_place_, false)) places_.give_back();
}

void Admission::give_back_place(Applicant& agent) {
  if (std::exchange(agent.place().has_object_place, false)) places_.give_back();
}

std::optional<SteadyTime> Admission::object_idle_since() {
  const Applicant* const agent = idle_object();
  return agent == nullptr ? std::nullopt : std::optional(agent->place().used_at);
}

bool Admission::spare_object(std::function<void()> left) {
  Applicant* const agent = idle_object();
  if (agent == nullptr) return false;
  agent->place().heir = std::move(left);
  send_away(*agent);
  return true;
}

void Admission::send_away(Applicant& agent) {
  if (!std::exchange(agent.place().was_sent_away, true)) ++sent_away_;
  agent.leave_for_room();
}

// Objects in use keep their places in the order of use.
Admission::Applicant* Admission::idle_object() {
  const SteadyTime now = loop_.clock().steady_now();
  if (now < no_object_idle_until_) return nullptr;
  for (Applicant* const agent : residents_) {
    if (agent->place().has_object_place && agent->may_leave_for_room()) return agent;
  }
  no_object_idle_until_ = now + kNoneIdleFor;
  return nullptr;
}

// Looks at all residents, but only if some may have become idle.
bool Admission::evict_idle() {
  const SteadyTime now = loop_.clock().steady_now();
  if (now < none_idle_until_) return false;
  for (std::size_t left = residents_.size(); left > 0; --left) {
    Applicant* const agent = residents_.front();
    if (agent->may_leave_for_room()) {
      send_away(*agent);
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
  bool goes = false;
  const std::size_t first = turn_;
  for (Lanes* const lanes : {&object_lanes_, &lanes_}) {  // an object may need room next
    for (const std::size_t lane : {first, 1 - first}) goes |= serve_first((*lanes)[lane]);
  }
  if (size(lanes_) + size(object_lanes_) == 0) return;
  // The next agent is served from the loop, so that other ready tasks run in between.
  serve_in(goes ? std::chrono::milliseconds(0) : kLookAgainAfter);
}

bool Admission::serve_first(Line& lane) {
  if (lane.empty()) return false;
  Applicant& agent = *lane.front();
  Place& place = agent.place();
  const Need need = agent.need();
  if (!need.is_wanted) {
    agent.take_turn({Answer::kRefused, RoomLack::kNothing});
    return true;
  }
  const SteadyTime now = loop_.clock().steady_now();
  if (now - place.lacks_since.value_or(now) >= kLongestWait) {
    const bool is_full = residents_.size() >= max_live_;
    agent.take_turn({Answer::kRefused, is_in(object_lanes_, place) ? RoomLack::kObjects
                                       : is_full                   ? RoomLack::kAgents
                                                                   : RoomLack::kFiles});
    return true;
  }
  const RoomLack lack = find_room(agent, need);
  if (lack == RoomLack::kNothing) {
    turn_ = &lane == &lanes_[0] || &lane == &object_lanes_[0] ? 1 : 0;
    // Making room may have removed the first agent from the line.
    leave_line(agent);
    place.has_room = true;
    agent.take_turn({});
    place.has_room = false;
    if (!agent.is_resident()) give_back_place(agent);
    return true;
  }
  Lanes& its_lanes = lanes_for(lack);
  if (place.waiting && !is_in(its_lanes, place)) {
    leave_line(agent);
    join(its_lanes, agent, need.is_awaited);
    return true;
  }
  note_place(agent);
  if (may_come(lack)) return false;
  agent.take_turn({Answer::kRefused, lack});
  return true;
}

}  // namespace hearth::runtime
