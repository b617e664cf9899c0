// hearth.queue/1.

#include "extensions/durable_calls.hpp"

#include <hearth/ext/queue.h>

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace hearth::extensions {
namespace {

using namespace testing;

class AbiQueueTest : public DurableCallsTest {
 protected:
  using Filter = hearth_queue_filter;
  using Request = hearth_queue_request;

  static hearth_queue_request good_request() {
    hearth_queue_request request{};
    request.struct_size = sizeof request;
    request.callback = slice("send");
    return request;
  }
  static hearth_queue_filter good_filter() {
    hearth_queue_filter filter{};
    filter.struct_size = sizeof filter;
    return filter;
  }
  hearth_status push(const hearth_queue_request& request) {
    return queue_.push(host_, kAgent, &request, &record_);
  }
  hearth_status list(const hearth_queue_filter& filter) {
    return queue_.list(host_, kAgent, &filter, &record_);
  }
  hearth_status remove_all(const hearth_queue_filter& filter) {
    return queue_.remove_all(host_, kAgent, &filter, &removed_);
  }

  const hearth_queue_v1& queue_ = extension<hearth_queue_v1>(HEARTH_EXT_QUEUE);
  hearth_bytes record_{};
  std::uint64_t removed_ = 0;
};

TEST_F(AbiQueueTest, EveryFunctionKeepsTheCommonRules) {
  const auto request = good_request();
  const auto filter = good_filter();
  const DurableCall functions[] = {
      durable_call("push", true, queue_.push, &request, &record_),
      durable_call("get", false, queue_.get, slice("i"), &record_),
      durable_call("list", false, queue_.list, &filter, &record_),
      durable_call("remove", true, queue_.remove, slice("i")),
      durable_call("remove_all", true, queue_.remove_all, &filter, &removed_),
      durable_call("retry", true, queue_.retry, slice("i")),
  };
  expect_common_rules(functions);
  expect_io_error(functions[0]);
}

TEST_F(AbiQueueTest, EveryFieldArrivesAndTheRecordIsLent) {
  const hearth_queue_request request = {.struct_size = sizeof request,
                                        .max_attempts = 1,
                                        .callback = slice("send"),
                                        .payload = slice(R"({"to":"me"})"),
                                        .retry_base_ms = 2,
                                        .retry_max_ms = 3};
  ASSERT_EQ(push(request), HEARTH_OK) << last_error();
  for (const char* part : {R"("callback":"send")", R"("payload":{"to":"me"})",
                           R"("retry":{"max_attempts":1,"base_delay_ms":2,"max_delay_ms":3})"})
    EXPECT_TRUE(has(record_, part)) << view(record_);
  const std::string id = text_in(record_, "id");
  EXPECT_EQ(queue_.get(host_, kAgent, slice(id), &record_), HEARTH_OK);
  EXPECT_EQ(text_in(record_, "id"), id);
  EXPECT_EQ(queue_.retry(host_, kAgent, slice(id)), HEARTH_E_NOT_FOUND) << "it is not dead";
  EXPECT_EQ(queue_.remove(host_, kAgent, slice(id)), HEARTH_OK);
  EXPECT_EQ(queue_.remove(host_, kAgent, slice(id)), HEARTH_E_NOT_FOUND);
  EXPECT_EQ(queue_.get(host_, kAgent, slice(id), &record_), HEARTH_E_NOT_FOUND);
}

TEST_F(AbiQueueTest, EachFieldOfAFilterLeavesSomeOut) {
  const auto pushed = [this](std::string_view callback, std::string_view payload) {
    hearth_queue_request request = good_request();
    request.callback = slice(callback);
    request.payload = slice(payload);
    EXPECT_EQ(push(request), HEARTH_OK) << last_error();
    return text_in(record_, "id");
  };
  const std::string first = pushed("send", R"({"to":"me"})");
  pushed("send", R"({"to":"you"})");
  pushed("drop", R"({"to":"me"})");
  const auto ids_listed = [this](const hearth_queue_filter& filter) {
    EXPECT_EQ(list(filter), HEARTH_OK) << last_error();
    return count_in(record_, R"("id":)");
  };
  hearth_queue_filter filter = good_filter();
  EXPECT_EQ(ids_listed(filter), 3U);
  filter.limit = 2;
  EXPECT_EQ(ids_listed(filter), 2U);
  filter = good_filter();
  filter.callback = slice("send");
  EXPECT_EQ(ids_listed(filter), 2U);
  filter.member = slice("to");
  filter.value = slice("\"me\"");
  EXPECT_EQ(ids_listed(filter), 1U);
  EXPECT_EQ(ids_listed(with(good_filter(), &Filter::after, slice(first))), 2U);
  EXPECT_EQ(ids_listed(with(good_filter(), &Filter::state, slice("dead"))), 0U);
  filter = good_filter();
  filter.callback = slice("send");
  EXPECT_EQ(remove_all(filter), HEARTH_OK);
  EXPECT_EQ(removed_, 2U);
  filter.callback = slice("drop");
  EXPECT_EQ(queue_.remove_all(host_, kAgent, &filter, nullptr), HEARTH_OK);
  EXPECT_EQ(ids_listed(good_filter()), 0U);
}

TEST_F(AbiQueueTest, WithoutALimitAPageHasAHundred) {
  const auto request = good_request();
  for (int i = 0; i < 101; ++i) ASSERT_EQ(push(request), HEARTH_OK) << last_error();
  ASSERT_EQ(list(good_filter()), HEARTH_OK);
  EXPECT_EQ(count_in(record_, R"("id":)"), 100U);
}

TEST_F(AbiQueueTest, StructsOfOtherSizesAreReadAsFarAsBothKnowThem) {
  hearth_queue_request request = good_request();
  request.retry_base_ms = 9;
  request.struct_size = offsetof(hearth_queue_request, retry_base_ms);
  EXPECT_EQ(push(request), HEARTH_OK);
  EXPECT_FALSE(has(record_, R"("base_delay_ms":9)")) << view(record_);
  struct {
    hearth_queue_request known = good_request();
    std::uint64_t later = 1;
  } larger;
  larger.known.struct_size = sizeof larger;
  EXPECT_EQ(queue_.push(host_, kAgent, &larger.known, &record_), HEARTH_OK);
  request.struct_size = 3;
  EXPECT_EQ(push(request), HEARTH_E_INVALID);
  EXPECT_EQ(queue_.push(host_, kAgent, nullptr, &record_), HEARTH_E_INVALID);
  EXPECT_EQ(queue_.list(host_, kAgent, nullptr, &record_), HEARTH_E_INVALID);
  EXPECT_EQ(queue_.remove_all(host_, kAgent, nullptr, &removed_), HEARTH_E_INVALID);
}

TEST_F(AbiQueueTest, BadSlicesAndLimitsAreRefusedBeforeAnythingIsDone) {
  for (const hearth_bytes bad : kBadSlices) {
    for (hearth_bytes Request::* field : {&Request::callback, &Request::payload}) {
      hearth_queue_request request = good_request();
      request.*field = bad;
      EXPECT_EQ(push(request), HEARTH_E_INVALID);
    }
    for (hearth_bytes Filter::* field :
         {&Filter::callback, &Filter::state, &Filter::member, &Filter::value, &Filter::after}) {
      hearth_queue_filter filter = good_filter();
      filter.*field = bad;
      EXPECT_EQ(list(filter), HEARTH_E_INVALID);
      EXPECT_EQ(remove_all(filter), HEARTH_E_INVALID);
    }
    EXPECT_EQ(queue_.get(host_, kAgent, bad, &record_), HEARTH_E_INVALID);
    EXPECT_EQ(queue_.remove(host_, kAgent, bad), HEARTH_E_INVALID);
    EXPECT_EQ(queue_.retry(host_, kAgent, bad), HEARTH_E_INVALID);
  }
  EXPECT_EQ(list(with(good_filter(), &Filter::limit, 1001)), HEARTH_E_INVALID);
  EXPECT_FALSE(agent_.has_stored());
}

}  // namespace
}  // namespace hearth::extensions
