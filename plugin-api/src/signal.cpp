#include <hearth/agent_base.hpp>
#include <hearth/signal.hpp>

namespace hearth::detail {

ToldWait::~ToldWait() {
  leave();
  activation_.withdraw(*this);
}

void ToldWait::await_suspend(std::coroutine_handle<> waiting) {
  context_ = activation_.context();
  waiting_ = waiting;
  list_.emplace(name_, this);
  listed_ = true;
  stops_.watch(stop_, cancel_token(activation_), *this);
}

bool ToldWait::await_resume() const {
  if (stopped_) throw Error(HEARTH_E_CANCELLED, "the wait was stopped", true);
  return what_;
}

void ToldWait::tell(List& list, std::string_view name, bool what) {
  const auto [first, last] = list.equal_range(name);
  for (auto each = first; each != last; ++each) {
    ToldWait& wait = *each->second;
    wait.listed_ = false;
    wait.what_ = what;
    wait.activation_.release(wait);
  }
  list.erase(first, last);
}

void ToldWait::stop() noexcept {
  if (!listed_) return;  // it was told
  leave();
  stopped_ = true;
  activation_.release(*this);
}

void ToldWait::resume() {
  const Activation::Scope scope(activation_, context_);
  waiting_.resume();  // may destroy this wait
}

void ToldWait::leave() noexcept {
  if (!std::exchange(listed_, false)) return;
  std::erase_if(list_, [this](const auto& each) { return each.second == this; });
}

}  // namespace hearth::detail

namespace hearth {

Signal::Signal(Agent& agent) : activation_(agent.activation()) {}

Task<void> Signal::wait(std::stop_token stop) {
  detail::ToldWait wait(activation_, waits_, {}, std::move(stop));
  co_await wait;
}

}  // namespace hearth
