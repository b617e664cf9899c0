//! The fibers of an instance: their next step, and its time.
//!
//! ```text
//! start_fiber, or offered by the host -> sleep -> on_fiber -> stash -> sleep -> ... -> settle
//! ```

use crate::agent::{Agent, Fiber, Step};
use crate::context::RunningFiber;
use crate::error::{Error, Result, Status};
use crate::ffi;
use crate::instance::{Answer, Incoming, Instance};
use crate::panics::{guard, PANICKED};

/// 366 days: `hearth/ext/sleep.h`.
const LONGEST_SLEEP_MS: u64 = 366 * 24 * 60 * 60 * 1000;

impl<T: Agent> Instance<T> {
    /// The host offers a fiber that was interrupted, or whose work has failed and is to begin
    /// again.
    pub(crate) fn recover(&mut self, event: &Incoming<'_>) -> Result<Answer> {
        let name = event.name()?.to_owned();
        if !T::FIBERS.contains(&name.as_str()) {
            return Ok(Answer::Refused(ffi::HEARTH_E_NOT_FOUND)); // it waits for newer code
        }
        let body = event.json()?;
        let id = body["id"].as_text().unwrap_or_default().to_owned();
        let handle = self.host.resume_fiber(&id)?; // if that fails it is offered again later
        let fiber = Fiber {
            id,
            name,
            input: body["record"]["input"].clone(),
            checkpoint: body["snapshot"].clone(),
        };
        self.arrange(RunningFiber { handle, fiber }, 0);
        Ok(Answer::Done(String::new()))
    }

    /// The fiber's next step comes after this time (P5), but at the latest after LONGEST_SLEEP_MS.
    pub(crate) fn arrange(&mut self, fiber: RunningFiber, wait_ms: u64) {
        let token = self.next_token;
        self.next_token += 1;
        match self.host.sleep(wait_ms.min(LONGEST_SLEEP_MS), token) {
            Ok(()) => {
                self.fibers.insert(token, fiber);
            }
            Err(_) => self.host.evict(),
        }
    }

    /// The time of a fiber's next step has come.
    pub(crate) fn go_on(&mut self, token: u64, status: i32) {
        let mut running = match self.fibers.remove(&token) {
            Some(running) => running,
            None => return, // it was cancelled
        };
        if status < 0 {
            return self.host.evict();
        }
        self.host.works_for(running.handle);
        let fiber = &running.fiber;
        let agent = self.host.id;
        let step = guard(agent, || self.run(0, 0, |agent, cx| agent.on_fiber(cx, fiber)));
        let end = match step {
            Ok(Ok(Step::Next { checkpoint, wait })) => {
                match self.host.stash(running.handle, &checkpoint.to_string()) {
                    Ok(()) => {
                        running.fiber.checkpoint = checkpoint;
                        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                        return self.arrange(running, wait_ms);
                    }
                    refused => refused,
                }
            }
            Ok(Ok(Step::Done(result))) => {
                let result = result.to_string();
                self.host.settle(running.handle, ffi::HEARTH_FIBER_COMPLETED, &result)
            }
            Ok(Err(error)) => Err(error),
            Err(_) => {
                self.host.evict();
                Err(PANICKED.into())
            }
        };
        if let Err(error) = end {
            self.fail(&running, &error);
        }
    }

    /// Settles the failed fiber. If the error says that this instance ends, the fiber stays as it
    /// is, and the host offers it to the next instance.
    fn fail(&self, running: &RunningFiber, error: &Error) {
        let settled = match error.status() {
            Status::CLOSING => Err(error.clone()),
            Status::FINAL => {
                self.host.settle(running.handle, ffi::HEARTH_FIBER_FINAL_ERROR, error.text())
            }
            Status::UNREADABLE => {
                self.host.settle(running.handle, ffi::HEARTH_FIBER_NEEDS_CODE, error.text())
            }
            _ => self.host.settle(running.handle, ffi::HEARTH_FIBER_ERROR, error.text()),
        };
        match settled {
            Err(refusal) if refusal.status() != Status::GONE => self.host.evict(),
            _ => (), // settled now, or before, by a cancel
        }
    }
}
