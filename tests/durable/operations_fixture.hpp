#pragma once
// The ledger of an agent with fibers, which its tests kill and open again.

#include "durable/fibers_fixture.hpp"
#include "durable/operations.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::durable {

class OperationsFixture : public FibersFixture {
 protected:
  explicit OperationsFixture(OperationSettings settings = {})
      : ledger_settings_(std::move(settings)) {
    open_ledger();
  }
  ~OperationsFixture() override {
    ledger_.reset();  // before the database
  }
  void open_ledger() {
    ledger_.emplace(*database_, *fibers_, clock_, random_, ledger_settings_);
    ledger_->load();
    database_->commit();
  }
  void crash_all() {
    ledger_.reset();
    crash();
    open_ledger();
  }
  OperationBegun begin_request(const OperationRequest& request) {
    auto begun = ledger_->begin(request);
    EXPECT_TRUE(begun) << begun.error().message;
    database_->commit();
    return begun ? *std::move(begun) : OperationBegun();
  }
  using FibersFixture::settle;
  OperationState settle(const OperationBegun& begun, OperationOutcome outcome,
                        std::string_view body = "1") {
    const auto state = ledger_->settle(begun.operation, outcome, body);
    EXPECT_TRUE(state) << state.error().message;
    database_->commit();
    return state ? *state : OperationState::kRunning;
  }
  void stash(FiberHandle fiber, std::string_view checkpoint = "1") {
    const auto id = fibers_->stash(fiber, checkpoint);
    ASSERT_TRUE(id);
    ledger_->checkpointed(*id);
    database_->commit();
  }
  // Resumes the interrupted fiber.
  FiberHandle resume(const std::string& id = "f") {
    while (const auto fiber = fibers_->recovery().begin()) {
      (void)fibers_->recovery().offer(fiber->row);
      if (fiber->id != id) continue;
      return FibersFixture::resume(id);
    }
    ADD_FAILURE() << id << " is not offered";
    return 0;
  }
  Json record(const std::string& id) {
    const auto json = ledger_->records().inspect(id);
    return json ? *parse_json(*json) : Json();
  }
  std::string state(const std::string& id) {
    const Json found = record(id);
    return found.is_null() ? "none" : text_member(found, "state");
  }

  OperationSettings ledger_settings_;
  std::optional<Operations> ledger_;
};

}  // namespace hearth::durable
