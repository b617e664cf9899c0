#pragma once
// An agent's fibers over a real database that can crash.

#include "durable/database_fixture.hpp"
#include "durable/dead_fiber.hpp"
#include "durable/fibers.hpp"
#include "durable/json_members.hpp"
#include "json/json.hpp"
#include "storage/agent_schema.hpp"
#include "storage/statement.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

namespace hearth::durable {

class FibersFixture : public DatabaseFixture {
 protected:
  FibersFixture() { open(); }

  // As after a kill of the process: only committed data is left.
  void crash() { open(); }
  // As crash(), in this agent's code. `fiber`: the fiber that ran; nothing: unknown.
  void crash_in_its_code(std::optional<FiberRow> fiber = std::nullopt) {
    open(EndedProcess{fiber});
  }
  void open(const std::optional<EndedProcess>& ended = std::nullopt) {
    fibers_.reset();
    open_database();
    if (ended) {
      Jobs(*database_).count_crash(*ended);
      database_->commit();
    }
    fibers_.emplace(*database_, clock_, random_, settings_);
    fibers_->load();
  }
  void sql(const char* text) {
    database_->begin_write();
    storage::Statement(database_->connection(), text).execute();
    database_->commit();
  }
  std::int64_t count(const char* select) {
    storage::create_job_views(database_->connection(), storage::ViewsIn::kConnection);
    storage::Statement statement(database_->connection(), select);
    storage::Rows rows = statement.query();
    return rows.next() ? rows.integer(0) : -1;
  }

  static FiberRequest request(std::string_view id = "") { return {.name = "report", .id = id}; }
  Fibers::Started start(const FiberRequest& wanted) {
    auto started = fibers_->start(wanted);
    EXPECT_TRUE(started.has_value());
    database_->commit();
    return *started;
  }
  // Why none is started.
  Errc refusal(const FiberRequest& wanted) { return fibers_->start(wanted).error().code; }
  Fibers::Started start(std::string_view id) { return start(request(id)); }
  // As crash(), and the next instance offers an interrupted fiber.
  void interrupt() {
    crash();
    EXPECT_TRUE(recover());
  }
  // Starts one whose process is killed then. The next instance offers it.
  void start_interrupted(const FiberRequest& wanted,
                         std::optional<std::string_view> snapshot = std::nullopt) {
    const FiberHandle fiber = start(wanted).fiber;
    if (snapshot) stash(fiber, *snapshot);
    interrupt();
  }
  FiberChange settle(FiberHandle fiber, FiberStatus status, std::string_view body = "") {
    auto change = fibers_->settle(fiber, status, body);
    EXPECT_TRUE(change.has_value());
    database_->commit();
    return *change;
  }
  void stash(FiberHandle fiber, std::string_view snapshot) {
    EXPECT_TRUE(fibers_->stash(fiber, snapshot));
    database_->commit();
  }
  // Goes on with one that is being offered.
  FiberHandle resume(std::string_view id) {
    const auto fiber = fibers_->resume(id);
    EXPECT_TRUE(fiber) << id;
    database_->commit();
    return fiber ? *fiber : 0;
  }
  void recovered(std::string_view id) {
    EXPECT_TRUE(fibers_->recovery().recovered(id, "")) << id;
    database_->commit();
  }
  void unknown(std::string_view id) {
    EXPECT_TRUE(fibers_->recovery().unknown(id)) << id;
    database_->commit();
  }
  void retry(std::string_view id) {
    EXPECT_TRUE(fibers_->records().retry(id)) << id;
    database_->commit();
  }
  void cancel(std::string_view id, std::string_view why) {
    EXPECT_TRUE(fibers_->records().cancel(id, "", why)) << id;
    database_->commit();
  }
  void told(std::string_view id, bool heard) {
    fibers_->ends().told(id, heard);
    database_->commit();
  }
  // As crash(), after an eviction, a shutdown or an update of the code.
  void leave_on_purpose() {
    fibers_->interrupt_on_purpose();
    database_->commit();
    crash();
  }
  Json inspect(std::string_view id) {
    const auto record = fibers_->records().inspect(id, "");
    return record ? *parse_json(*record) : Json();
  }
  std::string status(std::string_view id) {
    const Json record = inspect(id);
    return record.is_null() ? "none" : record["status"].get<std::string>();
  }
  // The next fiber that is offered, as members of its event.
  std::optional<Json> recover() {
    const auto fiber = fibers_->recovery().begin();
    (void)fibers_->recovery().line().take_given_up();
    std::optional<Json> body;
    if (fiber) {
      const Offered offered = fibers_->recovery().offer(fiber->row);
      body = Json{{"record", *parse_json(offered.record)}, {"reason", offered.reason}};
    }
    database_->commit();
    return body;
  }
  void die(const std::string& id, std::string_view why) {
    durable::die(*fibers_, *database_, id, why);
    database_->commit();
  }
  void hook_fails(std::string_view id, std::string_view why) {
    (void)fibers_->recovery().failed(id, why);
    database_->commit();
  }
  Json listed(const FiberFilter& filter) { return *parse_json(*fibers_->records().list(filter)); }
  static std::string ids(const Json& records) {
    std::string all;
    for (const Json& record : records) all += record["id"].get<std::string>() + " ";
    return all;
  }

  FiberSettings settings_;
  std::optional<Fibers> fibers_;
};

}  // namespace hearth::durable
