//! Events against their schemas, examples and the registry.

mod id_ranges;
mod payloads;
mod registry;
mod schemas;
