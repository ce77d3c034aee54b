//! Seeds that have to be clean, and bugs that have to be found.

mod bugs;
mod seeds;
