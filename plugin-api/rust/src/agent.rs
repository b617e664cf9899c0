//! The trait [`Agent`], which the author of a class implements, and the types of its arguments.

use crate::context::Context;
use crate::error::{Error, Result, Status};
use crate::json::Value;
use std::time::Duration;

/// A class of agents. One value is one agent in memory.
///
/// - One function at a time runs for an agent, on any thread of the server. So a value must be
///   `Send`, and nothing may be kept in thread-local variables.
/// - Memory is a cache. An agent leaves memory when it is idle, when the library is replaced and
///   when the server stops, and `create` makes it again. Only the state, fibers and schedules last.
/// - The writes of a function are one transaction, committed before its answer leaves. Neither an
///   `Err` nor a panic undoes earlier writes.
/// - After a panic the value may be half changed. The caller reads an error, the log says where the
///   panic was, and the server evicts the agent, so that the next event meets a new value.
/// - A function must not block: other agents of its thread wait.
///
/// ```compile_fail
/// struct Bound(std::rc::Rc<i64>); // not Send
///
/// impl hearth::Agent for Bound {
///     fn create(_: &hearth::Context, _: &hearth::Value) -> hearth::Result<Self> {
///         Ok(Bound(std::rc::Rc::new(1)))
///     }
/// }
/// ```
pub trait Agent: Send + Sized + 'static {
    /// The names of the fibers that [`Agent::on_fiber`] knows. A fiber of another name waits for a
    /// version of the library that lists it.
    const FIBERS: &'static [&'static str] = &[];

    /// Makes the agent, new or from stored data. `options`: the `options` of the class's YAML
    /// file. Fibers cannot be started here.
    fn create(cx: &Context<'_>, options: &Value) -> Result<Self>;

    /// The first event; all other events wait for its end. After an `Err` the agent is destroyed,
    /// and the next event tries again.
    fn on_start(&mut self, _cx: &Context<'_>) -> Result<()> {
        Ok(())
    }

    /// A client calls a method.
    fn on_call(&mut self, _cx: &Context<'_>, method: &str, _args: &Args) -> Result<Value> {
        Err(Error::no_method(method))
    }

    /// An HTTP request; the value is the body of the response, as JSON. An `Err` is answered with
    /// the HTTP status that goes with its code.
    fn on_request(&mut self, _cx: &Context<'_>, _request: &Request) -> Result<Value> {
        Err(Error::new(Status::NOT_FOUND, "this agent answers no requests"))
    }

    /// A schedule is due. After an `Err` the run is retried. After `NOT_FOUND` the schedule is kept
    /// for a version that knows the callback.
    fn on_callback(&mut self, _cx: &Context<'_>, callback: &str, _run: &Run) -> Result<()> {
        Err(Error::no_callback(callback))
    }

    /// One step of a fiber. Its writes and the checkpoint that it returns are one commit: after a
    /// crash the fiber goes on from there, with no step missing and none done twice. Other events
    /// come between two steps. An `Err` ends the fiber, unless it has retries left.
    fn on_fiber(&mut self, _cx: &Context<'_>, fiber: &Fiber) -> Result<Step> {
        Err(Error::new(Status::NOT_FOUND, format!("Fiber {} does not exist", fiber.name)))
    }

    /// A client asks to replace the state. `Err` rejects it.
    fn check_state(&mut self, _cx: &Context<'_>, _next: &Value) -> Result<()> {
        Ok(())
    }
}

/// The arguments of a call, chosen by a client: these functions check their number and types.
#[derive(Clone, Debug)]
pub struct Args {
    values: Vec<Value>,
}

impl Args {
    pub fn new(values: Vec<Value>) -> Args {
        Args { values }
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The argument at `index`; null if there is none.
    pub fn value(&self, index: usize) -> &Value {
        self.values.get(index).unwrap_or(&Value::Null)
    }

    pub fn text(&self, index: usize) -> Result<&str> {
        self.value(index).as_text().ok_or_else(|| expected(index, "string"))
    }

    pub fn integer(&self, index: usize) -> Result<i64> {
        self.value(index).as_i64().ok_or_else(|| expected(index, "integer"))
    }

    /// An integer from `least` to `most`.
    pub fn integer_in(&self, index: usize, least: i64, most: i64) -> Result<i64> {
        match self.integer(index)? {
            value if (least..=most).contains(&value) => Ok(value),
            _ => Err(expected(index, &format!("integer from {least} to {most}"))),
        }
    }
}

fn expected(index: usize, what: &str) -> Error {
    Error::invalid(format!("argument {}: expected {what}", index + 1))
}

/// An HTTP request.
#[derive(Clone, Debug)]
pub struct Request {
    /// "GET"
    pub method: String,
    /// "/agents/watcher/first/sub?x=1"
    pub target: String,
    /// As the client sent it.
    pub body: Vec<u8>,
}

/// One run of a schedule. It comes at least once: a run that a crash cut off comes again.
#[derive(Clone, Debug)]
pub struct Run {
    /// The id that [`Context::schedule`] returned.
    pub id: String,
    pub payload: Value,
    /// When it was due, in milliseconds of Unix time.
    pub scheduled_for_ms: i64,
    /// 1 for the first attempt, and one more for each retry.
    pub attempt: i64,
}

/// Work that survives: a record in the agent's database, until it has ended.
#[derive(Clone, Debug)]
pub struct Fiber {
    pub id: String,
    pub name: String,
    /// The input of [`Context::start_fiber`].
    pub input: Value,
    /// The checkpoint of the last step; null before the first.
    pub checkpoint: Value,
}

/// The end of a step of a fiber.
#[derive(Clone, Debug)]
pub enum Step {
    /// The fiber goes on with this checkpoint, after this time.
    Next { checkpoint: Value, wait: Duration },
    /// The fiber has ended with this result.
    Done(Value),
}

impl Step {
    /// The next step follows at once, but after the events that wait.
    pub fn next(checkpoint: impl Into<Value>) -> Step {
        Step::next_after(checkpoint, Duration::ZERO)
    }

    pub fn next_after(checkpoint: impl Into<Value>, wait: Duration) -> Step {
        Step::Next { checkpoint: checkpoint.into(), wait }
    }

    pub fn done(result: impl Into<Value>) -> Step {
        Step::Done(result.into())
    }
}
