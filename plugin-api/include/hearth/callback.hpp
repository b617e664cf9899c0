#pragma once
// Callbacks: the member functions that schedules and the queue call, by name. Listed like methods,
// but no client can call them:
//
//     static void methods(hearth::Methods<Reminder>& m) {
//       m.add("remind_me", &Reminder::remind_me);        // for clients
//       m.callback("remind", &Reminder::remind);         // for schedule() and queue()
//     }
//
// Parameters  Nothing, or the payload: any type that read_json() takes, by value (a const reference
//             too, if the callback returns no Task). Last, if wanted, `const ScheduleRun&` or
//             `const QueueItem&`, valid until the callback has ended. A callback with a ScheduleRun
//             is only for schedules, with a QueueItem only for the queue; others are for both.
// Result      void or Task<void>; other values are dropped. An exception is a failed attempt, and
//             Final the last one. A payload that it cannot read waits for another version.
// Names       schedule(), schedule_every() and queue() refuse a name that the class does not list.

#include <hearth/detail/activation.hpp>
#include <hearth/fields.hpp>
#include <hearth/task.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace hearth {

struct ScheduleRun;
struct QueueItem;

namespace detail {

// One delivery: the payload, and either a run or an item.
struct Delivery {
  Json payload;
  std::unique_ptr<const ScheduleRun> schedule;
  std::unique_ptr<const QueueItem> item;

  Delivery();
  ~Delivery();  // in dispatch.hpp, where both are complete
};

// Completes the event, and keeps the objects that the callback refers to.
class DeliverCallback {
 public:
  explicit DeliverCallback(std::unique_ptr<const Delivery> delivery)
      : delivery_(std::move(delivery)) {}
  void operator()(Activation& activation, const Context& context) const {
    activation.complete(context.call, HEARTH_OK, {});
  }
  template <class T>
  void operator()(Activation& activation, const Context& context, const T& /*value*/) const {
    activation.complete(context.call, HEARTH_OK, {});
  }

 private:
  std::unique_ptr<const Delivery> delivery_;
};

struct Callback {
  using Invoke = void (*)(const Callback&, Activation&, Agent&, const Context&,
                          std::unique_ptr<const Delivery>);

  static constexpr std::size_t kPointerBytes =
      2 * sizeof(void*);  // any pointer to a member function

  std::string_view name;
  bool for_schedules;
  bool for_queue;
  Invoke invoke;
  alignas(void*) std::array<std::byte, kPointerBytes> pointer;
};

template <class Parameter>
inline constexpr bool kIsRun =
    std::same_as<Parameter, const ScheduleRun&> || std::same_as<Parameter, const QueueItem&>;

template <class T, class Pointer, class Result, class... Parameters>
struct CallbackInvoker {
  static constexpr std::size_t kCount = sizeof...(Parameters);
  static constexpr std::size_t kRuns = (std::size_t{0} + ... + (kIsRun<Parameters> ? 1U : 0U));
  static constexpr bool kTakesPayload = kCount > kRuns;
  static constexpr bool kForSchedules = !(std::same_as<Parameters, const QueueItem&> || ...);
  static constexpr bool kForQueue = !(std::same_as<Parameters, const ScheduleRun&> || ...);
  // () (payload) (run) (payload, run)
  static constexpr bool kFits = []() {
    if constexpr (kCount <= 1)
      return true;
    else if constexpr (kCount == 2)
      return kIsRun<std::tuple_element_t<1, std::tuple<Parameters...>>> && kRuns == 1;
    else
      return false;
  }();
  // A coroutine keeps its parameters, not what they refer to.
  static constexpr bool kSafe =
      !kIsTask<Result> || ((!std::is_reference_v<Parameters> || kIsRun<Parameters>) && ...);

  static void invoke(const Callback& callback, Activation& activation, Agent& agent,
                     const Context& context, std::unique_ptr<const Delivery> delivery) {
    Pointer pointer;
    std::memcpy(&pointer, callback.pointer.data(), sizeof pointer);
    T& object = static_cast<T&>(agent);
    const Delivery& kept = *delivery;
    DeliverCallback done(std::move(delivery));
    if constexpr (kTakesPayload) {
      using First = std::tuple_element_t<0, std::tuple<Parameters...>>;
      auto payload = read_stored<std::remove_cvref_t<First>>(kept.payload, "payload");
      if constexpr (kCount == 1) {
        run(activation, context, done,
            [&]() -> Result { return (object.*pointer)(std::forward<First>(payload)); });
      } else {
        using Run = std::tuple_element_t<1, std::tuple<Parameters...>>;
        run(activation, context, done, [&]() -> Result {
          return (object.*pointer)(std::forward<First>(payload), choose<Run>(kept));
        });
      }
    } else {
      run(activation, context, done,
          [&]() -> Result { return (object.*pointer)(choose<Parameters>(kept)...); });
    }
  }

 private:
  template <class Run>
  static Run choose(const Delivery& delivery) {
    if constexpr (std::same_as<Run, const ScheduleRun&>)
      return *delivery.schedule;
    else
      return *delivery.item;
  }
  template <class Call>
  static void run(Activation& activation, const Context& context, DeliverCallback& done,
                  Call call) {
    if constexpr (kIsTask<Result>) {
      drive(activation, context, call(), std::move(done));
    } else {
      call();
      done(activation, context);
    }
  }
};

template <class T, class Pointer, class Result, class... Parameters>
Callback make_callback(const char* name, Pointer pointer) {
  using Invoker = CallbackInvoker<T, Pointer, Result, Parameters...>;
  static_assert(
      Invoker::kFits,
      "a callback takes the payload and then, if wanted, const ScheduleRun& or const QueueItem&");
  static_assert(Invoker::kSafe, "a callback that returns a Task takes its payload by value");
  static_assert(sizeof pointer <= Callback::kPointerBytes);
  Callback callback = {name, Invoker::kForSchedules, Invoker::kForQueue, &Invoker::invoke, {}};
  std::memcpy(callback.pointer.data(), &pointer, sizeof pointer);
  return callback;
}

// Whether the class lists a callback of this name for schedules, or for the queue; or a method of
// this name. In dispatch.cpp. Failure: Error(INVALID).
void need_callback(const Activation& activation, std::string_view name, bool scheduled);
void need_method(const Activation& activation, std::string_view name);

// False for NOT_FOUND. Failure: HostError for any other.
bool found(const Activation& activation, hearth_status status, std::string_view doing);

}  // namespace detail

}  // namespace hearth
