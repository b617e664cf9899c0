#include "storage/step_budget.hpp"

#include "base/assert.hpp"

namespace hearth::storage {
namespace {

constinit thread_local StepBudget* budget_of_thread = nullptr;

}  // namespace

StepBudget::StepBudget(const Clock& clock, SteadyTime deadline)
    : clock_(clock), deadline_(deadline) {
  HEARTH_ASSERT(budget_of_thread == nullptr, "a step within a step");
  budget_of_thread = this;
}

StepBudget::~StepBudget() {
  budget_of_thread = nullptr;
}

StepBudget* StepBudget::current() noexcept {
  return budget_of_thread;
}

bool StepBudget::has_time_for(std::size_t work) {
  StepBudget* const budget = budget_of_thread;
  if (budget == nullptr) return true;
  budget->work_ += work;
  if (budget->work_ < kWorkPerLook) return true;
  budget->work_ = 0;
  return !budget->is_over();
}

bool StepBudget::is_over() const {
  return clock_.steady_now() >= deadline_;
}

bool StepBudget::take_query_token() noexcept {
  if (++query_tokens_ > kMostQueryTokens) refused_query_ = true;
  return !refused_query_;
}

}  // namespace hearth::storage
