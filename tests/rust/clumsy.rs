//! A class that panics wherever it is told to, for tests of what a panic costs.
//!
//! ```text
//! methods   version() -> of the library
//!           calls() -> how many calls this instance has had
//!           panic(text): panics with it
//!           fiber() -> id of a fiber that panics at its second step, and so has to try again
//!           soon(): a schedule whose first try panics
//!           touch_thread(): names the current thread, which keeps the library in memory
//!           state() -> the state
//! state     {"steps": [1, 2, ...], "attempt": the try of the schedule that went well}
//! requests  every request panics, so that `hearth check` goes through a panic
//!           With --cfg hook the library reports panics as Rust does by itself
//! names     "create" and "start" panic there, "destroy" in the destructor
//! ```

use hearth::{hearth_plugin, Agent, Args, Context, Error, Fiber, FiberOptions, Request, Result};
use hearth::{Run, Step, Value, When};
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

#[cfg(not(second))]
const VERSION: &str = "1.0.0";
#[cfg(second)]
const VERSION: &str = "2.0.0";

struct Clumsy {
    calls: i64,
    panics_when_dropped: bool,
}

impl Agent for Clumsy {
    const FIBERS: &'static [&'static str] = &["stumble"];

    fn create(cx: &Context, _options: &Value) -> Result<Self> {
        assert_ne!(cx.name(), "create", "as told");
        Ok(Clumsy { calls: 0, panics_when_dropped: cx.name() == "destroy" })
    }

    fn on_start(&mut self, cx: &Context) -> Result<()> {
        assert_ne!(cx.name(), "start", "as told");
        Ok(())
    }

    fn on_call(&mut self, cx: &Context, method: &str, args: &Args) -> Result<Value> {
        self.calls += 1;
        match method {
            "version" => Ok(VERSION.into()),
            "calls" => Ok(self.calls.into()),
            "panic" => panic!("{}", args.text(0)?),
            "fiber" => {
                let options = FiberOptions { max_retries: 1, ..FiberOptions::default() };
                Ok(cx.start_fiber_with("stumble", &Value::Null, &options)?.into())
            }
            "soon" => Ok(cx.schedule(When::After(Duration::ZERO), "soon", &Value::Null)?.into()),
            "touch_thread" => Ok(format!("{:?}", std::thread::current().id()).into()),
            "state" => cx.state(),
            _ => Err(Error::no_method(method)),
        }
    }

    fn on_request(&mut self, _cx: &Context, request: &Request) -> Result<Value> {
        // What agents use all the time, and what must not keep the library in memory either.
        let counts = Mutex::new(HashMap::from([(request.target.clone(), 1)]));
        println!("{} {}", request.method, counts.lock().map_or(0, |counts| counts.len()));
        #[cfg(hook)]
        drop(std::panic::take_hook()); // back to that of the standard library
        panic!("no requests: {:?}", counts);
    }

    fn on_callback(&mut self, cx: &Context, callback: &str, run: &Run) -> Result<()> {
        if callback != "soon" {
            return Err(Error::no_callback(callback));
        }
        assert!(run.attempt > 1, "the first try");
        set(cx, "attempt", run.attempt)
    }

    fn on_fiber(&mut self, cx: &Context, fiber: &Fiber) -> Result<Step> {
        let done = fiber.checkpoint.as_i64().unwrap_or(0);
        let mut steps = cx.state()?["steps"].as_array().unwrap_or_default().to_vec();
        steps.push((done + 1).into());
        set(cx, "steps", steps.clone())?;
        // What the step has written before it panics stays, so its number comes twice.
        assert!(done != 1 || steps.len() > 2, "the first time");
        Ok(if done < 2 { Step::next(done + 1) } else { Step::done(steps) })
    }
}

impl Drop for Clumsy {
    fn drop(&mut self) {
        assert!(!self.panics_when_dropped, "as told");
    }
}

fn set(cx: &Context, key: &str, value: impl Into<Value>) -> Result<()> {
    let mut state = cx.state()?;
    state.set(key, value);
    cx.set_state(&state)
}

#[cfg(not(second))]
hearth_plugin!("clumsy", "1.0.0", Clumsy);
#[cfg(second)]
hearth_plugin!("clumsy", "2.0.0", Clumsy);
