//! The future that a program's work is.

use std::pin::Pin;

use crate::exit::Exit;

/// What the `run` of a service or a command returns.
///
/// Boxed by the library, so that it is compiled there and once: the body of an async function is
/// compiled by whoever polls it, which would be each program and each test again.
pub type Running<T = ()> = Pin<Box<dyn Future<Output = Result<T, Exit>> + Send>>;
