//! A watcher: state, a method, a schedule, and work that goes on after `kill -9`.
//!
//! ```text
//! methods   report(what) -> how many reports there are
//!           remind(what, ms) -> id of the schedule
//!           walk(steps, step_ms) -> id of the fiber
//! state     {"reports": 2, "reminder": "the gate", "steps": [1, 2, 3], "walks": 1}
//!           reminder: the last one; steps: those of the walk in progress, or of the last one;
//!           walks: how many have ended. Clients cannot change it
//! requests  are answered with the state
//! options   longest_walk: steps, 1000 if left out
//! ```

use hearth::{hearth_plugin, Agent, Args, Context, Error, Fiber, Level, Request, Result, Run};
use hearth::{Status, Step, Value, When};
use std::time::Duration;

struct Watcher {
    longest_walk: i64,
}

impl Agent for Watcher {
    const FIBERS: &'static [&'static str] = &["walk"];

    fn create(cx: &Context, options: &Value) -> Result<Self> {
        cx.set_default_state(&Value::object([
            ("reports", 0.into()),
            ("reminder", ().into()),
            ("steps", Value::Array(vec![])),
            ("walks", 0.into()),
        ]))?;
        Ok(Watcher { longest_walk: options["longest_walk"].as_i64().unwrap_or(1000) })
    }

    fn on_call(&mut self, cx: &Context, method: &str, args: &Args) -> Result<Value> {
        match method {
            "report" => report(cx, args.text(0)?),
            "remind" => {
                let wait = milliseconds(args.integer_in(1, 0, 86_400_000)?);
                Ok(cx.schedule(When::After(wait), "remind", &args.text(0)?.into())?.into())
            }
            "walk" => {
                let input = Value::object([
                    ("steps", args.integer_in(0, 1, self.longest_walk)?.into()),
                    ("step_ms", args.integer_in(1, 0, 60_000)?.into()),
                ]);
                Ok(cx.start_fiber("walk", &input)?.into())
            }
            _ => Err(Error::no_method(method)),
        }
    }

    fn on_request(&mut self, cx: &Context, _request: &Request) -> Result<Value> {
        cx.state()
    }

    fn on_callback(&mut self, cx: &Context, callback: &str, run: &Run) -> Result<()> {
        if callback != "remind" {
            return Err(Error::no_callback(callback));
        }
        let mut state = cx.state()?;
        state.set("reminder", run.payload.clone());
        cx.set_state(&state)
    }

    /// One step. The new state and the checkpoint are one commit: a kill loses no step and repeats
    /// none.
    fn on_fiber(&mut self, cx: &Context, fiber: &Fiber) -> Result<Step> {
        let done = fiber.checkpoint["done"].as_i64().unwrap_or(0);
        let mut state = cx.state()?;
        if done == fiber.input["steps"].as_i64().unwrap_or(0) {
            state.set("walks", state["walks"].as_i64().unwrap_or(0) + 1);
            cx.set_state(&state)?;
            cx.log(Level::Info, &format!("walked {done} steps"));
            return Ok(Step::done(done));
        }
        let mut steps = match state["steps"].as_array() {
            Some(steps) if done > 0 => steps.to_vec(),
            _ => vec![],
        };
        steps.push((done + 1).into());
        state.set("steps", steps);
        cx.set_state(&state)?;
        let wait = milliseconds(fiber.input["step_ms"].as_i64().unwrap_or(0));
        Ok(Step::next_after(Value::object([("done", (done + 1).into())]), wait))
    }

    fn check_state(&mut self, _cx: &Context, _next: &Value) -> Result<()> {
        Err(Error::new(Status::FORBIDDEN, "only the watcher changes the state"))
    }
}

fn report(cx: &Context, what: &str) -> Result<Value> {
    let mut state = cx.state()?;
    let reports = state["reports"].as_i64().unwrap_or(0) + 1;
    state.set("reports", reports);
    cx.set_state(&state)?; // stored, and sent to every client
    cx.log(Level::Info, &format!("report {reports}: {what}"));
    Ok(reports.into())
}

fn milliseconds(count: i64) -> Duration {
    Duration::from_millis(count.unsigned_abs())
}

hearth_plugin!("watcher", "1.0.0", Watcher);
