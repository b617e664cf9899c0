#pragma once
// Refuses a coroutine that is a lambda with captures, unless the SDK keeps the lambda.
//
// A coroutine keeps its parameters, and of a lambda only a pointer to it. So a lambda with captures
// must live as long as its coroutine does: run_fiber() and its like keep what they are given. Any
// other one is gone as soon as the function that made it returns, or the statement is over.

#include <hearth/error.hpp>

#include <string_view>
#include <type_traits>
#include <utility>

namespace hearth::detail {

template <class T>
constexpr std::string_view type_text() {
  return __PRETTY_FUNCTION__;
}

// A lambda, by the compilers' names for one. It may be incomplete.
template <class T>
inline constexpr bool kIsLambda = type_text<T>().find("= (lambda at ") != std::string_view::npos ||
                                  type_text<T>().find("::<lambda(") != std::string_view::npos;

// Its address tells lambdas apart; what may hold one (std::function) is void.
template <class T>
inline constexpr char kTypeTag = 0;
template <class T>
inline constexpr const char* kTagOf = &kTypeTag<std::conditional_t<kIsLambda<T>, T, void>>;

// The type of the function that call_kept() calls on this thread. Trivial, so it does not pin the
// library.
inline constinit thread_local const char* kept_type = nullptr;

// Calls a function that the caller keeps until its Task has ended.
template <class Function, class... Arguments>
decltype(auto) call_kept(Function& function, Arguments&&... arguments) {
  struct Restore {
    const char* outer = std::exchange(kept_type, kTagOf<std::remove_const_t<Function>>);
    ~Restore() { kept_type = outer; }
  } const restore;
  return function(std::forward<Arguments>(arguments)...);
}

// `Closure` has been called, and is a coroutine.
template <class Closure>
void refuse_dying_lambda() {
  if (std::is_empty_v<Closure> || kept_type == kTagOf<Closure> || kept_type == kTagOf<void>) return;
  throw Error(HEARTH_E_INVALID,
              "a lambda with captures is a coroutine that may outlive it: make it a member "
              "function, or give it to start_fiber(), run_fiber(), retry(), keep_alive_while(), "
              "operation() or after_turn(), which keep it");
}

}  // namespace hearth::detail
