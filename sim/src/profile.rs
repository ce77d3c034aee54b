//! What a seed is about: how often things happen, and which faults there are at all.
//!
//! Every seed leaves most kinds of fault out, so that those it has meet in depth; together the
//! seeds have all of them.

use fastrand::Rng;

use crate::fault::Fault;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    /// Steps before the faults are switched off.
    pub(crate) steps: u64,
    /// How often small things go wrong (a lost report, an unknown outcome), in tenths of usual.
    pub(crate) trouble: u32,
    /// The kinds of fault there are.
    pub(crate) faults: Vec<Fault>,
    /// How often there is one, in ten thousand steps.
    pub(crate) fault_rate: u32,
    /// Weight of writers among what may happen.
    pub(crate) writers: u32,
    /// Weight of time passing.
    pub(crate) haste: u32,
    /// Whether days pass now and then.
    pub(crate) has_days: bool,
}

impl Profile {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let share = rng.u32(1..=5);
        let faults = Fault::ALL
            .into_iter()
            .filter(|_| rng.u32(..10) < share * 2)
            .collect();
        Self {
            steps: rng.u64(400..1_600),
            trouble: [0, 3, 10, 10, 20, 40][rng.usize(..6)],
            faults,
            fault_rate: rng.u32(20..400),
            writers: rng.u32(4..14),
            haste: rng.u32(4..16),
            has_days: rng.u32(..3) == 0,
        }
    }
}
