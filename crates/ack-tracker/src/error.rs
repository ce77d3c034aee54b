//! What the tracker refuses, and why. Written by hand because the crate has no dependencies.

use std::error::Error;
use std::fmt;

/// A position was not taken in. The tracker is unchanged and the position is handed back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushError<P> {
    /// The tracker holds as many entries as its capacity. Stop reading and complete some first.
    Full {
        /// The position handed back.
        position: P,
    },
    /// The position is not above the last one, so "everything below" would lose its meaning.
    NotAscending {
        /// The position handed back.
        position: P,
        /// The last position that was taken in.
        last: P,
    },
    /// The last entry is not sealed, so it may still rise above the new position.
    NotSealed {
        /// The position handed back.
        position: P,
        /// The position of the entry that is still being received.
        last: P,
    },
}

impl<P> PushError<P> {
    /// Returns the position that was not taken in.
    pub fn into_position(self) -> P {
        match self {
            Self::Full { position }
            | Self::NotAscending { position, .. }
            | Self::NotSealed { position, .. } => position,
        }
    }
}

impl<P: fmt::Debug> fmt::Display for PushError<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { position } => {
                write!(f, "tracker is full, position {position:?} not taken in")
            }
            Self::NotAscending { position, last } => {
                write!(
                    f,
                    "position {position:?} is not above the last one, {last:?}"
                )
            }
            Self::NotSealed { position, last } => {
                write!(f, "position {position:?} came before {last:?} was sealed")
            }
        }
    }
}

impl<P: fmt::Debug> Error for PushError<P> {}

/// A ticket could not be used. The tracker is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TicketError {
    /// The ticket comes from another generation (an earlier connection or assignment). Whoever
    /// holds it is late; the answer is to ignore it.
    Stale {
        /// The generation of the ticket.
        ticket: u64,
        /// The generation of this tracker.
        tracker: u64,
    },
    /// The tracker never gave out this ticket.
    Unknown,
    /// All parts are completed already.
    AlreadyComplete,
    /// The entry is sealed: it takes no more parts and no second seal.
    Sealed,
    /// The number of outstanding parts does not fit its counter.
    TooManyParts,
    /// The position given at the seal is below the one the entry was opened with.
    PositionWentBack,
}

impl fmt::Display for TicketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale { ticket, tracker } => {
                write!(
                    f,
                    "ticket of generation {ticket} used in generation {tracker}"
                )
            }
            Self::Unknown => f.write_str("ticket was never given out"),
            Self::AlreadyComplete => f.write_str("entry is completed already"),
            Self::Sealed => f.write_str("entry is sealed already"),
            Self::TooManyParts => f.write_str("entry has too many outstanding parts"),
            Self::PositionWentBack => f.write_str("seal position is below the entry's position"),
        }
    }
}

impl Error for TicketError {}
