//! Bearer tokens for any account, made from the deployment's secret.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use events::UserId;
use http_api::token::{ADMIN, Claims, Key, mint};

/// How long tokens are good for. A run that is longer makes new ones as it goes.
const VALID: Duration = Duration::from_secs(24 * 60 * 60);

/// Makes tokens.
#[derive(Clone, Debug)]
pub struct Tokens {
    key: Key,
}

impl Tokens {
    /// Tokens signed with this secret.
    ///
    /// # Errors
    /// When it is shorter than 32 bytes.
    pub fn new(secret: &[u8]) -> anyhow::Result<Self> {
        Ok(Self {
            key: Key::new(secret)?,
        })
    }

    /// Tokens signed with this key.
    pub const fn of(key: Key) -> Self {
        Self { key }
    }

    /// A token that lets its bearer act as `user`.
    ///
    /// # Errors
    /// When it cannot be signed.
    pub fn user(&self, user: UserId) -> anyhow::Result<String> {
        self.sign(user, None)
    }

    /// A token that administers accounts.
    ///
    /// # Errors
    /// When it cannot be signed.
    pub fn admin(&self) -> anyhow::Result<String> {
        self.sign(UserId(1), Some(ADMIN.to_owned()))
    }

    fn sign(&self, user: UserId, scope: Option<String>) -> anyhow::Result<String> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .context("the clock is before 1970")?;
        let claims = Claims {
            sub: user.to_string(),
            exp: (now + VALID).as_secs(),
            scope,
        };
        mint(&self.key, &claims).context("signing a token")
    }
}
