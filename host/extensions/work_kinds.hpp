#pragma once
// The kinds of one agent's durable work. Each but the fibers is made at its first use.

#include "durable/alarms.hpp"
#include "durable/fibers.hpp"
#include "durable/notices.hpp"
#include "durable/operations.hpp"
#include "durable/queue.hpp"
#include "durable/schedules.hpp"
#include "extensions/class_settings.hpp"

#include <memory>
#include <optional>
#include <tuple>
#include <vector>

namespace hearth::extensions {

// Threads    The agent's shard.  Lifetime  Parts: WorkPart::close() before the database is closed.
// Failure    StorageError.
class WorkKinds {
 public:
  // The references outlive this object.
  WorkKinds(storage::AgentDatabase& database, const Clock& clock, Random& random,
            const ClassSettings& settings);
  // As DurableWork::load().
  void load(const std::optional<durable::EndedProcess>& ended, bool has_code);

  [[nodiscard]] durable::Jobs& jobs() { return jobs_; }  // of all kinds
  [[nodiscard]] const durable::Jobs& jobs() const { return jobs_; }
  [[nodiscard]] durable::Fibers& fibers() { return fibers_; }
  [[nodiscard]] const durable::Fibers& fibers() const { return fibers_; }
  template <class Kind>
  [[nodiscard]] Kind& get();
  // Null: the agent has none, and had none in this instance.
  template <class Kind>
  [[nodiscard]] Kind* find() const {
    return std::get<std::unique_ptr<Kind>>(kinds_).get();
  }
  // Those that exist: the fibers, their tellings, the others.
  [[nodiscard]] const std::vector<durable::WorkPart*>& parts() const { return parts_; }

 private:
  storage::AgentDatabase& database_;
  const Clock& clock_;
  Random& random_;
  const ClassSettings& settings_;
  bool has_code_ = true;  // when it was loaded

  durable::Jobs jobs_;
  durable::Fibers fibers_;
  std::tuple<std::unique_ptr<durable::Schedules>, std::unique_ptr<durable::Queue>,
             std::unique_ptr<durable::Notices>, std::unique_ptr<durable::Alarms>,
             std::unique_ptr<durable::Operations>>
      kinds_;
  std::vector<durable::WorkPart*> parts_;
};

}  // namespace hearth::extensions
