//! Positions enter in order, completions come in any order; this crate says up to where
//! everything is finished.
//!
//! It owns the one decision that makes delivery at-least-once: which position may be reported
//! as done to the place the work came from. The relay asks it with LSNs before it confirms
//! (D-3), fan-out with offsets before it commits (D-6). It does not own clocks, sockets, retries
//! or the meaning of a position: time comes in as an argument, and what is done with the answer
//! is the caller's.
//!
//! ```text
//!   push/open ->  [ 10 done | 20 done | 30 open | 40 done | 50 open ]  <- complete(ticket)
//!                             ^ done() = 20        oldest_open() = 30
//! ```
//!
//! Failure promise: an error changes nothing. A position is never reported as done while it or
//! an earlier one has parts that are not completed or may still get more. Memory is bounded by
//! the capacity given at construction: a full tracker hands the position back.
//!
//! # Example
//!
//! ```
//! use std::num::NonZeroUsize;
//! use ack_tracker::Tracker;
//!
//! let mut offsets = Tracker::new(NonZeroUsize::new(1_000).ok_or("zero")?);
//! let first = offsets.push(41_u64, 1_000_000)?;
//! let second = offsets.push(42_u64, 1_000_500)?;
//!
//! // The later one finishes first: nothing may be committed yet.
//! assert_eq!(offsets.complete(second)?, None);
//! assert_eq!(offsets.oldest_open().map(|o| o.age_us(1_002_000)), Some(2_000));
//!
//! // Now everything up to 42 is done.
//! assert_eq!(offsets.complete(first)?, Some(42));
//! assert_eq!(offsets.done(), Some(42));
//!
//! // A transaction counts its records while it is received, and is done only after the seal.
//! let txn = offsets.open(50, 1_003_000)?;
//! offsets.add_parts(txn, 2)?;
//! offsets.complete(txn)?;
//! offsets.complete(txn)?;
//! assert_eq!(offsets.done(), Some(42));
//! assert_eq!(offsets.seal(txn)?, Some(50));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod tracker;

pub use error::{PushError, TicketError};
pub use tracker::{OldestOpen, Ticket, Tracker};
