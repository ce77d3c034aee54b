//! Where the rows and the truth about them come from. IO only: no order, no filter of its own.

pub(crate) mod bodies;
pub(crate) mod own;
pub(crate) mod pushed;
