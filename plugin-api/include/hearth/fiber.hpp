#pragma once
// Fibers: work that survives an eviction, a crash and an update of the code.
//
//     static void methods(hearth::Methods<Importer>& m) {
//       m.fiber("import", &Importer::import);
//     }
//     hearth::Task<int> import(Order order, hearth::FiberContext& fiber) {
//       int page = fiber.snapshot().is_null() ? 0 : fiber.snapshot().get<int>();
//       for (; page < order.pages; ++page) {
//         sql("INSERT INTO pages VALUES (?, ?)", page, co_await fetch(page));
//         fiber.stash(page + 1);                       // from here on, this page is never fetched
//       }                                              // again
//       co_return page;
//     }
//     ... start_fiber("import", order); ...            // returns at once
//     ... co_await run_fiber<int>("import", order); ...  // waits for its value
//
// Promises  The name, the input and a record are on disk before the work's first instruction, each
//           checkpoint before stash() returns; the end is written in the transaction of the work's
//           last writes. While a fiber runs the agent is not idle. A checkpoint commits everything
//           that was written since the last wait: call stash() last in a step, so that its rows,
//           the state and the checkpoint belong together.
// Ends      with the function: by a value, or by an exception, which reaches the waiting caller or
//           the log. With max_retries it begins again first, unless the exception is final (Final)
//           or the should_retry that is listed with the function refuses. An eviction does not end
//           it, but destroys its frames: the fiber is interrupted.
// Recovery  After an eviction, a crash, or an update, and for another attempt, the function that is
//           listed under the name is called again, with the input and the last checkpoint. A class
//           that overrides on_fiber_recovered decides first. A fiber that neither the hook nor the
//           list of a version continues waits for a version that does; so does one whose input or
//           checkpoint the version cannot read.
// Requires  No transaction() is open: stash() and the begin and end of a fiber commit all earlier
//           writes.
// Threads   The agent's own. Several fibers may run at once, and each has its own checkpoint.
// Client    Changes of state count as those of the client whose event began the fiber; caller() may
//           have left.
//
// Instead of an input, a function that is not listed may be given, such as a lambda. It is kept as
// long as the fiber runs: a coroutine lambda may have captures here. Capture values, and `this`. In
// another instance on_fiber_recovered continues the fiber. In a class without that hook, the same
// call with the same key does, such as from on_start. So begin from snapshot() here too.

#include <hearth/detail/activation.hpp>
#include <hearth/fiber_record.hpp>
#include <hearth/fields.hpp>
#include <hearth/hash.hpp>
#include <hearth/operation_record.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hearth {

namespace detail {

class FiberRoot;

// A fiber that the host has just begun or resumed.
struct FiberRow {
  hearth_fiber handle = 0;
  std::string id;
  std::string name;
  Json snapshot;
};

}  // namespace detail

// An interrupted fiber, as on_fiber_recovered() gets it.
struct RecoveredFiber {
  std::string id;
  std::string name;
  Json input;     // the input that it was begun with
  Json snapshot;  // the last checkpoint; null if there was none
  Json metadata;
  std::optional<std::string> key;
  Time created_at;
  int attempt = 1;  // from 1; counts from 1 again after a checkpoint that differs from the last
  // Or "retry": its work failed, and begins again; "lane": it begins, by a function that is not
  // listed and was given in another instance.
  std::string reason = "interrupted";
  // Its effects outside, by operation().
  RecoveredOperations ops;
  // The whole record.
  std::optional<FiberRecord> record;
};

// Given to a fiber's function.
// Lifetime  Until the function has ended, waits included.
class FiberContext {
 public:
  FiberContext(detail::Activation& activation, detail::FiberRow row)
      : activation_(activation),
        row_(std::move(row)),
        checkpoint_(stable_hash(to_text(row_.snapshot))) {}
  FiberContext(const FiberContext&) = delete;
  FiberContext& operator=(const FiberContext&) = delete;

  // Its id in the table cf_agents_runs and in logs; the same in each of its attempts.
  [[nodiscard]] const std::string& id() const noexcept { return row_.id; }
  [[nodiscard]] const std::string& name() const noexcept { return row_.name; }
  // The checkpoint that this attempt began with; null if there was none.
  [[nodiscard]] const Json& snapshot() const noexcept { return row_.snapshot; }
  // The same as a struct with HEARTH_FIELDS, or any type that read_json() takes; nullopt for null.
  // Failure   Unreadable: leave it alone, and the fiber waits for a version that can read it.
  template <class T>
  [[nodiscard]] std::optional<T> snapshot() const {
    return detail::read_stored<std::optional<T>>(row_.snapshot, "checkpoint");
  }

  // Replaces the checkpoint, whole. On disk when it returns.
  // Failure   HostError: GONE once the fiber has ended or was cancelled, LIMIT.
  void stash(const Json& checkpoint);

  // True if the work has not asked for this mark before, in any of its runs. A frame that is sent
  // in the same turn is sent once over recoveries:
  //     if (fiber.once("answer-7")) broadcast(answer);
  // A mark is 1 to 256 bytes of UTF-8.
  // Failure   HostError: GONE once the fiber has ended or was cancelled, LIMIT (10,000 marks).
  [[nodiscard]] bool once(std::string_view mark);

  // cancel_fiber() asks it to stop. A fiber that is never cancelled need not check it.
  [[nodiscard]] std::stop_token stop_token() const noexcept { return stop_.get_token(); }

 private:
  friend class detail::FiberRoot;
  detail::Activation& activation_;
  detail::FiberRow row_;
  std::stop_source stop_;
  // The number of its last child fiber of each name since the last checkpoint.
  std::map<std::string, int> children_;
  std::uint64_t checkpoint_;  // the last one, as a hash
};

namespace detail {

inline const hearth_fibers_v1& fiber_table(const Activation& activation) {
  return need(activation.tables().fibers, HEARTH_EXT_FIBERS);
}

}  // namespace detail

}  // namespace hearth
