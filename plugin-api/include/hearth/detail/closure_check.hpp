#pragma once
// Rejects a coroutine that is a lambda with captures, unless the SDK keeps the lambda.
//
// A coroutine keeps its parameters, but of a lambda only a pointer to it. So a lambda with captures
// must live as long as its coroutine. run_fiber() and similar functions keep what they are given,
// also in a std::function, std::bind() or a template around it. Any other lambda is destroyed when
// the function that made it returns, or the statement ends. A lambda is also rejected if the type
// of the kept object does not show it, such as in a std::function that is its member. Not found: a
// template of an author that calls its own copy of the lambda.

#include <hearth/error.hpp>

#include <functional>
#include <string_view>
#include <type_traits>
#include <typeinfo>
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

// Its address tells types apart.
template <class T>
inline constexpr char kTypeTag = 0;

// Whether an object of type T is the tag's closure, or a template made for it, which has it inside:
// Wrapper<Closure>.
template <class T>
struct Inside {
  static bool has(const char* tag) { return tag == &kTypeTag<T>; }
};
template <class T>
struct Inside<const T> : Inside<T> {};
template <template <class...> class Wrapper, class... Parts>
struct Inside<Wrapper<Parts...>> {
  static bool has([[maybe_unused]] const char* tag) { return (Inside<Parts>::has(tag) || ...); }
};
// std::bind() and std::bind_front(): the bound arguments may be copied on the way, into a parameter
// that is destroyed. The function itself is called in place, and a member function on the object
// that it is bound to.
template <class Function, class... Bound>
struct Inside<Function(Bound...)> : Inside<Function> {};
template <class Member, class Class, class Object, class... Bound>
struct Inside<Member Class::*(Object, Bound...)> : Inside<Object> {};
#ifdef __GLIBCXX__
template <class Function, class... Bound>
struct Inside<std::_Bind_front<Function, Bound...>> : Inside<Function(Bound...)> {};
#endif
template <class T>
struct Inside<std::reference_wrapper<T>> {
  static bool has(const char* /*tag*/) { return false; }
};

// Whether `whole` is the type of std::bind(function, ...), std::bind<Result>(function, ...) or
// std::bind_front(function, ...), for a function of that type.
bool is_binding_of(const std::type_info& whole, const std::type_info& function);

// A function that its caller keeps.
struct Kept {
  bool (*has)(const char* tag);            // which closures
  const std::type_info* target = nullptr;  // of a std::function: its function

  template <class Closure>
  [[nodiscard]] bool holds() const {
    if (has(&kTypeTag<Closure>)) return true;
    return target != nullptr &&
           (*target == typeid(Closure) || is_binding_of(*target, typeid(Closure)));
  }
};

// The function of call_kept() on this thread. Trivial, so it does not pin the library.
inline constinit thread_local const Kept* kept_function = nullptr;

// Calls a function that the caller keeps until its Task has ended.
template <class Function, class... Arguments>
decltype(auto) call_kept(Function& function, Arguments&&... arguments) {
  struct Restore {
    const Kept* outer;
    ~Restore() { kept_function = outer; }
  };
  Kept kept{.has = Inside<std::remove_const_t<Function>>::has};
  if constexpr (requires { function.target_type(); }) kept.target = &function.target_type();
  const Restore restore{std::exchange(kept_function, &kept)};
  return function(std::forward<Arguments>(arguments)...);
}

// `Closure` has been called, and is a coroutine.
template <class Closure>
void refuse_dying_lambda() {
  if (std::is_empty_v<Closure>) return;
  if (kept_function != nullptr && kept_function->holds<Closure>()) return;
  throw Error(HEARTH_E_INVALID,
              "a lambda with captures is a coroutine that may outlive it: make it a member "
              "function, or give it to start_fiber(), run_fiber(), retry(), keep_alive_while(), "
              "operation() or after_turn(), which keep it");
}

}  // namespace hearth::detail
