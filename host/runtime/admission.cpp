#include "runtime/admission.hpp"

#include <algorithm>

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
  if (agent.place().has_room) return {};
  const Need need = agent.need();
  if (agent.stands_in_line()) {
    RoomLine& line = line_.contains(agent) ? line_ : object_line_;
    if (line.is_for_work(agent) && need.is_awaited) {
      leave_line(agent);
      join(line, agent, true);
    }
    return {Answer::kWait, RoomLack::kAgents};
  }
  const bool others_wait = need.is_object && object_line_.size() > 0;
  const RoomLack lack = others_wait ? RoomLack::kObjects : find_room(agent, need);
  if (lack == RoomLack::kNothing) return {};
  RoomLine& line = line_for(lack);
  if (line.size() == 0 && !may_come(lack)) {
    give_back_place(agent);
    return {Answer::kRefused, lack};
  }
  join(line, agent, need.is_awaited);
  if (lack == RoomLack::kAgents) make_room();
  if (timer_ == 0) serve_in(kLookAgainAfter);
  return {Answer::kWait, lack};
}

bool Admission::ask_again(Applicant& agent) {
  RoomApplicant::Place& place = agent.place();
  const SteadyTime now = loop_.clock().steady_now();
  if (place.lacks_since && now - *place.lacks_since >= kLongestWait) return false;
  // First of its lane: as if it had asked when that one did.
  const bool is_awaited = agent.need().is_awaited;
  if (const Applicant* const first = line_.first(is_awaited ? 0 : 1))
    place.lacks_since =
        std::min(place.lacks_since.value_or(now), first->place().lacks_since.value_or(now));
  join(line_, agent, is_awaited, true);
  serve_in(kLookAgainAfter);
  return true;
}

void Admission::join(RoomLine& line, Applicant& agent, bool is_awaited, bool is_first) {
  std::optional<SteadyTime>& since = agent.place().lacks_since;
  if (!since) since = loop_.clock().steady_now();
  if (!is_awaited) places_.work_waits();
  line.join(agent, is_awaited, is_first);
  if (line_.contains(agent) && agent.place().has_object_place) with_place_ = &agent;
}

bool Admission::leave_line(Applicant& agent) {
  if (!agent.stands_in_line()) return false;
  if (with_place_ == &agent) with_place_ = nullptr;
  if ((line_.contains(agent) ? line_ : object_line_).leave(agent)) places_.work_goes_on();
  return true;
}

bool Admission::drop_out(Applicant& agent) {
  agent.place().lacks_since.reset();
  if (!leave_line(agent)) return false;
  give_back_place(agent);
  return true;
}

void Admission::left(Applicant& agent) {
  agent.place().lacks_since.reset();
  left_without_files(agent);
}

void Admission::left_without_files(Applicant& agent) {
  residents_.left(agent);
  RoomApplicant::Place& place = agent.place();
  if (std::exchange(place.has_object_place, false)) {
    const std::function<void()> heir = std::exchange(place.heir, {});
    places_.has_left(heir != nullptr);
    if (heir) heir();
  }
  if (line_.size() + object_line_.size() > 0) serve_in(std::chrono::milliseconds(0));
}

RoomLack Admission::find_room(Applicant& agent, const Need& need) {
  if (need.is_object && !find_object_place(agent)) return RoomLack::kObjects;
  const bool is_first = line_.first(0) == &agent || line_.first(1) == &agent;
  if (line_.size() > 0 && !is_first) return RoomLack::kAgents;
  if (!has_files_(kWantedFiles)) {
    if (residents_.count_ending() < kEnoughEnd)
      (void)residents_.send_idle_away(loop_.clock().steady_now());
    return RoomLack::kFiles;
  }
  if (residents_.size() < max_live_) return RoomLack::kNothing;
  make_room();
  return RoomLack::kAgents;
}

void Admission::make_room() {
  const std::size_t wanted = std::clamp<std::size_t>(line_.size(), 1, kMostSentAway);
  const SteadyTime now = loop_.clock().steady_now();
  while (residents_.count_sent_away() < wanted && residents_.send_idle_away(now)) {
  }
}

bool Admission::may_come(RoomLack lack) const {
  if (lack == RoomLack::kObjects)
    return asked_ > 0 || with_place_ != nullptr || places_.may_be_free_soon();
  return residents_.count_leaving() > 0;
}

bool Admission::find_object_place(Applicant& agent) {
  bool& has_place = agent.place().has_object_place;
  if (has_place) return true;
  // A further object gets no place while objects with a place wait for room.
  if (with_place_ != nullptr) return false;
  has_place = std::exchange(has_place_, false) || places_.take();
  if (!has_place) ask_for_places();
  return has_place;
}

void Admission::ask_for_places() {
  const std::size_t wanted = std::clamp<std::size_t>(object_line_.size(), 1, kMostAsked);
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
    none_idle_anywhere_until_ = loop_.clock().steady_now() + Residents::kNoneIdleFor;
  serve();
  // The first object may not need it any more.
  if (std::exchange(has_place_, false)) places_.give_back();
}

void Admission::give_back_place(Applicant& agent) {
  if (std::exchange(agent.place().has_object_place, false)) places_.give_back();
}

std::optional<SteadyTime> Admission::object_idle_since() {
  const Applicant* const agent = residents_.idle_object(loop_.clock().steady_now());
  return agent == nullptr ? std::nullopt : std::optional(agent->place().used_at);
}

bool Admission::spare_object(std::function<void()> left) {
  Applicant* const agent = residents_.idle_object(loop_.clock().steady_now());
  if (agent == nullptr) return false;
  agent->place().heir = std::move(left);
  residents_.send_away(*agent);
  return true;
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
  for (RoomLine* const line : {&object_line_, &line_}) {  // an object may need room next
    for (const std::size_t lane : {first, 1 - first}) goes |= serve_first(*line, lane);
  }
  if (line_.size() + object_line_.size() == 0) return;
  // The next agent is served from the loop, so that other ready tasks run in between.
  serve_in(goes ? std::chrono::milliseconds(0) : kLookAgainAfter);
}

bool Admission::serve_first(RoomLine& line, std::size_t lane) {
  if (line.first(lane) == nullptr) return false;
  Applicant& agent = *line.first(lane);
  RoomApplicant::Place& place = agent.place();
  const Need need = agent.need();
  if (!need.is_wanted) {
    agent.take_turn({Answer::kRefused, RoomLack::kNothing});
    return true;
  }
  const SteadyTime now = loop_.clock().steady_now();
  if (now - place.lacks_since.value_or(now) >= kLongestWait) {
    const bool is_full = residents_.size() >= max_live_;
    agent.take_turn({Answer::kRefused, &line == &object_line_ ? RoomLack::kObjects
                                       : is_full              ? RoomLack::kAgents
                                                              : RoomLack::kFiles});
    return true;
  }
  const RoomLack lack = find_room(agent, need);
  if (lack == RoomLack::kNothing) {
    turn_ = 1 - lane;
    // Making room may have removed the first agent from the line.
    leave_line(agent);
    place.has_room = true;
    agent.take_turn({});
    place.has_room = false;
    if (!agent.is_resident()) give_back_place(agent);
    return true;
  }
  RoomLine& its_line = line_for(lack);
  if (agent.stands_in_line() && !its_line.contains(agent)) {
    leave_line(agent);
    join(its_line, agent, need.is_awaited);
    return true;
  }
  if (line_.contains(agent) && agent.place().has_object_place) with_place_ = &agent;
  if (may_come(lack)) return false;
  agent.take_turn({Answer::kRefused, lack});
  return true;
}

}  // namespace hearth::runtime
