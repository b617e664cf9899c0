#pragma once
// Methods that clients call: from the JSON array of arguments to a C++ call and back.

#include <hearth/callback.hpp>
#include <hearth/detail/activation.hpp>
#include <hearth/detail/type_schema.hpp>
#include <hearth/fields.hpp>
#include <hearth/keep_alive.hpp>
#include <hearth/method_option.hpp>
#include <hearth/operation.hpp>
#include <hearth/operation_kind.hpp>
#include <hearth/retry.hpp>
#include <hearth/task.hpp>

#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace hearth {

namespace detail {

// `value` as JSON text; the most common types without a Json in between.
template <class T>
void append_result(std::string& out, const T& value) {
  if constexpr (std::same_as<T, Json>)
    append_json(out, value);
  else if constexpr (std::same_as<T, bool>)
    out.append(value ? "true" : "false");
  else if constexpr (std::integral<T>)
    append_number(out, value);
  else if constexpr (std::convertible_to<const T&, std::string_view>)
    append_json_text(out, value);
  else if constexpr (kIsOptional<T>)
    value ? append_result(out, *value) : append_json(out, Json());
  else {
    static_assert(kMakesJson<T>,
                  "no JSON can be made of this type: list its members with HEARTH_FIELDS(a, b)");
    if constexpr (kMakesJson<T>) append_json(out, Json(value));
  }
}

// `value` as the answer of a method: an empty optional appends nothing, which means "no value".
template <class T>
void append_answer(std::string& out, const T& value) {
  if constexpr (kIsOptional<T>) {
    if (!value) return;
  }
  append_result(out, value);
}

}  // namespace detail

// Sends the answer of a streaming method, which has it as its first parameter.
// Lifetime  Until the method has ended, waits included.
class Stream {
 public:
  Stream(detail::Activation& activation, std::uint64_t call) noexcept
      : activation_(activation), call_(call) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Sends one part of the answer: anything that Json can be made from. False: the reader has gone,
  // stop.
  template <class T>
  bool send(const T& part) {
    std::string& text = activation_.answer_buffer();
    detail::append_result(text, part);
    return detail::emit_part(activation_, call_, text, "stream");
  }

  // Waits until the client has taken most parts. Without the wait, a client that lags by more than
  // limits.send_queue is disconnected. False: the reader has gone.
  [[nodiscard]] Drained drained() { return {activation_, call_, false}; }

  // Ends the answer now, with a result or without; the value that the method returns later is
  // dropped. The method goes on, the agent is not idle meanwhile, and send() returns false.
  // Failure   Error(INVALID) on a second call.
  void end() { finish(std::string_view()); }
  template <class T>
  void end(const T& result) {
    std::string& text = activation_.answer_buffer();
    detail::append_answer(text, result);
    finish(text);
  }

 private:
  void finish(std::string_view result) {
    if (rest_) throw Error(HEARTH_E_INVALID, "the answer has been ended before");
    rest_ = KeepAlive(activation_);
    activation_.complete(call_, HEARTH_OK, result);
  }

  detail::Activation& activation_;
  std::uint64_t call_;
  KeepAlive rest_;  // of a method that goes on after its answer
};

namespace detail {

// The arguments of one call.
class Arguments {
 public:
  explicit Arguments(std::string_view text);

  // The argument at `index` as a T. A missing argument counts as null if T accepts null. Additional
  // arguments are ignored, as clients in JavaScript expect.
  template <class T>
  T read(std::size_t index) {
    if constexpr (std::same_as<T, Json>) {
      return index < values_.size() ? std::move(values_[index]) : Json();
    } else {
      if (index < values_.size()) {
        if constexpr (std::same_as<T, std::string>) {
          if (values_[index].is_string()) return std::move(values_[index].get_ref<std::string&>());
        }
        return hearth::read_json<T>(values_[index], "argument " + std::to_string(index + 1));
      }
      if constexpr (kIsOptional<T>) {
        return std::nullopt;
      } else {
        throw Error(HEARTH_E_INVALID, "argument " + std::to_string(index + 1) + ": missing, " +
                                          std::string(expected_name<T>()));
      }
    }
  }

 private:
  // "[2]", the most common list that is not empty, without the parser's allocations.
  bool read_small_integer(std::string_view text);

  Json::array_t values_;
};

// Completes a call with the method's value. May own the stream of the call.
class DeliverValue {
 public:
  explicit DeliverValue(std::unique_ptr<Stream> stream = nullptr) : stream_(std::move(stream)) {}

  void operator()(Activation& activation, const Context& context) const {
    activation.complete(context.call, HEARTH_OK, {});
  }
  template <class T>
  void operator()(Activation& activation, const Context& context, const T& value) const {
    std::string& text = activation.answer_buffer();
    append_answer(text, value);
    activation.complete(context.call, HEARTH_OK, text);
  }

 private:
  std::unique_ptr<Stream> stream_;
};

struct Method {
  using Invoke = void (*)(const Method&, Activation&, Agent&, const Context&,
                          std::string_view arguments);

  // Room for any pointer to a member function.
  static constexpr std::size_t kPointerBytes = 2 * sizeof(void*);

  std::string_view name;
  std::uint32_t flags;  // HEARTH_METHOD_*
  const char* description;
  const MethodSchema* schema;
  Invoke invoke;
  alignas(void*) std::array<std::byte, kPointerBytes> pointer;
};

template <class Result>
inline constexpr const TypeSchema* kResultSchema = &kTypeSchema<std::remove_cvref_t<Result>>;
template <class Result>
inline constexpr const TypeSchema* kResultSchema<Task<Result>> = kResultSchema<Result>;
template <>
inline constexpr const TypeSchema* kResultSchema<void> = nullptr;

template <class T, class Pointer, class Result, class... Parameters>
struct Invoker {
  static constexpr bool kStreams = []() {
    if constexpr (sizeof...(Parameters) == 0)
      return false;
    else
      return std::same_as<std::tuple_element_t<0, std::tuple<Parameters...>>, Stream&>;
  }();
  // A coroutine keeps its parameters, but not the arguments that they refer to: these are gone
  // after its first wait.
  static constexpr bool kSafe =
      !kIsTask<Result> ||
      (((!std::is_reference_v<Parameters> && !std::same_as<Parameters, std::string_view>) ||
        std::same_as<Parameters, Stream&>) &&
       ...);
  // The stream is the first parameter, and no argument: its place in the list has no schema.
  static constexpr MethodSchema kSchema = {
      kTypeSchemas<std::remove_cvref_t<Parameters>...> + (kStreams ? 1 : 0),
      sizeof...(Parameters) - (kStreams ? 1 : 0), kResultSchema<Result>};

  static void invoke(const Method& method, Activation& activation, Agent& agent,
                     const Context& context, std::string_view text) {
    Pointer pointer;
    std::memcpy(&pointer, method.pointer.data(), sizeof pointer);
    Arguments arguments(text);
    T& object = static_cast<T&>(agent);
    if constexpr (kStreams) {
      auto stream = std::make_unique<Stream>(activation, context.call);
      Stream& out = *stream;
      with_values<1>(arguments, [&](auto&... values) {
        deliver(activation, context, DeliverValue(std::move(stream)),
                [&]() -> Result { return (object.*pointer)(out, std::move(values)...); });
      });
    } else {
      with_values<0>(arguments, [&](auto&... values) {
        deliver(activation, context, DeliverValue(),
                [&]() -> Result { return (object.*pointer)(std::forward<Parameters>(values)...); });
      });
    }
  }

 private:
  // Reads the parameters from `First` on, left to right, and passes them to `use`.
  template <std::size_t First, class Use>
  static void with_values(Arguments& arguments, Use use) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      using All = std::tuple<Parameters...>;
      std::tuple<std::remove_cvref_t<std::tuple_element_t<I + First, All>>...> values{
          arguments.read<std::remove_cvref_t<std::tuple_element_t<I + First, All>>>(I)...};
      std::apply(use, values);
    }(std::make_index_sequence<sizeof...(Parameters) - First>());
  }

  template <class Call>
  static void deliver(Activation& activation, const Context& context, DeliverValue value,
                      Call call) {
    if constexpr (kIsTask<Result>) {
      drive(activation, context, call(), std::move(value));
    } else if constexpr (std::is_void_v<Result>) {
      call();
      value(activation, context);
    } else {
      value(activation, context, call());
    }
  }
};

class BoundFiber;

// The function of fibers of one name: see fiber.hpp.
struct NamedFiber {
  // Failure: Error(INVALID), the input does not fit the function.
  using Bind = std::unique_ptr<BoundFiber> (*)(const NamedFiber&, Agent&, const Json& input);

  static constexpr std::size_t kPointerBytes = 2 * sizeof(void*);

  std::string_view name;
  Bind bind;
  alignas(void*) std::array<std::byte, kPointerBytes> pointer;
  ShouldRetry should_retry = nullptr;  // null: always
};

template <class T, class Pointer, class Result, class... Parameters>
NamedFiber make_named_fiber(const char* name, Pointer pointer);  // fiber.hpp

// A kind of operation: see operations.hpp.
struct NamedOperation {
  std::string_view name;
  OperationKind kind;
};

// The lists of a class.
struct MethodTable {
  std::vector<Method> methods;             // for clients
  std::vector<Callback> callbacks;         // for schedules and the queue
  std::vector<NamedFiber> fibers;          // for start_fiber() and run_fiber()
  std::vector<NamedOperation> operations;  // for operation()
};

}  // namespace detail

// The methods that a class offers to its clients. An agent class lists them once:
//
//     static void methods(hearth::Methods<Counter>& m) {
//       m.add("increment", &Counter::increment);
//       m.add("get", &Counter::get, hearth::kReadOnly, "The count.");
//       m.stream("count_to", &Counter::count_to, "Counts from 1 on.");
//       m.callback("tick", &Counter::tick);          // not to clients: see callback.hpp
//       m.fiber("import", &Counter::import);         // not to clients: see fiber.hpp
//       m.operation("charge", kCharge);              // an effect outside: see operations.hpp
//     }
//
// A call in progress when its agent leaves memory (its library is replaced, an operator evicts it)
// is answered "try again". With kIdempotent the host repeats the call on its own, on the next
// version of the code, and the caller notices only the wait. The host does not repeat a call after
// a part of its stream was sent. A class has at most 1024 methods, with names of at most 256 bytes:
// see ext/methods.h.
//
// Options     After the method: a promise (kIdempotent, kReadOnly, kExclusive; several with `|`), a
//             description, or both. Callers can read them, with JSON schemas of the arguments and
//             the result, which the SDK makes from their types: see ext/methods.h.
//
// Parameters  The types that read_json() takes, by value; const references too, if the method
//             returns no Task.
// Result      void, or a type that Json can be made from, or a Task of it. An empty std::optional
//             answers as void does: without a value.
template <class T>
class Methods {
 public:
  explicit Methods(detail::MethodTable& list) : list_(list) {}

  // `name` is a literal. Clients call it by this name.
  template <class C, class Result, class... Parameters>
  void add(const char* name, Result (C::*method)(Parameters...), MethodOption first = {},
           MethodOption second = {}) {
    put<false, decltype(method), Result, Parameters...>(name, method, first, second);
  }
  template <class C, class Result, class... Parameters>
  void add(const char* name, Result (C::*method)(Parameters...) const, MethodOption first = {},
           MethodOption second = {}) {
    put<false, decltype(method), Result, Parameters...>(name, method, first, second);
  }

  // A method whose first parameter is hearth::Stream&. Its value is the final result, and ends the
  // stream.
  template <class C, class Result, class... Parameters>
  void stream(const char* name, Result (C::*method)(Parameters...), MethodOption first = {},
              MethodOption second = {}) {
    put<true, decltype(method), Result, Parameters...>(name, method, first, second);
  }
  template <class C, class Result, class... Parameters>
  void stream(const char* name, Result (C::*method)(Parameters...) const, MethodOption first = {},
              MethodOption second = {}) {
    put<true, decltype(method), Result, Parameters...>(name, method, first, second);
  }

  // A callback for schedule() and queue(). Clients cannot call it, unless it is listed with add()
  // too.
  template <class C, class Result, class... Parameters>
  void callback(const char* name, Result (C::*method)(Parameters...)) {
    list_.callbacks.push_back(
        detail::make_callback<T, decltype(method), Result, Parameters...>(name, method));
  }
  template <class C, class Result, class... Parameters>
  void callback(const char* name, Result (C::*method)(Parameters...) const) {
    list_.callbacks.push_back(
        detail::make_callback<T, decltype(method), Result, Parameters...>(name, method));
  }

  // The function of a fiber, for start_fiber() and run_fiber(): takes its input, if it has one, and
  // a FiberContext&. `should_retry` says whether one of the fiber's max_retries is made after this
  // failure; a lambda without captures. After a Final none is.
  template <class C, class Result, class... Parameters>
  void fiber(const char* name, Result (C::*function)(Parameters...),
             ShouldRetry should_retry = nullptr) {
    list_.fibers.push_back(
        detail::make_named_fiber<T, decltype(function), Result, Parameters...>(name, function));
    list_.fibers.back().should_retry = should_retry;
  }
  template <class C, class Result, class... Parameters>
  void fiber(const char* name, Result (C::*function)(Parameters...) const,
             ShouldRetry should_retry = nullptr) {
    list_.fibers.push_back(
        detail::make_named_fiber<T, decltype(function), Result, Parameters...>(name, function));
    list_.fibers.back().should_retry = should_retry;
  }

  // A kind of operation(). `name` is a literal of 1 to 64 bytes; a class has at most 256 kinds.
  void operation(const char* name, const OperationKind& kind) {
    list_.operations.push_back({name, kind});
  }

 private:
  template <bool Streams, class Pointer, class Result, class... Parameters>
  void put(const char* name, Pointer pointer, MethodOption first, MethodOption second) {
    using Invoker = detail::Invoker<T, Pointer, Result, Parameters...>;
    static_assert(
        Invoker::kStreams == Streams,
        "stream() is for methods whose first parameter is hearth::Stream&, add() for all others");
    static_assert(
        Invoker::kSafe,
        "a method that returns a Task takes its parameters by value, and texts as std::string");
    static_assert(sizeof pointer <= detail::Method::kPointerBytes);
    const bool is_first = *first.description() != '\0';
    detail::Method method = {
        name,
        first.flags() | second.flags() | (Streams ? std::uint32_t{HEARTH_METHOD_STREAMING} : 0U),
        is_first ? first.description() : second.description(),
        &Invoker::kSchema,
        &Invoker::invoke,
        {}};
    std::memcpy(method.pointer.data(), &pointer, sizeof pointer);
    list_.methods.push_back(method);
  }

  detail::MethodTable& list_;
};

}  // namespace hearth
