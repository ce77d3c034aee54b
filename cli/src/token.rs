//! `tideline token`: a bearer token, signed with the secret that the APIs check against.

use std::time::{SystemTime, UNIX_EPOCH};

use events::UserId;
use http_api::token::{ADMIN, Claims, Key, mint};
use runtime::{config::value::Span, exit::Exit};

use crate::config::Config;

/// The arguments.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Arguments {
    /// Id of the user that the token speaks for.
    #[arg(long, value_name = "ID")]
    user: UserId,
    /// Give it the admin scope: it may make users and act for all.
    #[arg(long)]
    admin: bool,
    /// How long it is valid, such as 15m, 12h or 30d.
    #[arg(long, default_value = "30d", value_name = "SPAN")]
    ttl: Span,
}

/// Mints and prints.
///
/// # Errors
/// [`Exit::Config`] without a usable secret.
pub fn run(config: &Config, arguments: &Arguments) -> Result<(), Exit> {
    let secret = config.auth.read_secret().map_err(Exit::config)?;
    let key = Key::new(secret.expose().as_bytes()).map_err(Exit::config)?;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_err(Exit::config)?;
    let claims = Claims {
        sub: arguments.user.to_string(),
        exp: now.saturating_add(arguments.ttl.0).as_secs(),
        scope: arguments.admin.then(|| ADMIN.to_owned()),
    };
    println!("{}", mint(&key, &claims).map_err(Exit::bug)?);
    Ok(())
}
