#pragma once
// The wall clocks of the world: what a place calls an instant, and the other way round.

#include "base/error.hpp"

#include <cstdint>
#include <string_view>

// So that the library's header stays out of this one.
namespace date {
class time_zone;  // NOLINT(readability-identifier-naming): the name is the library's
}

namespace hearth::durable {

// One zone of the IANA database, as this machine has it (Debian's package tzdata). Small, copied
// freely.
//
// Instants are seconds since 1970-01-01T00:00Z. A local time is written as the seconds between
// 1970-01-01T00:00 on the same wall clock and it, as if that clock had never been changed.
//
// Promises
//  P1 UTC       "UTC" and the empty name need no database and cannot fail.
//  P2 Far ahead The database lists changes up to 2037. Later years follow the rules of the last
//  years that are listed.
// Threads    All members may be called from any thread.
class TimeZone {
 public:
  TimeZone() = default;  // UTC

  // Failure: kInvalidArgument: no zone has this name (which the message quotes); kUnavailable: this
  // machine has no database, or one that cannot be read.
  static Result<TimeZone> find(std::string_view name);

  // A time around an instant during which the clock is not changed: [from, until). Not always the
  // longest.
  struct Stretch {
    std::int64_t from = 0;
    std::int64_t until = 0;
    std::int64_t offset = 0;  // local time less UTC
  };
  [[nodiscard]] Stretch stretch(std::int64_t instant) const;

  // The instant of a local time. Of one that comes twice the first; of one that is skipped the
  // first instant after the gap.
  [[nodiscard]] std::int64_t instant(std::int64_t local) const;

 private:
  explicit TimeZone(const date::time_zone& zone) : zone_(&zone) {}

  const date::time_zone* zone_ = nullptr;  // null: UTC. The library keeps its zones for ever
};

}  // namespace hearth::durable
