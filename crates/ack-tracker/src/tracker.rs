//! The tracker: a queue of entries in position order, with the completed head cut off.

use std::collections::VecDeque;
use std::num::NonZeroUsize;

use crate::error::{PushError, TicketError};

/// Tracks which positions are finished. See the crate documentation for the drawing.
///
/// Every operation takes constant time, amortised over the entries that it cuts off.
#[derive(Debug)]
pub struct Tracker<P> {
    /// Entries above `done`, in ascending order. The first one, if any, is open.
    entries: VecDeque<Entry<P>>,
    /// Sequence number of the first entry in the queue.
    first_seq: u64,
    capacity: NonZeroUsize,
    generation: u64,
    done: Option<P>,
    /// The highest position ever taken in; outlives the entry that carried it.
    last: Option<P>,
    open_count: usize,
    outstanding_parts: u64,
}

/// Names one entry of one tracker. Cheap to copy and to send with the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket {
    generation: u64,
    seq: u64,
}

/// The entry that holds `done` back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OldestOpen<P> {
    /// Its position.
    pub position: P,
    /// The time given when it came in, microseconds.
    pub since_us: u64,
    /// Its parts that are not completed. Zero for an entry that only waits for its seal.
    pub outstanding_parts: u64,
}

impl<P> OldestOpen<P> {
    /// Returns how long it has been open, microseconds; 0 if `now_us` is before its entry.
    pub fn age_us(&self, now_us: u64) -> u64 {
        now_us.saturating_sub(self.since_us)
    }
}

#[derive(Debug)]
struct Entry<P> {
    position: P,
    since_us: u64,
    outstanding: u64,
    sealed: bool,
}

impl<P> Entry<P> {
    fn is_done(&self) -> bool {
        self.sealed && self.outstanding == 0
    }
}

impl<P: Copy + Ord> Tracker<P> {
    /// Makes an empty tracker of generation 0 that holds at most `capacity` entries, finished
    /// ones behind a gap included.
    pub fn new(capacity: NonZeroUsize) -> Self {
        Self::with_generation(capacity, 0)
    }

    /// Makes an empty tracker whose tickets work only with the same `generation`.
    ///
    /// A caller that starts over (a new connection, a new assignment of a partition) gives the
    /// next number, so that completions of the time before are refused as stale instead of
    /// finishing an entry that has the same place in the queue.
    pub fn with_generation(capacity: NonZeroUsize, generation: u64) -> Self {
        Self {
            entries: VecDeque::new(),
            first_seq: 0,
            capacity,
            generation,
            done: None,
            last: None,
            open_count: 0,
            outstanding_parts: 0,
        }
    }

    /// Takes in a position that is finished by one [`complete`](Self::complete).
    ///
    /// # Errors
    /// [`PushError`] hands the position back: full, not above the last one, or the last entry
    /// is not sealed.
    pub fn push(&mut self, position: P, now_us: u64) -> Result<Ticket, PushError<P>> {
        self.enter(Entry {
            position,
            since_us: now_us,
            outstanding: 1,
            sealed: true,
        })
    }

    /// Takes in a position that is still being received: it has no parts yet, gets them with
    /// [`add_parts`](Self::add_parts) and is not done before [`seal`](Self::seal).
    ///
    /// # Errors
    /// The same as for [`push`](Self::push).
    pub fn open(&mut self, position: P, now_us: u64) -> Result<Ticket, PushError<P>> {
        self.enter(Entry {
            position,
            since_us: now_us,
            outstanding: 0,
            sealed: false,
        })
    }

    /// Adds `parts` to complete to an entry that is not sealed.
    ///
    /// # Errors
    /// [`TicketError`]: sealed, completed, unknown or stale.
    pub fn add_parts(&mut self, ticket: Ticket, parts: u64) -> Result<(), TicketError> {
        let total = self
            .outstanding_parts
            .checked_add(parts)
            .ok_or(TicketError::TooManyParts)?;
        let entry = self.entry(ticket)?;
        if entry.sealed {
            return Err(TicketError::Sealed);
        }
        // Cannot overflow: an entry never has more parts than all of them together.
        entry.outstanding += parts;
        self.outstanding_parts = total;
        Ok(())
    }

    /// Says that an entry gets no more parts. Returns the new [`done`](Self::done) if it moved.
    ///
    /// # Errors
    /// [`TicketError`]: sealed, completed, unknown or stale.
    pub fn seal(&mut self, ticket: Ticket) -> Result<Option<P>, TicketError> {
        let position = self.entry(ticket)?.position;
        self.seal_at(ticket, position)
    }

    /// Seals an entry and raises its position, for a source that tells the end only at the end
    /// (the end LSN of a transaction comes with its commit message).
    ///
    /// # Errors
    /// [`TicketError`]: below the position it was opened with, sealed, completed, unknown or
    /// stale.
    pub fn seal_at(&mut self, ticket: Ticket, position: P) -> Result<Option<P>, TicketError> {
        let entry = self.entry(ticket)?;
        if entry.sealed {
            return Err(TicketError::Sealed);
        }
        if position < entry.position {
            return Err(TicketError::PositionWentBack);
        }
        // The order holds: nothing enters behind an entry that is not sealed.
        entry.sealed = true;
        entry.position = position;
        let done = entry.is_done();
        self.last = Some(position);
        Ok(if done { self.finished_one() } else { None })
    }

    /// Completes one part of an entry. Returns the new [`done`](Self::done) if it moved.
    ///
    /// Parts have no names, so completing one part twice looks like two parts: a caller whose
    /// confirmations may repeat must drop the repeats itself. A repeat beyond the last part is
    /// refused.
    ///
    /// # Errors
    /// [`TicketError`]: no part is outstanding, unknown or stale.
    pub fn complete(&mut self, ticket: Ticket) -> Result<Option<P>, TicketError> {
        let entry = self.entry(ticket)?;
        entry.outstanding = entry
            .outstanding
            .checked_sub(1)
            .ok_or(TicketError::AlreadyComplete)?;
        let done = entry.is_done();
        self.outstanding_parts -= 1;
        Ok(if done { self.finished_one() } else { None })
    }

    /// Returns the highest position at and below which everything is finished, or `None` if
    /// that is not so for any position yet. Never falls.
    pub fn done(&self) -> Option<P> {
        self.done
    }

    /// Returns the highest position taken in, or `None` before the first.
    pub fn last(&self) -> Option<P> {
        self.last
    }

    /// Returns the entry that holds `done` back, or `None` if nothing is open.
    pub fn oldest_open(&self) -> Option<OldestOpen<P>> {
        self.entries.front().map(|entry| OldestOpen {
            position: entry.position,
            since_us: entry.since_us,
            outstanding_parts: entry.outstanding,
        })
    }

    /// Returns the number of entries that are not finished.
    pub fn open_count(&self) -> usize {
        self.open_count
    }

    /// Returns the number of parts of all entries that are not completed.
    pub fn outstanding_parts(&self) -> u64 {
        self.outstanding_parts
    }

    /// Returns the number of entries held, finished ones behind a gap included.
    pub fn held(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether everything that came in is finished.
    pub fn is_idle(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns whether the next position would be refused for lack of room.
    pub fn is_full(&self) -> bool {
        self.entries.len() >= self.capacity.get()
    }

    /// Returns the generation its tickets belong to.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    fn enter(&mut self, entry: Entry<P>) -> Result<Ticket, PushError<P>> {
        let position = entry.position;
        if let Some(back) = self.entries.back().filter(|back| !back.sealed) {
            return Err(PushError::NotSealed {
                position,
                last: back.position,
            });
        }
        if let Some(last) = self.last.filter(|last| position <= *last) {
            return Err(PushError::NotAscending { position, last });
        }
        if self.is_full() {
            return Err(PushError::Full { position });
        }
        let seq = self.first_seq + self.entries.len() as u64;
        self.last = Some(position);
        self.open_count += 1;
        self.outstanding_parts += entry.outstanding;
        self.entries.push_back(entry);
        Ok(Ticket {
            generation: self.generation,
            seq,
        })
    }

    fn entry(&mut self, ticket: Ticket) -> Result<&mut Entry<P>, TicketError> {
        if ticket.generation != self.generation {
            return Err(TicketError::Stale {
                ticket: ticket.generation,
                tracker: self.generation,
            });
        }
        let index = ticket
            .seq
            .checked_sub(self.first_seq)
            .ok_or(TicketError::AlreadyComplete)?;
        let index = usize::try_from(index).map_err(|_| TicketError::Unknown)?;
        let entry = self.entries.get_mut(index).ok_or(TicketError::Unknown)?;
        if entry.is_done() {
            return Err(TicketError::AlreadyComplete);
        }
        Ok(entry)
    }

    /// Cuts off the finished head. Returns the new `done` if it moved.
    fn finished_one(&mut self) -> Option<P> {
        self.open_count -= 1;
        let mut moved = None;
        while let Some(entry) = self.entries.pop_front_if(|entry| entry.is_done()) {
            self.first_seq += 1;
            moved = Some(entry.position);
        }
        if moved.is_some() {
            self.done = moved;
        }
        moved
    }
}
