//! What is written about a run, looked at from outside: the page, the data, the logs.
#![allow(clippy::unwrap_used)]

mod files;
mod page;
mod run;
