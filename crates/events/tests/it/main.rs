//! Events against their schemas, examples and the registry.

mod payloads;
mod registry;
mod schemas;
