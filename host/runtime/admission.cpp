#include "runtime/admission.hpp"

#include "base/assert.hpp"

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

}  // namespace

Admission::Admission(ShardLoop& loop, std::size_t max_live, ObjectPlaces& places,
                     std::function<bool(unsigned count)> has_files)
    : loop_(loop), max_live_(max_live), places_(places), has_files_(std::move(has_files)) {
  places_.join(loop, *this);
}

Admission::Verdict Admission::ask(Applicant& agent) {
  if (agent.place().has_room) return {};
  if (agent.place().waiting) return {Answer::kWait, RoomLack::kAgents};
  const bool others_wait = agent.is_object() && !object_line_.empty();
  const RoomLack lack = others_wait ? RoomLack::kObjects : find_room(agent);
  if (lack == RoomLack::kNothing) return {};
  Line& line = line_for(lack);
  if (line.empty() && !may_come(lack)) {
    give_back_place(agent);
    return {Answer::kRefused, lack};
  }
  join(line, line.end(), agent);
  if (timer_ == 0) serve_in(kLookAgainAfter);
  return {Answer::kWait, lack};
}

bool Admission::ask_again(Applicant& agent) {
  Place& place = agent.place();
  const SteadyTime now = loop_.clock().steady_now();
  if (place.lacks_since && now - *place.lacks_since >= kLongestWait) return false;
  join(line_, line_.begin(), agent);
  serve_in(kLookAgainAfter);
  return true;
}

void Admission::join(Line& line, Line::iterator before, Applicant& agent) {
  Place& place = agent.place();
  if (!place.lacks_since) place.lacks_since = loop_.clock().steady_now();
  place.waiting = line.insert(before, &agent);
  place.line = &line;
  note_place(agent);
}

void Admission::note_place(Applicant& agent) {
  Place& place = agent.place();
  const bool has_one = place.waiting && place.line == &line_ && place.has_object_place;
  if (has_one == place.waits_with_place) return;
  place.waits_with_place = has_one;
  places_in_line_ = has_one ? places_in_line_ + 1 : places_in_line_ - 1;
}

bool Admission::leave_line(Applicant& agent) {
  Place& place = agent.place();
  if (!place.waiting) return false;
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
  if (std::exchange(place.has_object_place, false)) places_.has_left();
  --leaving_;
  --ending_;
  if (!line_.empty() || !object_line_.empty()) serve_in(std::chrono::milliseconds(0));
}

RoomLack Admission::find_room(Applicant& agent) {
  if (agent.is_object() && !find_object_place(agent)) return RoomLack::kObjects;
  if (!line_.empty() && line_.front() != &agent) return RoomLack::kAgents;
  if (!has_files_(kWantedFiles)) {
    if (ending_ < kEnoughEnd) (void)evict_idle();
    return RoomLack::kFiles;
  }
  // An evicted agent leaves a moment later: until then the limit is exceeded by one.
  const bool has_room = residents_.size() < max_live_ || evict_idle();
  return has_room ? RoomLack::kNothing : RoomLack::kAgents;
}

bool Admission::may_come(RoomLack lack) const {
  if (lack == RoomLack::kObjects)
    return asks_for_place_ || places_in_line_ > 0 || places_.may_be_free_soon();
  return leaving_ > 0;
}

bool Admission::find_object_place(Applicant& agent) {
  bool& has_place = agent.place().has_object_place;
  if (has_place) return true;
  // A further object gets no place while objects with a place wait for room.
  if (places_in_line_ > 0) return false;
  has_place = std::exchange(has_place_, false) || places_.take();
  const SteadyTime now = loop_.clock().steady_now();
  if (has_place || asks_for_place_ || now < none_idle_anywhere_until_) return has_place;
  const auto answer =
      places_.ask(loop_, [this](ObjectPlaces::Answer later) { places_answered(later); });
  has_place = answer == ObjectPlaces::Answer::kPlace;
  asks_for_place_ = answer == ObjectPlaces::Answer::kLater;
  return has_place;
}

void Admission::places_answered(ObjectPlaces::Answer answer) {
  asks_for_place_ = false;
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
  return agent == nullptr ? std::nullopt : std::optional(agent->last_activity());
}

bool Admission::spare_object() {
  Applicant* const agent = idle_object();
  if (agent == nullptr) return false;
  agent->place().has_object_place = false;
  agent->leave_for_room();
  return true;
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
  const bool object_goes = serve_first(object_line_);  // first: it may need room next
  const bool goes = serve_first(line_) || object_goes;
  if (line_.empty() && object_line_.empty()) return;
  // The next agent is served from the loop, so that other ready tasks run in between.
  serve_in(goes ? std::chrono::milliseconds(0) : kLookAgainAfter);
}

bool Admission::serve_first(Line& line) {
  if (line.empty()) return false;
  Applicant& agent = *line.front();
  if (!agent.is_wanted()) {
    agent.turn_away(RoomLack::kNothing);
    return true;
  }
  const RoomLack lack = find_room(agent);
  Place& place = agent.place();
  if (lack == RoomLack::kNothing) {
    // Making room may have removed the first agent from the line.
    leave_line(agent);
    place.has_room = true;
    agent.come_in();
    place.has_room = false;
    if (!agent.is_resident()) give_back_place(agent);
    return true;
  }
  Line& its_line = line_for(lack);
  if (place.waiting && place.line != &its_line) {
    its_line.splice(its_line.end(), *place.line, *place.waiting);
    place.line = &its_line;
    note_place(agent);
    return true;
  }
  note_place(agent);
  const SteadyTime now = loop_.clock().steady_now();
  if (may_come(lack) && place.lacks_since && now - *place.lacks_since < kLongestWait) return false;
  agent.turn_away(lack);
  return true;
}

}  // namespace hearth::runtime
