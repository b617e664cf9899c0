// Marks: things that a fiber's work does only once, however often it is recovered.
#include "base/sha256.hpp"
#include "base/utf8.hpp"
#include "durable/managed_fibers.hpp"

#include <array>
#include <cstddef>

namespace hearth::durable {

using storage::Param;

namespace {

constexpr std::size_t kMaxMarkBytes = 256;

// The part number of a mark's document: 62 bits of its hash, after the numbers of other documents.
std::int64_t part_of(std::string_view mark) {
  const Sha256Digest digest = sha256(mark);
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i)
    number = number << 8U | std::to_integer<std::uint64_t>(std::as_bytes(std::span(digest))[i]);
  return static_cast<std::int64_t>(number >> 2U) + kFirstMark;
}

}  // namespace

Result<bool> ManagedFibers::once(FiberHandle fiber, std::string_view mark) {
  const std::string* const id = fibers_.managed_id(fiber);
  if (id == nullptr) return Error{Errc::kNotFound, "the fiber has ended"};
  if (mark.empty() || mark.size() > kMaxMarkBytes || !is_valid_utf8(mark))
    return Error{Errc::kInvalidArgument, "what is done once has a name of 1 to 256 bytes of UTF-8"};
  const auto job = jobs().find(JobKind::kManaged, *id);
  if (!job) return Error{Errc::kNotFound, "the fiber has ended"};
  // If two marks have one hash, the second gets the next free number.
  for (std::int64_t part = part_of(mark);; ++part) {
    const auto there = jobs().document(job->seq, static_cast<JobPart>(part));
    if (there && *there == mark) return false;
    if (there) continue;
    const auto count =
        jobs().number("SELECT count(*) FROM cf_agents_job_documents WHERE job = ? AND part >= 16",
                      std::array{Param(job->seq)});
    if (count.value_or(0) >= static_cast<std::int64_t>(kMostMarks))
      return Error{Errc::kLimitExceeded, "a fiber does at most 10,000 things once"};
    jobs().prepare_write();
    jobs().put(job->seq, static_cast<JobPart>(part), mark);
    return true;
  }
}

}  // namespace hearth::durable
